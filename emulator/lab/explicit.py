"""Expands an explicit topology, and says what is wrong with it."""

import ipaddress
from dataclasses import dataclass, field

from emulator.lab.documents import KeyPath
from emulator.lab.fabric import End, Fabric, FabricLink, Nic
from emulator.lab.nodes import (
    ADDRESS_RANGES,
    Complaint,
    address_of,
    make_link,
    make_nic,
    make_switch,
)
from emulator.lab.topology import Explicit, ExplicitLink

__all__ = ["expand_explicit"]


@dataclass(slots=True)
class _Expansion:
    """State of one expansion: what is used already, and by which key."""

    topology: Explicit
    complain: Complaint
    names: dict[str, KeyPath] = field(default_factory=dict)
    ports: dict[End, KeyPath] = field(default_factory=dict)
    pairs: dict[tuple[str, str], int] = field(default_factory=dict)

    def expand(self) -> Fabric:
        nics = self._nics()
        switches = tuple(
            make_switch(switch.name, switch.ports, index)
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
            address = given.address or address_of(index)
            self._check_address(address, (*path, "address"), addresses)
            if rank in nics:
                what = f"is {rank}, which {nics[rank].name} carries already"
                self.complain((*path, "rank"), what, "give every NIC a rank of its own")
                continue
            nics[rank] = make_nic(given.name, rank, address)
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
        return make_link(f"{names[0]}-{names[1]}{suffix}", ends[0], ends[1], given)

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


def expand_explicit(topology: Explicit, complain: Complaint) -> Fabric:
    """The fabric of an explicit topology; faulty links are left out."""
    return _Expansion(topology, complain).expand()
