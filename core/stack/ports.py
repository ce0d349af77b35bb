"""Free ports, remembered per folder so that URLs stay the same after a restart."""

import json
import socket
from pathlib import Path

from core.errors import ConfigurationError

_HOST = "127.0.0.1"


class PortBook:
    """Chooses ports for names and writes them to `folder/ports.json`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ports.json"
        self._ports: dict[str, int] = {}
        if self._path.exists():
            self._ports = json.loads(self._path.read_text())

    def choose(self, name: str, *, preferred: int | None = None) -> int:
        """Return the remembered port, else the preferred one, else any; it is free just now.

        A remembered port that another program has taken since is replaced.
        """
        wishes = (self._ports.get(name), preferred)
        port = next((wish for wish in wishes if wish and is_free(wish, host=_HOST)), None)
        return self._remember(name, port or self._any_free())

    def require(self, name: str, port: int, *, host: str) -> int:
        """Return the port somebody asked for; raises ConfigurationError when it is taken."""
        if not is_free(port, host=host):
            raise ConfigurationError(
                f"Port {port} on {host} is in use by another program;"
                " stop that program or choose another port with --port."
            )
        return self._remember(name, port)

    def remembered(self) -> dict[str, int]:
        """Return every port chosen so far, by name."""
        return dict(self._ports)

    def _any_free(self) -> int:
        while True:
            with socket.socket() as probe:
                probe.bind((_HOST, 0))
                port = int(probe.getsockname()[1])
            if port not in self._ports.values():
                return port

    def _remember(self, name: str, port: int) -> int:
        self._ports[name] = port
        self._path.write_text(json.dumps(self._ports, indent=2))
        return port


def is_free(port: int, *, host: str) -> bool:
    """Say whether a server could listen on the port now."""
    with socket.socket() as probe:
        # As servers do: a port whose last connections are still closing is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True
