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
from emulator.lab.topology import Explicit, ExplicitLink, ExplicitSwitch

__all__ = ["expand_explicit"]


@dataclass(slots=True)
class _Expansion:
    """State of one expansion: what is used already, and by which key."""

    topology: Explicit
    complain: Complaint
    names: dict[str, KeyPath] = field(default_factory=dict)
    ports: dict[End, KeyPath] = field(default_factory=dict)
    pairs: dict[tuple[str, str], int] = field(default_factory=dict)
    nic_rates_gbps: list[float | None] = field(default_factory=list)
    """In order of the ranks, as the fabric's NICs."""

    def expand(self) -> Fabric:
        nics = self._nics()
        switches = tuple(
            make_switch(switch.name, switch.ports, index)
            for index, switch in enumerate(self.topology.switches)
        )
        for index, switch in enumerate(self.topology.switches):
            path: KeyPath = ("topology", "switches", index)
            self._claim_name(switch.name, (*path, "name"))
            self._check_port_names(switch, (*path, "port_names"))
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
        rates_gbps: dict[int, float | None] = {}
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
            nics[rank] = make_nic(given.name, rank, address, given.host)
            rates_gbps[rank] = given.rate_gbps
        missing = sorted(set(range(len(self.topology.nics))) - nics.keys())
        if missing:
            what = f"lack rank {', '.join(map(str, missing[:8]))}"
            self.complain(("topology", "nics"), what, "number the ranks from 0 without gaps")
        self.nic_rates_gbps = [rates_gbps[rank] for rank in sorted(nics)]
        return tuple(nics[rank] for rank in sorted(nics))

    def _claim_name(self, name: str, path: KeyPath) -> None:
        if name in self.names:
            self.complain(path, f"is {name}, which another node has", "give it a name of its own")
        self.names.setdefault(name, path)

    def _check_port_names(self, switch: ExplicitSwitch, path: KeyPath) -> None:
        names = switch.port_names
        if len(names) > switch.ports:
            what = f"are {len(names)}, and {switch.name} has {switch.ports} ports"
            self.complain(path, what, "give at most one name for each port")
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            self.complain(path, f"name {twice[0]} twice", "give every port a name of its own")

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
        rate_gbps = self._rate_gbps(position, given, ends)
        if rate_gbps is None:
            return None
        lane = self.pairs.get((names[0], names[1]), 0)
        self.pairs[names[0], names[1]] = lane + 1
        suffix = f".{lane}" if lane else ""
        name = f"{names[0]}-{names[1]}{suffix}"
        return make_link(name, ends[0], ends[1], rate_gbps, given)

    def _rate_gbps(self, position: int, given: ExplicitLink, ends: list[End]) -> float | None:
        """The rate on which the link and the ports at its ends agree."""
        path: KeyPath = ("topology", "links", position)
        ports = {
            text: rate
            for text, end in zip(given.ends, ends, strict=True)
            if (rate := self._port_rate_gbps(end)) is not None
        }
        rates = set(ports.values()) | ({given.rate_gbps} - {None})
        if len(rates) == 1:
            return rates.pop()
        if not rates:
            remedy = "add `rate_gbps:` to the link or to a node at its end"
            self.complain((*path, "rate_gbps"), "is missing", remedy)
            return None
        said = [f"{text} has {rate:g}" for text, rate in ports.items()]
        own = [] if given.rate_gbps is None else [f"the link {given.rate_gbps:g}"]
        what = f"have unequal rates: {', '.join(said + own)} Gb/s"
        self.complain((*path, "ends"), what, "give both ends and the link one rate")
        return None

    def _port_rate_gbps(self, end: End) -> float | None:
        if end.is_switch:
            return self.topology.switches[end.index].rate_gbps
        return self.nic_rates_gbps[end.index]

    def _end(self, path: KeyPath, text: str, index_of: dict[str, tuple[bool, int]]) -> End | None:
        name, _, port_text = text.partition(":")
        if name not in index_of:
            self.complain(path, f"names the node {name}, which is not declared", "declare it")
            return None
        is_switch, index = index_of[name]
        port = self._port(is_switch, index, port_text)
        if port is None:
            self.complain(path, f"is {text!r}", "write node:port, for example leaf0:3")
            return None
        end = End(is_switch, index, port)
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

    def _port(self, is_switch: bool, index: int, text: str) -> int | None:
        """A port by its name, else by its number; a NIC's may be left out."""
        names = self.topology.switches[index].port_names if is_switch else []
        if text in names:
            return names.index(text)
        if text.isascii() and text.isdigit():
            return int(text)
        return 0 if text == "" and not is_switch else None


def expand_explicit(topology: Explicit, complain: Complaint) -> Fabric:
    """The fabric of an explicit topology; faulty links are left out."""
    return _Expansion(topology, complain).expand()
