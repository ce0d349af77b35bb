"""An endpoint for webhooks on loopback: keeps what it gets, and answers as it is told."""

import socket
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import openai


@dataclass(frozen=True)
class Reply:
    """One answer; `hangs` gives none until the receiver closes, `broken` ends the connection."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False
    broken: bool = False


@dataclass(frozen=True)
class Message:
    """What arrived; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    def unwrap(self, secret: str) -> Any:
        """The event as the official client reads it; raises when the signature is wrong."""
        client = openai.OpenAI(api_key="none", _strict_response_validation=True)
        return client.webhooks.unwrap(self.body, dict(self.headers), secret=secret)


class Receiver:
    """Answers with `replies` in order, the last one again and again; use it as a context."""

    def __init__(self, replies: Sequence[Reply] = (Reply(),)) -> None:
        self.replies: Sequence[Reply] = replies
        self.messages: list[Message] = []
        self.arrived = threading.Condition()
        self._closing = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._answer(self)

            def log_message(self, *_: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def wait_for(self, count: int, *, timeout_s: float = 20.0) -> list[Message]:
        """Return the messages once there are so many."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.messages) >= count, timeout_s)
            return list(self.messages)

    def close(self) -> None:
        """Stop listening."""
        self._closing.set()
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> "Receiver":
        return self

    def __exit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        if not self._closing.is_set():
            self.close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["content-length"]))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        with self.arrived:
            reply = self.replies[min(len(self.messages), len(self.replies) - 1)]
            self.messages.append(Message(handler.path, headers, body))
            self.arrived.notify_all()
        if reply.hangs:
            self._closing.wait(30)
            return
        if reply.broken:
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        handler.send_response(reply.status)
        for name, value in reply.headers.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(reply.body)))
        handler.end_headers()
        try:
            handler.wfile.write(reply.body)
        except (BrokenPipeError, ConnectionResetError):
            return
