"""Free ports, remembered per folder so that URLs stay the same after a restart."""

import errno
import json
import socket
from pathlib import Path

from core.errors import ConfigurationError

LOCALHOST = "127.0.0.1"


class PortBook:
    """Chooses ports for names and writes them to `folder/ports.json`."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "ports.json"
        self._ports: dict[str, int] = {}
        if self._path.exists():
            self._ports = json.loads(self._path.read_text())

    def choose(self, name: str, *, preferred: int | None = None, host: str = LOCALHOST) -> int:
        """Return the remembered port, else the preferred one, else any; it is free just now.

        A remembered port that another program has taken since is replaced. Raises
        ConfigurationError when no server of this machine can listen on `host`.
        """
        wishes = (self._ports.get(name), preferred)
        port = next((wish for wish in wishes if wish and is_free(wish, host=host)), None)
        return self._remember(name, port or self._any_free(host))

    def require(self, name: str, port: int, *, host: str) -> int:
        """Return the port somebody asked for; raises ConfigurationError when it cannot be had."""
        if reason := obstacle(port, host=host):
            raise ConfigurationError(reason)
        return self._remember(name, port)

    def remembered(self) -> dict[str, int]:
        """Return every port chosen so far, by name."""
        return dict(self._ports)

    def _any_free(self, host: str) -> int:
        if reason := obstacle(0, host=host):
            raise ConfigurationError(reason)
        while True:
            with socket.socket() as probe:
                probe.bind((LOCALHOST, 0))
                port = int(probe.getsockname()[1])
            if port not in self._ports.values() and is_free(port, host=host):
                return port

    def _remember(self, name: str, port: int) -> int:
        self._ports[name] = port
        self._path.write_text(json.dumps(self._ports, indent=2))
        return port


def is_free(port: int, *, host: str) -> bool:
    """Say whether a server could listen on the port now."""
    return obstacle(port, host=host) is None


def obstacle(port: int, *, host: str) -> str | None:
    """Return the sentence that says why no server could listen there now, or None.

    Port 0 asks about the address alone.
    """
    try:
        # Every address of the name, as servers do: `localhost` often has two.
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            with socket.socket(family, kind, protocol) as probe:
                # As servers do: a port whose last connections are still closing is free.
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
    except OSError as error:
        return _reason(error, port, host)
    return None


def _reason(error: OSError, port: int, host: str) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} on {host} is in use by another program;"
            " stop that program or choose another port with --port."
        )
    if error.errno in (errno.EACCES, errno.EPERM):
        return (
            f"Port {port} on {host} may not be opened by this user;"
            " choose one above 1023 with --port."
        )
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        return (
            f"{host} is no address of this machine; name one of its own with --host, or 0.0.0.0"
            " for all of them."
        )
    return f"Port {port} on {host} cannot be opened ({error.strerror}); choose other ones."
