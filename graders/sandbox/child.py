"""One waiting child process, as the service sees it: one call, then never used again."""

import asyncio
import os
import secrets
from collections.abc import Callable
from enum import Enum, auto

from graders.sandbox.forkserver import Made
from graders.sandbox.jail import wire
from graders.sandbox.notices import Notices

#: Most output that is kept of one call, in bytes; the rest is read and dropped.
MAX_OUTPUT_BYTES = 65_536
#: How often output is read while a call runs. A flood of it then costs the service little, for
#: the pipe holds the child back meanwhile.
TICK_S = 0.005
#: Most that is read at once.
_MAX_DRAIN_BYTES = 262_144


class End(Enum):
    """How a call came to its end."""

    REPLY = auto()
    NONSENSE = auto()
    GONE = auto()
    TIME = auto()
    DISK = auto()
    REFUSALS = auto()


class Child:
    """A child in a slot. `reply` holds what it said, `output` what it printed."""

    def __init__(self, slot: int, made: Made, on_ready: Callable[["Child"], None]) -> None:
        self.slot, self.pid = slot, made.pid
        self.reply = b""
        self.output = bytearray()
        self.dropped_bytes = 0
        self.notices = Notices()
        self._made, self._closed = made, False
        self._channel, self._output_fd = made.channel, made.output
        self._channel.setblocking(False)
        os.set_blocking(self._output_fd, False)
        self._on_ready = on_ready
        self._received = bytearray()
        self._unsent = memoryview(b"")
        self._nonce = secrets.token_bytes(wire.NONCE_BYTES)
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[End] = self._loop.create_future()
        self._loop.add_reader(self._channel, self._greeted)

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet, as far as is known."""
        return not self._ended.done()

    async def call(
        self,
        source: str,
        *arguments: object,
        timeout_s: float,
        on_tick: Callable[["Child"], None],
    ) -> End:
        """Send a request and wait for its end; `on_tick` is called now and then meanwhile.

        Raises `ValueError` when the arguments are not plain data.
        """
        self._unsent = memoryview(wire.request(self._nonce, source, *arguments))
        self._write()
        deadline = self._loop.call_later(timeout_s, self.end, End.TIME)
        tick = self._loop.call_later(TICK_S, self._tick, on_tick)
        try:
            # Shielded: who is cancelled still has to end the child, and `end` looks whether it has.
            return await asyncio.shield(self._ended)
        finally:
            deadline.cancel()
            tick.cancel()
            self._drain()

    def end(self, how: End) -> None:
        """Let the call end this way, unless it has ended already."""
        if not self._ended.done():
            self._ended.set_result(how)
            # A channel at its end stays readable for ever.
            self._loop.remove_reader(self._channel)
            self._loop.remove_writer(self._channel)

    def close(self) -> None:
        """Let go of the descriptors, once; the process is its zygote's to end."""
        self.end(End.GONE)
        if not self._closed:
            self._closed = True
            self._made.close()

    def _greeted(self) -> None:
        try:
            word = self._channel.recv(1)
        except OSError:
            word = b""
        if word:
            self._loop.add_reader(self._channel, self._readable)
        else:
            self._drain()
            self.end(End.GONE)
        self._on_ready(self)

    def _readable(self) -> None:
        try:
            data = self._channel.recv(wire.MAX_REPLY_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._received += data
        head = wire.NONCE_BYTES + wire.LENGTH.size
        if len(self._received) >= head:
            (length,) = wire.LENGTH.unpack(self._received[wire.NONCE_BYTES : head])
            genuine = secrets.compare_digest(self._received[: wire.NONCE_BYTES], self._nonce)
            if not genuine or length > wire.MAX_REPLY_BYTES:
                self.end(End.NONSENSE)
            elif len(self._received) >= head + length:
                self.reply = bytes(self._received[head : head + length])
                self.end(End.REPLY)
        if not data:
            self.end(End.GONE)

    def _write(self) -> None:
        try:
            sent = self._channel.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except OSError:
            return  # It is gone; reading finds that too.
        self._unsent = self._unsent[sent:]
        if self._unsent:
            self._loop.add_writer(self._channel, self._write)
        else:
            self._loop.remove_writer(self._channel)

    def _tick(self, on_tick: Callable[["Child"], None]) -> None:
        if self.is_alive:
            self._drain()
            on_tick(self)
            self._loop.call_later(TICK_S, self._tick, on_tick)

    def _drain(self) -> None:
        left = _MAX_DRAIN_BYTES
        while left > 0:
            try:
                data = os.read(self._output_fd, 65_536)
            except BlockingIOError:
                return
            if not data:
                return
            left -= len(data)
            room = MAX_OUTPUT_BYTES - len(self.output)
            self.output += data[:room]
            self.dropped_bytes += max(0, len(data) - room)
