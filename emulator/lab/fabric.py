"""The nodes, links and equal-cost routes that a lab's topology stands for.

Pure expansion: the same topology gives the same names, addresses and order, always. What is wrong
with an explicit topology is told to a `Complaint` with the key path; nothing is raised here.
Parameters of switches and NICs don't belong here: see `emulator.job_config`.
"""

import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from emulator.lab.documents import KeyPath
from emulator.lab.topology import Clos, Explicit, ExplicitLink, Link, Topology

__all__ = ["Complaint", "End", "Fabric", "FabricLink", "Nic", "Switch", "expand"]

Complaint = Callable[[KeyPath, str, str], None]
"""Called with key path, what is wrong and what would be right."""

ADDRESS_RANGES = (ipaddress.ip_network("198.18.0.0/15"), ipaddress.ip_network("127.0.0.0/8"))
"""Addresses that a lab may use. Source: RFC 2544 benchmarking range; loopback."""

_FIRST_ADDRESS = int(ADDRESS_RANGES[0].network_address)


@dataclass(frozen=True, slots=True)
class Nic:
    """One network interface with one port, port 0."""

    name: str
    rank: int
    address: str
    mac: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Switch:
    """One switch."""

    name: str
    ports: int
    mac: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class End:
    """One end of a link."""

    is_switch: bool
    index: int
    """Into `Fabric.switches` or `Fabric.nics`."""
    port: int


@dataclass(frozen=True, slots=True)
class FabricLink:
    """One full-duplex link; direction 0 leaves end a."""

    name: str
    a: End
    b: End
    rate_bps: int
    delay_ps: int


@dataclass(frozen=True)
class Fabric:
    """Everything that stands in the lab."""

    nics: tuple[Nic, ...]
    """In the order of their ranks."""
    switches: tuple[Switch, ...]
    links: tuple[FabricLink, ...]

    @property
    def node_names(self) -> list[str]:
        """NICs in order of rank, then switches."""
        return [nic.name for nic in self.nics] + [switch.name for switch in self.switches]

    @cached_property
    def nic_links(self) -> dict[int, FabricLink]:
        """NIC index -> its link; the first, should it have more."""
        links: dict[int, FabricLink] = {}
        for link in self.links:
            for end in (link.a, link.b):
                if not end.is_switch:
                    links.setdefault(end.index, link)
        return links

    @cached_property
    def neighbours(self) -> list[list[tuple[int, End, FabricLink]]]:
        """Per switch: (own port, other end, link), ascending by port."""
        result: list[list[tuple[int, End, FabricLink]]] = [[] for _ in self.switches]
        for link in self.links:
            for own, other in ((link.a, link.b), (link.b, link.a)):
                if own.is_switch:
                    result[own.index].append((own.port, other, link))
        for entries in result:
            entries.sort(key=lambda entry: entry[0])
        return result

    @cached_property
    def attachment(self) -> list[tuple[int, int] | None]:
        """Per NIC: (switch index, port) that its link ends in; `None` without a switch."""
        result: list[tuple[int, int] | None] = [None] * len(self.nics)
        for switch, entries in enumerate(self.neighbours):
            for port, other, _ in entries:
                if not other.is_switch:
                    result[other.index] = (switch, port)
        return result

    @cached_property
    def switch_hops(self) -> NDArray[np.int32]:
        """int32[switches, switches]: links on the shortest path, -1 when there is none."""
        count = len(self.switches)
        adjacent = np.zeros((count, count), dtype=np.float32)
        for switch, entries in enumerate(self.neighbours):
            for _, other, _ in entries:
                if other.is_switch:
                    adjacent[switch, other.index] = 1.0
        hops = np.full((count, count), -1, dtype=np.int32)
        frontier = np.eye(count, dtype=np.float32)
        distance = 0
        while frontier.any():
            reached = (frontier > 0) & (hops < 0)
            hops[reached] = distance
            frontier = reached.astype(np.float32) @ adjacent
            frontier[hops >= 0] = 0
            distance += 1
        return hops

    def routes(self, switch: int) -> list[list[int]]:
        """`routes[nic]`: the equal-cost egress ports of `switch`, ascending; empty: no path."""
        per_target: dict[int, list[int]] = {}
        hops = self.switch_hops
        result: list[list[int]] = []
        for attachment in self.attachment:
            if attachment is None:
                result.append([])
                continue
            target, port = attachment
            if target == switch:
                result.append([port])
                continue
            if target not in per_target:
                per_target[target] = self._ports_towards(switch, target, hops)
            result.append(per_target[target])
        return result

    def paths(self, source: int, target: int, limit: int) -> list[list[str]]:
        """At most `limit` equal-cost paths between two NICs (indices), as names of links."""
        start = self.attachment[source]
        if start is None:
            link = self.nic_links[source]
            return [[link.name]] if target in (link.a.index, link.b.index) else []
        first = self.nic_links[source].name
        found: list[list[str]] = []
        waiting = [(start[0], [first])]
        while waiting and len(found) < limit:
            switch, names = waiting.pop()
            ports = set(self.routes(switch)[target])
            onward = [entry for entry in self.neighbours[switch] if entry[0] in ports]
            for _, other, link in reversed(onward):
                path = [*names, link.name]
                if other.is_switch:
                    waiting.append((other.index, path))
                else:
                    found.append(path)
        return found

    def _ports_towards(self, switch: int, target: int, hops: NDArray[np.int32]) -> list[int]:
        wanted = hops[switch, target] - 1
        if wanted < 0:
            return []
        return [
            port
            for port, other, _ in self.neighbours[switch]
            if other.is_switch and hops[other.index, target] == wanted
        ]


