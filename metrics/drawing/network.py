"""Nodes and links of a job configuration, and which tier every switch is in."""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Link", "Network", "Nic", "Utilisation", "network_of", "tiers"]

Utilisation = Mapping[tuple[str, int], float]
"""(link, direction) -> share of the time that the line is occupied."""


@dataclass(frozen=True, slots=True)
class Nic:
    """One NIC."""

    name: str
    rank: int


@dataclass(frozen=True, slots=True)
class Link:
    """One full-duplex link; nodes are numbered with NICs first."""

    name: str
    a: int
    b: int
    rate_bps: int
    delay_ps: int


@dataclass(frozen=True, slots=True)
class Network:
    """What is drawn."""

    nics: Sequence[Nic]
    switches: Sequence[str]
    links: Sequence[Link]

    def is_switch(self, node: int) -> bool:
        """Whether a node is a switch."""
        return node >= len(self.nics)

    def name(self, node: int) -> str:
        """Name of a node."""
        count = len(self.nics)
        return self.switches[node - count] if node >= count else self.nics[node].name


def network_of(config: Mapping[str, Any]) -> Network:
    """The network of a job configuration as the dataplane takes it."""
    nics = [Nic(str(nic["name"]), int(nic.get("rank", i))) for i, nic in enumerate(config["nics"])]
    count = len(nics)
    links = [
        Link(
            str(link["name"]),
            _node(link["a"]["node"], count),
            _node(link["b"]["node"], count),
            int(link["rate_bps"]),
            int(link["delay_ps"]),
        )
        for link in config["links"]
    ]
    return Network(nics, [str(switch["name"]) for switch in config["switches"]], links)


def _node(node: Mapping[str, int], nics: int) -> int:
    return nics + node["switch"] if "switch" in node else node["nic"]


def tiers(network: Network) -> list[list[int]]:
    """Switches by their distance from the nearest NIC, the nearest first; each in order.

    In a Clos these are leaves, spines and cores. Switches that no NIC reaches are in the first.
    """
    neighbours: dict[int, list[int]] = {}
    distance: dict[int, int] = {}
    for link in network.links:
        for here, there in ((link.a, link.b), (link.b, link.a)):
            if not network.is_switch(here):
                distance.setdefault(there, 0)
            elif network.is_switch(there):
                neighbours.setdefault(here, []).append(there)
    distance = {node: 0 for node in distance if network.is_switch(node)}
    waiting = deque(sorted(distance))
    while waiting:
        node = waiting.popleft()
        for other in neighbours.get(node, ()):
            if other not in distance:
                distance[other] = distance[node] + 1
                waiting.append(other)
    first = len(network.nics)
    found: list[list[int]] = [[] for _ in range(max(distance.values(), default=0) + 1)]
    for switch in range(first, first + len(network.switches)):
        found[distance.get(switch, 0)].append(switch)
    return found
