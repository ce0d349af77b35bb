"""Hears that the process is told to stop, before the server waits for its open answers to end.

uvicorn ends the application's lifespan only after the last answer, or after its grace time: what
goes on for as long as its client likes has to be ended before.
"""

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def told_to_stop(call: Callable[[], None]) -> Iterator[None]:
    """Have the running loop make the call when SIGTERM or SIGINT comes; the server hears it too.

    A server in another thread than the main one hears no signals, and neither does this.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop = asyncio.get_running_loop()
    # A signal whose handler is no function ends the process, or nobody wants to hear of it.
    servers: dict[int, Any] = {
        number: handler
        for number in (signal.SIGTERM, signal.SIGINT)
        if callable(handler := signal.getsignal(number))
    }

    def heard(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(call)
        servers[number](number, frame)

    for number in servers:
        signal.signal(number, heard)
    try:
        yield
    finally:
        for number, handler in servers.items():
            if signal.getsignal(number) is heard:
                signal.signal(number, handler)
