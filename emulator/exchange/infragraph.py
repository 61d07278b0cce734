"""Reads InfraGraph infrastructures: expands instances, components and slices into a graph.

Edges pair their endpoints as `InfraGraphService` does: one2one in order until one side ends,
many2many each with each, an edge given twice once. A file can't make this grow beyond its limits.
"""

import re
from dataclasses import dataclass, field

from emulator.exchange.graph import Graph, GraphEnd, GraphLink, GraphNode, Role, natural, plain_name
from emulator.exchange.infragraph_file import Device, Edge, Endpoint, InfragraphFile, Instance
from emulator.exchange.slices import indices
from emulator.lab.documents import KeyPath
from emulator.lab.nodes import Complaint

__all__ = ["infragraph_graph"]

_MOST_LINKS = 65_536
_ELEMENT = re.compile(r"^([^\[\]]+)(?:\[([^\[\]]*)\])?$")
_INSIDE_HOSTS = frozenset({"xpu", "nic"})


def infragraph_graph(file: InfragraphFile, complain: Complaint) -> Graph:
    """The nodes and links of an infrastructure; problems go to `complain`."""
    expansion = _Expansion(file, complain)
    expansion.expand()
    return expansion.graph


@dataclass(slots=True)
class _Expansion:
    """State of one expansion."""

    file: InfragraphFile
    complain: Complaint
    devices: dict[str, Device] = field(init=False)
    graph: Graph = field(init=False)
    seen: set[frozenset[GraphEnd]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.devices = {device.name: device for device in self.file.devices}
        self.graph = Graph(self.file.name, ".", keeps_port_names=False)

    def expand(self) -> None:
        for position, instance in enumerate(self.file.instances):
            if instance.device not in self.devices:
                what = f"is {instance.device}, which `devices` does not have"
                path: KeyPath = ("instances", position, "device")
                self.complain(path, what, "declare the device, or correct the name")
        for position, edge in enumerate(self.file.edges):
            self._edge(edge, ("edges", position))
        self.graph.nodes = dict(
            sorted(self.graph.nodes.items(), key=lambda item: (item[1].path, natural(item[0])))
        )

    def _edge(self, edge: Edge, path: KeyPath) -> None:
        sides = [
            self._side(endpoint, (*path, name))
            for name, endpoint in (("ep1", edge.ep1), ("ep2", edge.ep2))
        ]
        if edge.scheme not in {"one2one", "many2many"}:
            what = f"is {edge.scheme}, which does not say what is linked"
            self.complain((*path, "scheme"), what, "write one2one or many2many")
            return
        if None in sides:
            return
        first, second = (side or [] for side in sides)
        many = edge.scheme == "many2many"
        if (len(first) * len(second) if many else min(len(first), len(second))) > _MOST_LINKS:
            self.complain(path, f"makes more than {_MOST_LINKS} links", "give smaller slices")
            return
        pairs = (
            ((a, b) for a in first for b in second) if many else zip(first, second, strict=False)
        )
        for a, b in pairs:
            self._link(a, b, edge, path)

    def _link(self, a: GraphEnd, b: GraphEnd, edge: Edge, path: KeyPath) -> None:
        both = frozenset((a, b))
        if a == b or both in self.seen:
            return
        self.seen.add(both)
        kind = next((link for link in self.file.links if link.name == edge.link), None)
        rate, delay = (kind.rate_gbps, kind.delay_ns) if kind else (None, None)
        self.graph.links.append(GraphLink(a, b, path, edge.link, rate, delay))

    def _side(self, endpoint: Endpoint, path: KeyPath) -> list[GraphEnd] | None:
        """Every endpoint of one side of an edge, instance by instance; `None` if it is wrong."""
        name, slice_text = _split(endpoint.instance.partition(".")[0])
        instances = [item for item in self.file.instances if item.name == name]
        if not instances or instances[0].device not in self.devices:
            if not instances:
                what = f"names {name}, which `instances` does not have"
                self.complain((*path, "instance"), what, "declare it, or correct the name")
            return None
        instance = instances[0]
        chosen = indices(slice_text, instance.count)
        if chosen is None:
            self._out_of_range(endpoint.instance, instance.count, (*path, "instance"))
            return None
        ports = self._ports(instance.device, endpoint.component, (*path, "component"))
        if ports is None or len(chosen) * len(ports) > _MOST_LINKS:
            if ports is not None:
                self.complain(path, f"are more than {_MOST_LINKS}", "give smaller slices")
            return None
        pattern = [_split(element)[0] for element in endpoint.component.split(".")]
        nodes = [self._node(instance, index, pattern) for index in chosen]
        return [GraphEnd(node, port) for node in nodes for port in ports]

    def _ports(self, device_name: str, text: str, path: KeyPath) -> list[str] | None:
        """`cx5[0:2].port[1]` as `cx5.0.port.1`, `cx5.1.port.1`."""
        found = [""]
        for element in text.split("."):
            name, slice_text = _split(element)
            device = self.devices.get(device_name)
            component = next(
                (item for item in (device.components if device else []) if item.name == name), None
            )
            if component is None:
                what = f"names {name}, which the device {device_name} does not have"
                self.complain(path, what, "name one of its components")
                return None
            chosen = indices(slice_text, component.count)
            if chosen is None:
                self._out_of_range(element, component.count, path)
                return None
            if len(found) * len(chosen) > _MOST_LINKS:
                self.complain(path, f"are more than {_MOST_LINKS}", "give smaller slices")
                return None
            found = [f"{before}.{name}.{index}" for before in found for index in chosen]
            device_name = name
        return [port.removeprefix(".") for port in found]

    def _out_of_range(self, text: str, count: int, path: KeyPath) -> None:
        what = f"is {text}, and there are {count}"
        self.complain(path, what, "write a slice within them, as [0] or [0:2]")

    def _node(self, instance: Instance, index: int, pattern: list[str]) -> str:
        """Remember the node, with all ports of the kind that the edge is on."""
        name = f"{instance.name}.{index}"
        known = self.graph.nodes.get(name)
        ports = dict.fromkeys(known.ports if known else ())
        if known is None or not any(_pattern(port) == pattern for port in ports):
            ports |= dict.fromkeys(self._all_ports(instance.device, pattern))
        place = self.file.instances.index(instance)
        self.graph.nodes[name] = GraphNode(
            name,
            self._role(instance.device),
            ("instances", place),
            _lab_name(instance, index),
            kind=instance.device,
            ports=tuple(ports),
        )
        return name

    def _all_ports(self, device: str, pattern: list[str]) -> list[str]:
        return self._ports(device, ".".join(pattern), ()) or []

    def _role(self, device_name: str) -> Role:
        """A device with accelerators or NICs inside is a host, any other a switch."""
        waiting, seen = [device_name], set[str]()
        while waiting:
            name = waiting.pop()
            if name in seen or name not in self.devices:
                continue
            seen.add(name)
            for component in self.devices[name].components:
                if component.choice in _INSIDE_HOSTS:
                    return "host"
                if component.choice == "device":
                    waiting.append(component.name)
        return "switch"


def _lab_name(instance: Instance, index: int) -> str:
    """`host` as `host3`, `tier_0` as `tier_0.3`; the only one as `host`."""
    if instance.count == 1:
        return plain_name(instance.name)
    dot = "." if instance.name[-1:].isdigit() else ""
    return plain_name(f"{instance.name}{dot}{index}")


def _pattern(port: str) -> list[str]:
    """`cx5.0.port.1` as cx5, port."""
    return port.split(".")[::2]


def _split(element: str) -> tuple[str, str]:
    """Name and slice of `nic[0:2]`; no slice is all."""
    match = _ELEMENT.match(element.strip())
    return (match[1], match[2] or "") if match else (element, "?")
