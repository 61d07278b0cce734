"""The nodes and links of a lab, and its equal-cost routes.

Only structure: parameters of switches and NICs are `emulator.job_config`'s.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

__all__ = ["End", "Fabric", "FabricLink", "Nic", "Switch"]


@dataclass(frozen=True, slots=True)
class Nic:
    """One network interface with one port, port 0."""

    name: str
    rank: int
    address: str
    mac: tuple[int, ...]
    host: str
    """Host that it is in; several NICs may share one."""


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
