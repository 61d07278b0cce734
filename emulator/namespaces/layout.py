"""What a lab becomes as network namespaces: names, interfaces, addresses, rates, routes.

Pure data from a checked lab; nothing here touches the kernel.
"""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from dataplane.errors import InputError, Problem
from emulator.lab import LoadedLab
from emulator.lab.effective import EcnProfile, data_classes, ecn_profile, strict_priorities
from emulator.lab.fabric import End, FabricLink
from emulator.lab.namespaces import Namespaces

__all__ = [
    "HOST_INTERFACE",
    "NETWORK",
    "Host",
    "Layout",
    "NamespacePort",
    "NextHop",
    "Node",
    "Route",
    "lay_out",
    "routes_over",
]

NETWORK: Final = ipaddress.IPv4Network("198.18.0.0/15")
"""Every address of a lab of namespaces. Source: RFC 2544, section 12."""

HOST_INTERFACE: Final = "eth0"
"""Name of a NIC's interface in its namespace."""


@dataclass(frozen=True, slots=True)
class Node:
    """One NIC or switch: one namespace."""

    name: str
    namespace: str
    is_switch: bool
    address: str
    """A NIC's own; a switch's, from the end of the range, answers traceroute."""
    seed: int
    """Of the hash that chooses among equal-cost paths; a switch's own."""


@dataclass(frozen=True, slots=True)
class NamespacePort:
    """One end of a link, and what leaves there."""

    node: str
    is_switch: bool
    namespace: str
    interface: str
    number: int
    """Of the node's ports."""
    mac: str
    link: str
    direction: int
    """Of the link that leaves here: 0 at its end a."""
    rate_bps: int
    """In wall time: the link's rate divided by the dilation."""
    buffer_bytes: int
    """What the port holds before it drops."""
    marking: EcnProfile | None
    """Of a switch's port that marks."""
    peer_node: str
    peer_address: str
    peer_mac: str

    @property
    def index(self) -> int:
        """Index of the interface in its namespace, where 1 is the loopback interface."""
        return self.number + 2

    @property
    def place(self) -> str:
        """`namespace/interface`, unique on the machine."""
        return f"{self.namespace}/{self.interface}"


@dataclass(frozen=True, slots=True)
class NextHop:
    """One of the equal-cost ways of a route."""

    interface: str
    gateway: str


