"""A lab as a containerlab topology: a rehearsal of its cabling and control plane.

Containerlab knows no rates; they go into the links' `vars`, where its templates can use them.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from emulator.exchange.graph import GraphEnd
from emulator.exchange.view import LabView
from emulator.lab.fabric import End

__all__ = ["Images", "containerlab_export"]

_DASHED_KINDS = frozenset({"nokia_srlinux", "srl"})
"""Kinds whose first data interface is e1-1 rather than eth1."""


_MANAGEMENT = ipaddress.IPv4Network("172.20.20.0/24")
"""Where containerlab gives management addresses by default."""


@dataclass(frozen=True, slots=True)
class Images:
    """What the nodes run."""

    switch_kind: str = "sonic-vs"
    switch_image: str = "docker-sonic-vs:latest"
    host_image: str = "ghcr.io/srl-labs/network-multitool:latest"


def containerlab_export(view: LabView, images: Images) -> tuple[dict[str, Any], dict[str, Any]]:
    """The topology file and the binding that makes the same lab of it."""
    names = _Names(view, images)
    fabric = view.loaded.fabric
    kinds = {"linux": {"image": images.host_image}}
    kinds |= {images.switch_kind: {"image": images.switch_image}}
    nodes: dict[str, Any] = {}
    for switch in fabric.switches:
        nodes[switch.name] = _node(images.switch_kind, view.switch_management(switch.name))
    for host in view.hosts:
        nodes[host] = _node("linux", view.host_management(host))
    links = [
        {
            "endpoints": [_label(names.end(end)) for end in link.ends],
            "vars": {"rate_gbps": link.rate_gbps, "delay_ns": link.delay_ns},
        }
        for link in view.links
    ]
    topology = {"kinds": kinds, "nodes": nodes, "links": links}
    head = {"name": view.loaded.lab.name, **_management(nodes)}
    return {**head, "topology": topology}, _binding(view, names)


def _management(nodes: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """The management network, where the nodes' addresses are not in the one that there is anyway.

    Source: containerlab's manual, "Management network": 172.20.20.0/24 unless `mgmt` says another,
    and every `mgmt-ipv4` must lie in it. Its first address is the bridge's.
    """
    given = [ipaddress.IPv4Address(n["mgmt-ipv4"]) for n in nodes.values() if "mgmt-ipv4" in n]
    if all(address in _MANAGEMENT for address in given):
        return {}
    network = ipaddress.IPv4Network((min(given), _MANAGEMENT.prefixlen), strict=False)
    while max(given) not in network or _is_taken(network, given):
        network = network.supernet()
    return {"mgmt": {"network": "rankwire-mgmt", "ipv4-subnet": str(network)}}


def _is_taken(network: ipaddress.IPv4Network, addresses: Sequence[ipaddress.IPv4Address]) -> bool:
    """Whether a node has an address that no node of the network can have."""
    own = {network.network_address, network[1], network.broadcast_address}
    return network.prefixlen > 8 and not own.isdisjoint(addresses)


class _Names:
    """Interfaces of hosts and switches."""

    def __init__(self, view: LabView, images: Images) -> None:
        self._view = view
        self._pattern = "e1-{}" if images.switch_kind in _DASHED_KINDS else "eth{}"
        self._place = {nic: i for nics in view.hosts.values() for i, nic in enumerate(nics)}

    def end(self, end: End) -> GraphEnd:
        """An end as containerlab has it; numbers begin at 1, for eth0 is the management."""
        fabric = self._view.loaded.fabric
        if end.is_switch:
            return GraphEnd(fabric.switches[end.index].name, self.port(end))
        interface = self._view.interface(end.index) or f"eth{self._place[end.index] + 1}"
        return GraphEnd(fabric.nics[end.index].host, interface)

    def port(self, end: End) -> str:
        """Interface of a switch's port."""
        return self._view.port_name(end) or self._pattern.format(end.port + 1)


def _node(kind: str, management: str | None) -> dict[str, str]:
    node = {"kind": kind}
    if management and _is_ipv4(management):
        node["mgmt-ipv4"] = management
    return node


def _is_ipv4(management: str) -> bool:
    """A lab may have names there, which containerlab has no place for: they go into the binding."""
    try:
        ipaddress.IPv4Address(management)
    except ValueError:
        return False
    return True


def _named(management: str | None) -> dict[str, str]:
    return {"management_address": management} if management and not _is_ipv4(management) else {}


def _label(end: GraphEnd) -> str:
    return f"{end.node}:{end.port}"


def _binding(view: LabView, names: _Names) -> dict[str, Any]:
    fabric = view.loaded.fabric
    nics = [
        {
            "at": _label(names.end(End(False, index, 0))),
            "name": nic.name,
            "rank": nic.rank,
            "address": nic.address,
            **_named(view.host_management(nic.host)),
        }
        for index, nic in enumerate(fabric.nics)
    ]
    switches = [
        {
            "at": switch.name,
            "ports": switch.ports,
            "port_names": [names.port(End(True, index, port)) for port in range(switch.ports)],
            **_named(view.switch_management(switch.name)),
        }
        for index, switch in enumerate(fabric.switches)
    ]
    return {**view.binding_head(), "nics": nics, "switches": switches, **view.binding_rest()}
