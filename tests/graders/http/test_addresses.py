"""Which addresses a stranger's request may reach."""

import asyncio
import socket
import threading
from typing import Any

import httpcore
import httpx
import pytest

from graders.http import Outbound, Policy, Refused, Retry, Target
from graders.http.addresses import forbidden
from graders.http.connections import resolve
from graders.http.policy import parse_url

ONCE = Retry(attempts=1)

FORBIDDEN = {
    "0.0.0.0": "unspecified",
    "0.1.2.3": "unspecified",
    "10.0.0.1": "private",
    "100.64.0.1": "carrier-grade NAT",
    "100.100.100.200": "carrier-grade NAT",
    "127.0.0.1": "loopback",
    "127.255.255.254": "loopback",
    "168.63.129.16": "metadata",
    "169.254.169.254": "link-local",
    "172.16.0.1": "private",
    "172.31.255.255": "private",
    "192.0.0.192": "reserved",
    "192.0.2.1": "documentation",
    "192.168.1.1": "private",
    "198.18.0.1": "benchmarking",
    "203.0.113.9": "documentation",
    "224.0.0.1": "multicast",
    "239.255.255.255": "multicast",
    "240.0.0.1": "reserved",
    "255.255.255.255": "reserved",
    "::": "unspecified",
    "::1": "loopback",
    "::127.0.0.1": "reserved",
    "::ffff:127.0.0.1": "loopback",
    "::ffff:169.254.169.254": "link-local",
    "::ffff:0:127.0.0.1": "reserved",
    "64:ff9b::a9fe:a9fe": "link-local",
    "64:ff9b:1::1": "reserved",
    "100::1": "reserved",
    "2001::1": "reserved",
    "2001:db8::1": "documentation",
    "2002:7f00:1::": "6to4",
    "3fff::1": "documentation",
    "4000::1": "reserved",
    "fc00::1": "private",
    "fd00:ec2::254": "private",
    "fe80::1": "link-local",
    "fe80::1%eth0": "link-local",
    "fec0::1": "reserved",
    "ff02::1": "multicast",
}
PUBLIC = (
    *("1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.1", "172.15.255.255", "172.32.0.1"),
    *("168.63.129.15", "192.0.1.1", "223.255.255.255", "::ffff:8.8.8.8", "64:ff9b::808:808"),
    *("2606:4700::1111", "2a00:1450:4001::200e"),
)


@pytest.mark.parametrize(("address", "kind"), FORBIDDEN.items())
def test_forbidden(address: str, kind: str) -> None:
    assert kind in str(forbidden(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_public(address: str) -> None:
    assert forbidden(address) is None


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "017700000001", "localhost"),
        *("LOCALHOST", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "0", "0.0", "0x0"),
        *("169.254.169.254", "2852039166", "0xa9fea9fe", "[fd00:ec2::254]"),
    ],
)
def test_every_way_to_write_an_address_inside(host: str) -> None:
    with pytest.raises(Refused, match="which may not be called"):
        post(f"https://{host}/", Policy())


def post(url: str, policy: Policy) -> Any:
    async def send() -> Any:
        outbound = Outbound(policy)
        try:
            return await outbound.post(Target(parse_url(url)), b"{}", retry=ONCE)
        finally:
            await outbound.close()

    return asyncio.run(send())


def answers(*addresses: str) -> Any:
    """A resolver that says this of every name."""

    def getaddrinfo(_host: str, port: int, **_options: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]

    return getaddrinfo


class Resolver:
    """What names resolve to in a test, and where connections go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, replies: list[tuple[str, ...]]) -> None:
        self.replies, self.asked, self.connected = replies, 0, list[str]()
        monkeypatch.setattr("graders.http.connections.resolve", self._resolve)
        monkeypatch.setattr(httpcore.AnyIOBackend, "connect_tcp", self._connect)

    async def _resolve(self, _host: str, _port: int) -> list[str]:
        reply = self.replies[min(self.asked, len(self.replies) - 1)]
        self.asked += 1
        return list(reply)

    async def _connect(self, host: str, *_: Any) -> Any:
        self.connected.append(host)
        raise httpcore.ConnectError("as far as this test goes")


def test_connection_goes_to_the_address_that_was_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that answers differently a second time is only asked once."""
    names = Resolver(monkeypatch, [("8.8.8.8",), ("127.0.0.1",)])
    with pytest.raises(Exception, match="as far as this test goes"):
        post("https://rebinding.example/", Policy())
    assert (names.asked, names.connected) == (1, ["8.8.8.8"])


