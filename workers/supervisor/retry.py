"""Ask the object store again for a while before giving up on it."""

import threading
from collections.abc import Callable
from typing import TypeVar

from core.errors import StoreRefused, StoreUnreachable

Result = TypeVar("Result")


def retrying(
    action: Callable[[], Result], *, waits_s: tuple[float, ...], stop: threading.Event
) -> Result:
    """Run ``action`` until the store takes part; it must be safe to repeat.

    Args:
        waits_s: seconds between the tries; after the last one the error is raised.
        stop: ends the waiting early, with the error.
    """
    for wait_s in waits_s:
        try:
            return action()
        except (StoreUnreachable, StoreRefused):
            if stop.wait(wait_s):
                raise
    return action()