@dataclass(frozen=True, slots=True)
class Route:
    """A destination and its equal-cost next hops."""

    destination: str
    """With its prefix length."""
    next_hops: tuple[NextHop, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """Where a NIC is: what a driver needs to open it."""

    name: str
    """The NIC's name in the lab."""
    rank: int
    namespace: str
    """Name under /run/netns."""
    interface: str
    address: str
    mac: str
    gateway_address: str
    gateway_mac: str
    """Destination of every frame that leaves."""
    mtu_bytes: int
    rate_bps: int
    """Of its link, wall time."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A whole lab of namespaces."""

    lab: str
    options: Namespaces
    nodes: tuple[Node, ...]
    """NICs in the order of their ranks, then switches."""
    links: tuple[tuple[NamespacePort, NamespacePort], ...]
    """Both ends of each link, in the order of the fabric's links."""
    routes: dict[str, tuple[Route, ...]]
    """Node -> its routes."""
    hosts: dict[str, Host]
    """NIC name -> where it is."""
    strict_dscps: tuple[int, ...]
    """DSCPs of packets that HTB serves before all others; empty where all are equal."""

    @property
    def ports(self) -> Iterator[NamespacePort]:
        """Every port, link by link, end a first."""
        return (port for pair in self.links for port in pair)


def lay_out(loaded: LoadedLab) -> Layout:
    """The namespaces of a lab; raises `InputError` when it says nothing of them."""
    options = loaded.lab.namespaces
    if options is None:
        remedy = "add `namespaces: {}` to it, or give --set 'namespaces={}'"
        raise InputError(Problem(str(loaded.path), "is not a lab of network namespaces", remedy))
    return _Plan(loaded, options).layout()


def routes_over(loaded: LoadedLab, down: set[str]) -> dict[str, tuple[Route, ...]]:
    """Node -> its routes when the links of these names are down and routing knows it."""
    left = tuple(link for link in loaded.fabric.links if link.name not in down)
    options = loaded.lab.namespaces or Namespaces()
    return _Plan(replace(loaded, fabric=replace(loaded.fabric, links=left)), options).routes()


class _Plan:
    """A lab's nodes and ports on the way to a layout."""

    def __init__(self, loaded: LoadedLab, options: Namespaces) -> None:
        self._loaded = loaded
        self._fabric = loaded.fabric
        self._options = options
        self._nics = [
            Node(nic.name, self._namespace(nic.name), False, nic.address, 0)
            for nic in self._fabric.nics
        ]
        addresses = _switch_addresses({nic.address for nic in self._fabric.nics})
        self._switches = [
            Node(switch.name, self._namespace(switch.name), True, next(addresses), index + 1)
            for index, switch in enumerate(self._fabric.switches)
        ]

    def layout(self) -> Layout:
        links = tuple((self._port(link, 0), self._port(link, 1)) for link in self._fabric.links)
        hosts = {
            nic.name: self._host(nic.rank, nic.address, self._own_port(index, link))
            for index, link in sorted(self._fabric.nic_links.items(), key=lambda item: item[0])
            for nic in (self._fabric.nics[index],)
        }
        nodes = (*self._nics, *self._switches)
        name, strict = self._loaded.lab.name, self._strict_dscps()
        return Layout(name, self._options, nodes, links, self.routes(), hosts, strict)

    def routes(self) -> dict[str, tuple[Route, ...]]:
        """Node -> routes; a host has one to everywhere, or none without a link."""
        routes = {node.name: self._switch_routes(i) for i, node in enumerate(self._switches)}
        routes |= {nic.name: () for nic in self._fabric.nics}
        for index, link in self._fabric.nic_links.items():
            port = self._own_port(index, link)
            hop = NextHop(port.interface, port.peer_address)
            routes[port.node] = (Route(str(NETWORK), (hop,)),)
        return routes

    def _own_port(self, nic: int, link: FabricLink) -> NamespacePort:
        return self._port(link, int(link.a != End(False, nic, 0)))

    def _strict_dscps(self) -> tuple[int, ...]:
        """Of the classes with a strict priority, if there are others beside them."""
        lab = self._loaded.lab
        classes = lab.traffic_classes
        priorities = {item.dscp: item.priority for item in data_classes(lab)}
        priorities |= {c.dscp: c.priority for c in (classes.acknowledgement, classes.cnp)}
        strict = strict_priorities(lab)
        first = [dscp for dscp, priority in priorities.items() if priority in strict]
        if self._options.shaper != "htb" or len(first) == len(priorities):
            return ()
        return tuple(sorted(first))

    def _host(self, rank: int, address: str, port: NamespacePort) -> Host:
        return Host(
            name=port.node,
            rank=rank,
            namespace=port.namespace,
            interface=port.interface,
            address=address,
            mac=port.mac,
            gateway_address=port.peer_address,
            gateway_mac=port.peer_mac,
            mtu_bytes=self._options.mtu_bytes,
            rate_bps=port.rate_bps,
        )

    def _namespace(self, node: str) -> str:
        return f"rw-{self._loaded.lab.name}-{node}"

    def _port(self, link: FabricLink, direction: int) -> NamespacePort:
        own, other = (link.a, link.b) if direction == 0 else (link.b, link.a)
        node, peer = self._node(own), self._node(other)
        lab = self._loaded.lab
        return NamespacePort(
            node=node.name,
            is_switch=own.is_switch,
            namespace=node.namespace,
            interface=_interface(own),
            number=own.port,
            mac=self._mac(own),
            link=link.name,
            direction=direction,
            rate_bps=link.rate_bps // lab.time_dilation,
            buffer_bytes=self._buffer_bytes(own),
            marking=ecn_profile(lab, link.rate_bps) if own.is_switch else None,
            peer_node=peer.name,
            peer_address=peer.address,
            peer_mac=self._mac(other),
        )

    def _buffer_bytes(self, end: End) -> int:
        """A switch's buffer in equal parts, one for each port with a link; a host's is as large."""
        if not end.is_switch:
            return self._loaded.lab.switches.buffer_bytes
        ports = len(self._fabric.neighbours[end.index])
        return self._loaded.lab.switches.buffer_bytes // ports

    def _node(self, end: End) -> Node:
        return (self._switches if end.is_switch else self._nics)[end.index]

    def _mac(self, end: End) -> str:
        owner = (self._fabric.switches if end.is_switch else self._fabric.nics)[end.index]
        return ":".join(f"{byte:02x}" for byte in owner.mac)

    def _switch_routes(self, switch: int) -> tuple[Route, ...]:
        gateways = {
            port: NextHop(_interface(End(True, switch, port)), self._node(other).address)
            for port, other, _ in self._fabric.neighbours[switch]
        }
        return tuple(
            Route(f"{nic.address}/32", tuple(gateways[port] for port in ports))
            for nic, ports in zip(self._fabric.nics, self._fabric.routes(switch), strict=True)
            if ports
        )


def _interface(end: End) -> str:
    return f"port{end.port}" if end.is_switch else HOST_INTERFACE


def _switch_addresses(taken: set[str]) -> Iterator[str]:
    """Free addresses from the end of the range downwards."""
    last = int(NETWORK.broadcast_address) - 1
    for number in range(last, int(NETWORK.network_address), -1):
        address = str(ipaddress.IPv4Address(number))
        if address not in taken:
            yield address
