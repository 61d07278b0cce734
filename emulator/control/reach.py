"""Where packets may go: kinds of addresses, and which of them only the default route leads to.

Pure functions of addresses and of the kernel's table as text; who may reach what is decided by
the agent's file and `safety`.
"""

import ipaddress
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

__all__ = ["is_one_host", "is_public", "read_routes", "through_default_route"]

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork = ipaddress.IPv4Network | ipaddress.IPv6Network

_LOCAL_USE: Final = tuple(
    ipaddress.ip_network(prefix)
    for prefix in (
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.2.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "::1/128",
        "2001:2::/48",
        "2001:db8::/32",
        "fc00::/7",
        "fe80::/10",
    )
)
"""Private, shared, loopback, link-local, benchmarking and documentation addresses.

*Source*: IANA's registries of special-purpose addresses (RFC 6890), those that are not global.
"""

_LIMITED_BROADCAST: Final = ipaddress.ip_address("255.255.255.255")
_ROUTE_TABLE: Final = Path("/proc/net/route")


def is_public(prefix: IPNetwork) -> bool:
    """Return whether a prefix holds an address that hosts of other people may have."""
    return not any(
        prefix.version == local.version and prefix.subnet_of(local)  # type: ignore[arg-type]
        for local in _LOCAL_USE
    )


def is_one_host(address: IPAddress) -> bool:
    """Return whether an address is neither of a group, of everybody, nor of nobody."""
    is_everybody = address == _LIMITED_BROADCAST
    return not (address.is_multicast or address.is_unspecified or is_everybody)


def read_routes() -> str:
    """Return the kernel's main table of IPv4 routes."""
    return _ROUTE_TABLE.read_text(encoding="ascii")


def through_default_route(addresses: Iterable[str], table: str) -> list[str]:
    """Return the IPv4 addresses outside of loopback that no narrower route leads to.

    `table` has the form of /proc/net/route: a line of heads, then destination and mask as
    hexadecimal words in the host's byte order. *Source*: Linux, net/ipv4/fib_trie.c.
    """
    narrow = [network for network in _networks(table) if network.prefixlen > 0]
    return [
        text
        for text in addresses
        if not (address := ipaddress.ip_address(text)).is_loopback
        and not any(address in network for network in narrow)
    ]


def _networks(table: str) -> list[ipaddress.IPv4Network]:
    rows = [line.split() for line in table.splitlines()[1:]]
    return [
        ipaddress.IPv4Network((_word(row[1]), str(ipaddress.IPv4Address(_word(row[7])))))
        for row in rows
        if len(row) > 7
    ]


def _word(text: str) -> bytes:
    return int(text, 16).to_bytes(4, sys.byteorder)
