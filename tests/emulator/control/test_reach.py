"""Kinds of addresses, and the kernel's routes."""

import ipaddress
import sys

import pytest

from emulator.control.reach import is_one_host, is_public, read_routes, through_default_route


@pytest.mark.parametrize(
    ("prefix", "public"),
    [
        ("0.0.0.0/0", True),
        ("::/0", True),
        ("8.8.8.0/24", True),
        ("198.16.0.0/14", True),
        ("172.0.0.0/11", True),
        ("2000::/3", True),
        ("10.0.0.0/8", False),
        ("127.0.0.0/8", False),
        ("172.31.255.255/32", False),
        ("198.18.0.0/15", False),
        ("fd00::/8", False),
    ],
)
def test_a_prefix_is_public_if_any_of_its_addresses_may_be_somebodys(
    prefix: str, public: bool
) -> None:
    """One that only overlaps with a private range is public, too."""
    assert is_public(ipaddress.ip_network(prefix)) is public


@pytest.mark.parametrize(
    ("address", "one"),
    [
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("0.0.0.0", False),  # noqa: S104
        ("ff02::1", False),
        ("198.18.0.255", True),
        ("::1", True),
    ],
)
def test_groups_and_everybody_are_not_one_host(address: str, one: bool) -> None:
    """Traffic goes to one host."""
    assert is_one_host(ipaddress.ip_address(address)) is one


def table(*routes: str) -> str:
    """Return routes as /proc/net/route has them."""
    head = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT"
    return "\n".join([head, *(f"eth0 {word(r)} 0 1 0 0 0 {word(r, 1)} 0 0 0" for r in routes)])


def word(route: str, part: int = 0) -> str:
    """Return destination or mask of a route as the kernel prints it."""
    network = ipaddress.IPv4Network(route)
    packed = (network.network_address, network.netmask)[part].packed
    return f"{int.from_bytes(packed, sys.byteorder):08X}"


def test_an_address_without_a_narrower_route_takes_the_default_one() -> None:
    """Loopback never does."""
    routes = table("0.0.0.0/0", "198.18.0.0/15")
    addresses = ["198.18.3.1", "10.0.0.1", "127.0.0.1"]
    assert through_default_route(addresses, routes) == ["10.0.0.1"]


def test_without_any_route_no_address_is_reached_safely() -> None:
    """The kernel may have rules that this table does not show."""
    assert through_default_route(["10.0.0.1"], table()) == ["10.0.0.1"]


def test_the_kernels_own_table_is_read() -> None:
    """Whatever stands in it, loopback is not among what takes the default route."""
    assert through_default_route(["127.0.0.1"], read_routes()) == []
