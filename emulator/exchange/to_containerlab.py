"""A lab as a containerlab topology: a rehearsal of its cabling and control plane.

Containerlab knows no rates; they go into the links' `vars`, where its templates can use them.
"""

from dataclasses import dataclass
from typing import Any

from emulator.exchange.graph import GraphEnd
from emulator.exchange.view import LabView
from emulator.lab.fabric import End

__all__ = ["Images", "containerlab_export"]

_DASHED_KINDS = frozenset({"nokia_srlinux", "srl"})
"""Kinds whose first data interface is e1-1 rather than eth1."""


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
    return {"name": view.loaded.lab.name, "topology": topology}, _binding(view, names)


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
    return {"kind": kind} | ({"mgmt-ipv4": management} if management else {})


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
        }
        for index, nic in enumerate(fabric.nics)
    ]
    switches = [
        {
            "at": switch.name,
            "ports": switch.ports,
            "port_names": [names.port(End(True, index, port)) for port in range(switch.ports)],
        }
        for index, switch in enumerate(fabric.switches)
    ]
    return {**view.binding_head(), "nics": nics, "switches": switches, **view.binding_rest()}