def expand(topology: Topology, complain: Complaint) -> Fabric:
    """The fabric of a topology; problems go to `complain` and the faulty part is left out."""
    if isinstance(topology, Clos):
        return _expand_clos(topology, complain)
    return _expand_explicit(topology, complain)


# Clos ---------------------------------------------------------------------------------------------


def _expand_clos(clos: Clos, complain: Complaint) -> Fabric:
    tier = clos.fabric_link
    if clos.spines == 0 and clos.leaves > 1:
        what = f"is 0 with {clos.leaves} leaves, which leaves them unconnected"
        complain(("topology", "spines"), what, "give at least one spine, or one leaf")
    if clos.spines > 0 and tier is None:
        complain(("topology", "fabric_link"), "is missing", "add `fabric_link: {rate_gbps: ...}`")
    parallel = tier.parallel if tier else 1
    leaf_ports = clos.hosts_per_leaf + clos.spines * parallel
    leaves = [_switch(f"leaf{i}", leaf_ports, i) for i in range(clos.leaves)]
    spines = [
        _switch(f"spine{i}", clos.leaves * parallel, clos.leaves + i) for i in range(clos.spines)
    ]
    nics = [
        _nic(f"host{leaf * clos.hosts_per_leaf + host}", leaf * clos.hosts_per_leaf + host,
             _address(leaf, host))
        for leaf in range(clos.leaves)
        for host in range(clos.hosts_per_leaf)
    ]  # fmt: skip
    links = list(_host_links(clos)) + list(_fabric_links(clos))
    return Fabric(tuple(nics), tuple(leaves + spines), tuple(links))


def _host_links(clos: Clos) -> Iterator[FabricLink]:
    for leaf in range(clos.leaves):
        for host in range(clos.hosts_per_leaf):
            rank = leaf * clos.hosts_per_leaf + host
            yield _link(f"host{rank}-leaf{leaf}", End(False, rank, 0), End(True, leaf, host),
                        clos.host_link)  # fmt: skip


def _fabric_links(clos: Clos) -> Iterator[FabricLink]:
    tier = clos.fabric_link
    if tier is None:
        return
    for leaf in range(clos.leaves):
        for spine in range(clos.spines):
            for lane in range(tier.parallel):
                suffix = f".{lane}" if tier.parallel > 1 else ""
                up = End(True, leaf, clos.hosts_per_leaf + spine * tier.parallel + lane)
                down = End(True, clos.leaves + spine, leaf * tier.parallel + lane)
                yield _link(f"leaf{leaf}-spine{spine}{suffix}", up, down, tier)


def _link(name: str, a: End, b: End, values: Link | ExplicitLink) -> FabricLink:
    return FabricLink(name, a, b, round(values.rate_gbps * 1e9), values.delay_ns * 1000)


def _switch(name: str, ports: int, index: int) -> Switch:
    return Switch(name, ports, (0x02, 0, 0, 1, index >> 8, index & 0xFF))


def _nic(name: str, rank: int, address: str) -> Nic:
    return Nic(name, rank, address, (0x02, 0, 0, 0, rank >> 8, rank & 0xFF))


def _address(block: int, host: int) -> str:
    return str(ipaddress.IPv4Address(_FIRST_ADDRESS + block * 256 + host + 1))


