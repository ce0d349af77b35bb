"""Connections: made to the very address that was checked, kept open, used again.

httpcore's own pool looks at all its connections for every request, which costs more than the
request; here a host's idle connections are a stack.
"""

import asyncio
import socket
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cached_property
from ssl import SSLContext
from typing import Any, NamedTuple

import httpcore
import httpx

from graders.http.policy import check_address

#: Seconds that an idle connection is kept, and how many of one host.
KEEP_ALIVE_S, KEEP_IDLE = 30.0, 256
#: Seconds to reach one address of a host; the next address is tried then.
CONNECT_S = 10.0


class Key(NamedTuple):
    """What a connection may be used for: one origin, with or without the operator's trust."""

    scheme: bytes
    host: bytes
    port: int
    trusted: bool


class Connections:
    """Open connections by key."""

    def __init__(self) -> None:
        self._idle: dict[Key, list[httpcore.AsyncHTTPConnection]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._next_sweep = 0.0

    def take(self, key: Key) -> httpcore.AsyncHTTPConnection:
        """The connection that was used last, or a new one that connects when it is first used."""
        idle = self._idle.get(key, [])
        while idle:
            connection = idle.pop()
            if _reusable(connection) and not connection.has_expired():
                return connection
            self._let_go(connection)
        return httpcore.AsyncHTTPConnection(
            httpcore.Origin(key.scheme, key.host, key.port),
            ssl_context=self._ssl if key.scheme == b"https" else None,
            keepalive_expiry=KEEP_ALIVE_S,
            network_backend=_TRUSTED if key.trusted else _CHECKED,
        )

    async def give_back(self, key: Key, connection: httpcore.AsyncHTTPConnection) -> None:
        """Keep the connection when its last answer was read to the end; close it otherwise."""
        self._drop_expired()
        idle = self._idle.setdefault(key, [])
        if _reusable(connection) and len(idle) < KEEP_IDLE:
            idle.append(connection)
        else:
            await connection.aclose()

    def _drop_expired(self) -> None:
        """Close, now and then, what nobody asked for again: users name ever new hosts."""
        if time.monotonic() < self._next_sweep:
            return
        self._next_sweep = time.monotonic() + KEEP_ALIVE_S
        for key, idle in list(self._idle.items()):
            good = [each for each in idle if _reusable(each) and not each.has_expired()]
            for connection in set(idle).difference(good):
                self._let_go(connection)
            if good:
                self._idle[key] = good
            else:
                del self._idle[key]

    async def close(self) -> None:
        """Close the idle connections."""
        idle = [connection for stack in self._idle.values() for connection in stack]
        self._idle.clear()
        for connection in idle:
            await connection.aclose()
        if self._closing:
            await asyncio.wait(self._closing)

    def _let_go(self, connection: httpcore.AsyncHTTPConnection) -> None:
        task = asyncio.create_task(connection.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    @cached_property
    def _ssl(self) -> SSLContext:
        # Reads the certificates of the system or of SSL_CERT_FILE, which takes some milliseconds.
        return httpx.create_ssl_context()


def _reusable(connection: httpcore.AsyncHTTPConnection) -> bool:
    # One that never came about counts as idle and as closed.
    return connection.is_idle() and not connection.is_closed()


class _Backend(httpcore.AnyIOBackend):
    """Resolves the name itself and connects to what it looked at: no second answer can differ."""

    def __init__(self, *, checked: bool) -> None:
        self._checked = checked

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = await resolve(host, port)
        if self._checked:
            # All of them, before any is used: a name with a public and a private address is a trap.
            for address in addresses:
                check_address(address, host=host)
        for position, address in enumerate(addresses, start=1):
            try:
                return await super().connect_tcp(
                    address, port, CONNECT_S, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                if position == len(addresses):
                    raise
        raise httpcore.ConnectError(f"{host} has no address")


async def resolve(host: str, port: int) -> list[str]:
    """The addresses of a host, in the system's order; raises `httpcore.ConnectError`."""
    try:
        found = await _looked_up(host, port)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(f"{host} cannot be resolved") from error
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def _looked_up(host: str, port: int) -> list[Any]:
    """Look up a name in a thread of its own: a few names that nobody answers for would fill a pool.

    The thread may outlive the caller's patience; then nobody hears of what it found.
    """
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[Any]] = loop.create_future()

    def settle(addresses: list[Any], error: Exception | None) -> None:
        if found.done():
            return
        if error is None:
            found.set_result(addresses)
        else:
            found.set_exception(error)

    def look_up() -> None:
        addresses: list[Any] = []
        trouble: Exception | None = None
        try:
            addresses = list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            trouble = error
        with suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(settle, addresses, trouble)

    threading.Thread(target=look_up, name="look-up", daemon=True).start()
    return await found


_TRUSTED, _CHECKED = _Backend(checked=False), _Backend(checked=True)