def test_name_with_a_public_and_a_private_address_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = Resolver(monkeypatch, [("8.8.8.8", "10.0.0.1")])
    with pytest.raises(Refused) as caught:
        post("https://both.example/", Policy())
    assert names.connected == []
    assert "10.0.0.1" not in str(caught.value), "where a name points inside is nobody's business"


def test_next_address_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Resolver(monkeypatch, [("2606:4700::1111", "8.8.8.8")])
    with pytest.raises(Exception, match="as far as this test goes"):
        post("https://two.example/", Policy())
    assert names.connected == ["2606:4700::1111", "8.8.8.8"]


def test_resolver_keeps_the_order_and_drops_repetitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", answers("9.9.9.9", "1.1.1.1", "9.9.9.9"))
    assert asyncio.run(resolve("any.example", 443)) == ["9.9.9.9", "1.1.1.1"]


def test_names_that_nobody_answers_for_keep_no_thread_from_other_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answered = threading.Event()

    def silent(*_: Any, **__: Any) -> list[Any]:
        answered.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", silent)

    async def many() -> str:
        waiting = [asyncio.create_task(resolve(f"{n}.example", 443)) for n in range(64)]
        await asyncio.sleep(0)
        done = await asyncio.wait_for(asyncio.to_thread(lambda: "done"), 5)
        for each in waiting:
            each.cancel()
        return done

    try:
        assert asyncio.run(asyncio.wait_for(many(), 10)) == "done"
    finally:
        answered.set()


def test_plain_http_needs_the_operator() -> None:
    with pytest.raises(Refused, match="must be called by https"):
        post("http://example.com/", Policy())


@pytest.mark.parametrize(
    ("allowed", "url", "passes"),
    [
        ("judge.internal", "http://judge.internal/x", True),
        ("Judge.Internal", "https://judge.internal:8443/", True),
        ("judge.internal:8443", "https://judge.internal:8443/", True),
        ("judge.internal:443", "https://judge.internal/", True),
        ("judge.internal:8443", "https://judge.internal/", False),
        ("judge.internal", "https://not-judge.internal/", False),
        ("judge.internal", "https://judge.internal.evil.example/", False),
        ("[::1]:80", "http://[::1]/", True),
        ("::1", "http://[::1]:9/", True),
        ("127.0.0.1", "http://127.0.0.1/", True),
        ("127.0.0.1", "http://127.0.0.2/", False),
    ],
)
def test_operator_allows_hosts_by_name_or_with_a_port(allowed: str, url: str, passes: bool) -> None:
    assert Policy([allowed]).allows(httpx.URL(url)) is passes


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("ftp://example.com/", "must be a URL"),
        ("file:///etc/passwd", "must be a URL"),
        ("example.com/x", "must be a URL"),
        ("https://", "must be a URL"),
        ("", "must be a URL"),
        ("https://user:secret@example.com/", "may not hold a user"),
        ("https://example.com/#part", "may not end in a #fragment"),
        ("https://example.com:99999/", "no URL"),
        ("https://example.com:0/", "no URL"),
        ("https://exa mple.com/", "no URL"),
        ("https://exa%20mple.com/", "no URL"),
        ("https://[fe80::1%25eth0]/", "no URL"),
        ("https://0177.0.0.1/", "no URL"),
        ("https://１２７.0.0.1/", "no URL"),
        ("https://example.com/\nHost: x", "no URL"),
    ],
)
def test_urls_that_are_refused(url: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        parse_url(url)
