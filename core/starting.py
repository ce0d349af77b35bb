"""The start of a program that takes its settings from the environment."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from core.errors import ConfigurationError


@contextmanager
def starting() -> Iterator[None]:
    """End the program when the operator must change something: one sentence, no traceback."""
    try:
        yield
    except ConfigurationError as error:
        sys.exit(error.message)
