"""An HTTP server that keeps what webhooks bring."""

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Receiver:
    """Where the server listens, and what arrived: bodies with their headers."""

    port: int
    arrived: "queue.Queue[tuple[str, dict[str, str]]]" = field(default_factory=queue.Queue)

    @property
    def host(self) -> str:
        """The address as RFT_OUTBOUND_HOSTS takes it."""
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        """The address for an endpoint."""
        return f"http://{self.host}/hook"

    def wait(self, seconds: float) -> tuple[str, dict[str, str]]:
        """Return the next delivery; raises queue.Empty when none comes."""
        return self.arrived.get(timeout=seconds)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Run the server on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"])).decode()
            headers = {name.lower(): value for name, value in self.headers.items()}
            receiver.arrived.put((body, headers))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    receiver = Receiver(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