# Explicit -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _ExplicitExpansion:
    """State of one expansion: what is used already, and by which key."""

    topology: Explicit
    complain: Complaint
    names: dict[str, KeyPath] = field(default_factory=dict)
    ports: dict[End, KeyPath] = field(default_factory=dict)
    pairs: dict[tuple[str, str], int] = field(default_factory=dict)

    def expand(self) -> Fabric:
        nics = self._nics()
        switches = tuple(
            _switch(switch.name, switch.ports, index)
            for index, switch in enumerate(self.topology.switches)
        )
        for index, switch in enumerate(switches):
            self._claim_name(switch.name, ("topology", "switches", index, "name"))
        index_of = {nic.name: (False, index) for index, nic in enumerate(nics)}
        index_of |= {switch.name: (True, index) for index, switch in enumerate(switches)}
        links = [
            link
            for position, given in enumerate(self.topology.links)
            if (link := self._link(position, given, index_of)) is not None
        ]
        return Fabric(nics, switches, tuple(links))

    def _nics(self) -> tuple[Nic, ...]:
        nics: dict[int, Nic] = {}
        addresses: dict[str, KeyPath] = {}
        for index, given in enumerate(self.topology.nics):
            path: KeyPath = ("topology", "nics", index)
            self._claim_name(given.name, (*path, "name"))
            rank = index if given.rank is None else given.rank
            address = given.address or _address(index // 254, index % 254)
            self._check_address(address, (*path, "address"), addresses)
            if rank in nics:
                what = f"is {rank}, which {nics[rank].name} carries already"
                self.complain((*path, "rank"), what, "give every NIC a rank of its own")
                continue
            nics[rank] = _nic(given.name, rank, address)
        missing = sorted(set(range(len(self.topology.nics))) - nics.keys())
        if missing:
            what = f"lack rank {', '.join(map(str, missing[:8]))}"
            self.complain(("topology", "nics"), what, "number the ranks from 0 without gaps")
        return tuple(nics[rank] for rank in sorted(nics))

    def _claim_name(self, name: str, path: KeyPath) -> None:
        if name in self.names:
            self.complain(path, f"is {name}, which another node has", "give it a name of its own")
        self.names.setdefault(name, path)

    def _check_address(self, address: str, path: KeyPath, seen: dict[str, KeyPath]) -> None:
        try:
            parsed = ipaddress.IPv4Address(address)
        except ValueError:
            self.complain(path, f"is {address}", "give an IPv4 address")
            return
        if not any(parsed in network for network in ADDRESS_RANGES):
            what = f"is {address}, outside the lab's ranges"
            self.complain(path, what, "use an address in 198.18.0.0/15 or 127.0.0.0/8")
        if address in seen:
            self.complain(path, f"is {address}, which another NIC has", "give every NIC its own")
        seen.setdefault(address, path)

    def _link(
        self, position: int, given: ExplicitLink, index_of: dict[str, tuple[bool, int]]
    ) -> FabricLink | None:
        ends = []
        for side, text in enumerate(given.ends):
            end = self._end(("topology", "links", position, "ends", side), text, index_of)
            if end is None:
                return None
            ends.append(end)
        names = tuple(text.partition(":")[0] for text in given.ends)
        if names[0] == names[1]:
            path: KeyPath = ("topology", "links", position, "ends")
            self.complain(path, f"connect {names[0]} to itself", "name two nodes")
            return None
        lane = self.pairs.get((names[0], names[1]), 0)
        self.pairs[names[0], names[1]] = lane + 1
        suffix = f".{lane}" if lane else ""
        return _link(f"{names[0]}-{names[1]}{suffix}", ends[0], ends[1], given)

    def _end(self, path: KeyPath, text: str, index_of: dict[str, tuple[bool, int]]) -> End | None:
        name, _, port_text = text.partition(":")
        if name not in index_of:
            self.complain(path, f"names the node {name}, which is not declared", "declare it")
            return None
        is_switch, index = index_of[name]
        if not (port_text.isascii() and port_text.isdigit()) and not (
            port_text == "" and not is_switch
        ):
            self.complain(path, f"is {text!r}", "write node:port, for example leaf0:3")
            return None
        end = End(is_switch, index, int(port_text or 0))
        ports = self.topology.switches[index].ports if is_switch else 1
        if end.port >= ports:
            what = f"is port {end.port} of {name}, which has {ports}"
            self.complain(path, what, f"use a port from 0 to {ports - 1}")
            return None
        if end in self.ports:
            other = self.ports[end]
            what = f"uses port {end.port} of {name}, which {other[1]}.{other[2]} uses already"
            self.complain(path, what, "give every link a port of its own")
            return None
        self.ports[end] = path
        return end


def _expand_explicit(topology: Explicit, complain: Complaint) -> Fabric:
    return _ExplicitExpansion(topology, complain).expand()
