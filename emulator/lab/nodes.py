"""Names, addresses and MACs: how nodes and links of any topology are made."""

import ipaddress
from collections.abc import Callable

from emulator.lab.documents import KeyPath
from emulator.lab.fabric import End, FabricLink, Nic, Switch
from emulator.lab.topology import ExplicitLink, Link

__all__ = [
    "ADDRESS_RANGES",
    "Complaint",
    "address_of",
    "make_link",
    "make_nic",
    "make_switch",
]

Complaint = Callable[[KeyPath, str, str], None]
"""Called with key path, what is wrong and what would be right."""

ADDRESS_RANGES = (ipaddress.ip_network("198.18.0.0/15"), ipaddress.ip_network("127.0.0.0/8"))
"""Addresses that a lab may use. Source: RFC 2544 benchmarking range; loopback."""

_FIRST_ADDRESS = int(ADDRESS_RANGES[0].network_address)
_HOSTS_PER_BLOCK = 254
_CABLE_PS_PER_METRE = 5_000


def make_link(
    name: str, a: End, b: End, rate_gbps: float, values: Link | ExplicitLink
) -> FabricLink:
    """One link with the delay of its tier and cable."""
    delay_ps = values.delay_ns * 1000 + round(values.cable_metres * _CABLE_PS_PER_METRE)
    return FabricLink(name, a, b, round(rate_gbps * 1e9), delay_ps)


def make_switch(name: str, ports: int, index: int) -> Switch:
    """The switch with this index into `Fabric.switches`."""
    return Switch(name, ports, (0x02, 0, 0, 1, index >> 8, index & 0xFF))


def make_nic(name: str, rank: int, address: str, host: str | None = None) -> Nic:
    """One NIC; without a host it is one of its own."""
    mac = (0x02, 0, 0, 0, rank >> 8, rank & 0xFF)
    return Nic(name, rank, address, mac, host or name)


def address_of(index: int) -> str:
    """The address that the NIC with this index has unless it says another."""
    block, host = divmod(index, _HOSTS_PER_BLOCK)
    return str(ipaddress.IPv4Address(_FIRST_ADDRESS + block * 256 + host + 1))
