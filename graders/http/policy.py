"""Which hosts may be called: public ones by https, and whatever the operator allows."""

import re
from collections.abc import Collection
from ipaddress import ip_address

import httpx

from graders.http.addresses import forbidden
from graders.http.errors import Refused

_HOST = re.compile(rb"[A-Za-z0-9._-]+|[0-9A-Fa-f:.]+")
_WAY_OUT = "the operator can allow it with RFT_OUTBOUND_HOSTS"


def parse_url(text: str) -> httpx.URL:
    """Read an http(s) URL; raises `ValueError` with a sentence, without its full stop."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL as error:
        raise ValueError(f"it is no URL ({error})") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError("it must be a URL as in https://host/path")
    if not _HOST.fullmatch(url.raw_host) or not 0 < port_of(url) < 65_536:
        raise ValueError("it is no URL (its host or port cannot be)")
    if url.userinfo:
        raise ValueError("it may not hold a user or password; send them in a header")
    if url.fragment:
        raise ValueError("it may not end in a #fragment, which is never sent")
    return url


class Policy:
    """`allow_hosts` as in `HttpConfig`; names are compared without case."""

    def __init__(self, allow_hosts: Collection[str] = ()) -> None:
        self._allowed = frozenset(host.strip().lower().rstrip(".") for host in allow_hosts)

    def allows(self, url: httpx.URL) -> bool:
        """Whether the operator allows this very host."""
        host = url.host.lower().rstrip(".")
        shown = f"[{host}]" if ":" in host else host
        return bool({host, shown, f"{shown}:{port_of(url)}"} & self._allowed)

    def check(self, url: httpx.URL) -> None:
        """Refuse what can be refused without resolving the name; raises `Refused`."""
        if self.allows(url):
            return
        if url.scheme != "https":
            raise Refused(f"{url.host} must be called by https; {_WAY_OUT}.")
        try:
            ip_address(url.host)
        except ValueError:
            return  # A name: the addresses it has are looked at when a connection is made.
        check_address(url.host, host=url.host)


def port_of(url: httpx.URL) -> int:
    """The port of a URL, given or implied."""
    if url.port is not None:
        return url.port
    return 443 if url.scheme == "https" else 80


def check_address(address: str, *, host: str) -> None:
    """Refuse an address that is not public; raises `Refused`."""
    kind = forbidden(address)
    if kind is not None:
        raise Refused(f"{host} has {kind} address, which may not be called; {_WAY_OUT}.")
