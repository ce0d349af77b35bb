"""Ports: the same ones after a restart, free where they will be bound, refused with the reason."""

import errno
import os
import socket
from pathlib import Path

import pytest

from core.errors import ConfigurationError
from core.stack.ports import LOCALHOST, PortBook, is_free
from core.stack.programs import reachable

#: An address kept for documentation, which no machine has.
FOREIGN = "192.0.2.1"


def test_ports_are_remembered(tmp_path: Path) -> None:
    first = PortBook(tmp_path).choose("api")
    assert PortBook(tmp_path).choose("api") == first
    assert is_free(first, host="127.0.0.1")


def test_names_get_different_ports(tmp_path: Path) -> None:
    book = PortBook(tmp_path)
    assert len({book.choose(name) for name in "abcdefgh"}) == 8


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_remembered_port_that_is_taken_is_replaced(tmp_path: Path, host: str) -> None:
    port = PortBook(tmp_path).choose("api", host=host)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port))
        other.listen()
        assert PortBook(tmp_path).choose("api", host=host) != port


def test_a_port_is_free_only_on_the_address_that_will_be_bound(tmp_path: Path) -> None:
    """Somebody listens on another loopback address: in the way of 0.0.0.0, not of 127.0.0.1."""
    with socket.socket() as other:
        other.bind(("127.0.0.2", 0))
        other.listen()
        port = other.getsockname()[1]
        assert PortBook(tmp_path).choose("a", preferred=port) == port
        assert PortBook(tmp_path).choose("b", preferred=port, host="0.0.0.0") != port


def test_a_requested_port_in_use_is_refused_by_number(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"Port {port} on 127.0.0.1 is in use"):
            PortBook(tmp_path).require("api", port, host="127.0.0.1")


def test_a_port_that_needs_more_rights_is_not_called_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Denied(socket.socket):
        def bind(self, _address: object) -> None:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(socket, "socket", Denied)
    with pytest.raises(ConfigurationError) as refusal:
        PortBook(tmp_path).require("api", 80, host=LOCALHOST)
    assert refusal.value.message == (
        "Port 80 on 127.0.0.1 may not be opened by this user; choose one above 1023 with --port."
    )


@pytest.mark.parametrize("host", [FOREIGN, "no-such-name.invalid"])
def test_a_foreign_address_is_named_with_and_without_a_port(tmp_path: Path, host: str) -> None:
    for ask in (
        lambda book: book.require("api", 8123, host=host),
        lambda book: book.choose("api", preferred=8123, host=host),
    ):
        with pytest.raises(ConfigurationError, match=f"^{host} is no address of this machine"):
            ask(PortBook(tmp_path))


@pytest.mark.parametrize(
    ("host", "called"),
    [
        ("0.0.0.0", "127.0.0.1"),
        ("", "127.0.0.1"),
        ("::", "[::1]"),
        ("fd00::1", "[fd00::1]"),
        ("rft.lan", "rft.lan"),
    ],
)
def test_an_address_to_listen_on_becomes_one_to_call(host: str, called: str) -> None:
    assert reachable(host) == called
