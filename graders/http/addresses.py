"""Which IP addresses a stranger's request may reach: the public internet and nothing else.

The networks are listed here and not taken from `ipaddress`, whose idea of a global address
changes between releases of Python.
"""

from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network

#: IPv4 networks that are not the public internet, and what they are.
_FORBIDDEN_V4 = {
    ip_network(network): kind
    for network, kind in {
        "0.0.0.0/8": "an unspecified",
        "10.0.0.0/8": "a private",
        "100.64.0.0/10": "a shared (carrier-grade NAT)",
        "127.0.0.0/8": "a loopback",
        # Azure's metadata and DNS server answers every virtual machine at this public address.
        "168.63.129.16/32": "a metadata",
        "169.254.0.0/16": "a link-local",
        "172.16.0.0/12": "a private",
        "192.0.0.0/24": "a reserved",
        "192.0.2.0/24": "a documentation",
        "192.88.99.0/24": "a reserved",
        "192.168.0.0/16": "a private",
        "198.18.0.0/15": "a benchmarking",
        "198.51.100.0/24": "a documentation",
        "203.0.113.0/24": "a documentation",
        "224.0.0.0/4": "a multicast",
        "240.0.0.0/4": "a reserved",
    }.items()
}

#: The only part of IPv6 that is given out as public addresses, and what is not public within it.
_GLOBAL_V6 = IPv6Network("2000::/3")
_FORBIDDEN_V6 = {
    IPv6Network("2001::/23"): "a reserved",
    IPv6Network("2001:db8::/32"): "a documentation",
    IPv6Network("2002::/16"): "a 6to4",
    IPv6Network("3fff::/20"): "a documentation",
}
#: What a refusal calls addresses outside of 2000::/3.
_NAMED_V6 = {
    IPv6Network("::/128"): "an unspecified",
    IPv6Network("::1/128"): "a loopback",
    IPv6Network("fc00::/7"): "a private",
    IPv6Network("fe80::/10"): "a link-local",
    IPv6Network("ff00::/8"): "a multicast",
}
#: IPv6 networks whose last 32 bits are an IPv4 address that the packets go to.
_WRAPPERS = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"))


def forbidden(text: str) -> str | None:
    """What kind of non-public address this is, with its article; None for a public one."""
    # A scope, as in fe80::1%eth0, does not change where the address belongs.
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        if any(address in network for network in _WRAPPERS):
            return _forbidden_v4(IPv4Address(address.packed[-4:]))
        return _forbidden_v6(address)
    return _forbidden_v4(address)


def _forbidden_v4(address: IPv4Address) -> str | None:
    return next((kind for network, kind in _FORBIDDEN_V4.items() if address in network), None)


def _forbidden_v6(address: IPv6Address) -> str | None:
    if address in _GLOBAL_V6:
        return next((kind for network, kind in _FORBIDDEN_V6.items() if address in network), None)
    kinds = (kind for network, kind in _NAMED_V6.items() if address in network)
    return next(kinds, "a reserved")
