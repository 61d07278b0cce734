"""Which agent carries which nodes, when the lab file only says how many agents there are.

NICs are cut into contiguous blocks, one for each agent; a switch goes to the agent that carries
most of its neighbours, so that a leaf stays with its hosts, and switches without a preference
(spines) go to the agent with the fewest links.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Topology", "assign", "wire_ends"]

Node = tuple[str, int]
"""Kind ("nic" or "switch") and index."""


class Topology:
    """Names and links of a job configuration (the JSON document of the engine)."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.nics: Sequence[str] = [nic["name"] for nic in config["nics"]]
        """Names of the NICs."""
        self.switches: Sequence[str] = [switch["name"] for switch in config["switches"]]
        """Names of the switches."""
        self.ranks: Mapping[str, int] = {nic["name"]: nic["rank"] for nic in config["nics"]}
        """NIC name -> rank."""
        self.addresses: Mapping[str, str] = {nic["name"]: nic["address"] for nic in config["nics"]}
        """NIC name -> IPv4 address."""
        highest_bps = _highest_rates(config)
        self.links: Sequence[tuple[str, int, str, str]] = [
            (link["name"], rate_bps, self._name(link["a"]), self._name(link["b"]))
            for link, rate_bps in zip(config["links"], highest_bps, strict=True)
        ]
        """Name, highest rate in bits/s that events give it, and node names of both ends."""

    @property
    def nodes(self) -> list[str]:
        """Names of all nodes."""
        return [*self.nics, *self.switches]

    def _name(self, end: Mapping[str, Any]) -> str:
        ((kind, index),) = end["node"].items()
        names = self.nics if kind == "nic" else self.switches
        return names[int(index)]


def _highest_rates(config: Mapping[str, Any]) -> list[int]:
    """Return for each link its rate, or the highest that an event changes it to."""
    rates_bps: list[int] = [link["rate_bps"] for link in config["links"]]
    for event in config.get("events", ()):
        changed_bps = [change["change"].get("rate_bps", 0) for change in event["changes"]]
        for link in event["links"]:
            rates_bps[link] = max(rates_bps[link], *changed_bps, 0)
    return rates_bps


def wire_ends(topology: Topology, nodes: set[str]) -> dict[str, int]:
    """Return the wire ends that some nodes carry, "link/0" or "link/1", and their rates.

    Rates are bits per second of emulated time.
    """
    ends = {}
    for name, rate_bps, a, b in topology.links:
        if a in nodes:
            ends[f"{name}/0"] = rate_bps
        if b in nodes:
            ends[f"{name}/1"] = rate_bps
    return ends


def assign(
    topology: Topology, agents: Sequence[str], *, with_switches: bool = True
) -> dict[str, list[str]]:
    """Return the nodes of each agent; every node exactly once, agents may stay empty.

    Without switches only NICs: those of a real network are carried by nobody.
    """
    owner = {
        nic: agents[index * len(agents) // len(topology.nics)]
        for index, nic in enumerate(topology.nics)
    }
    if with_switches:
        _spread_switches(topology, agents, owner)
    nodes: dict[str, list[str]] = {agent: [] for agent in agents}
    for node in topology.nodes if with_switches else topology.nics:
        nodes[owner[node]].append(node)
    return nodes


def _spread_switches(topology: Topology, agents: Sequence[str], owner: dict[str, str]) -> None:
    neighbours: dict[str, list[str]] = {node: [] for node in topology.nodes}
    for _, _, a, b in topology.links:
        neighbours[a].append(b)
        neighbours[b].append(a)
    load = Counter(dict.fromkeys(agents, 0))
    for nic in topology.nics:
        load[owner[nic]] += len(neighbours[nic])
    nics = set(topology.nics)
    # Switches with hosts first; those without have no say in where they go.
    for switch in sorted(topology.switches, key=lambda name: nics.isdisjoint(neighbours[name])):
        votes = Counter(owner[node] for node in neighbours[switch] if node in nics)
        agent = votes.most_common(1)[0][0] if votes else min(agents, key=load.__getitem__)
        owner[switch] = agent
        load[agent] += len(neighbours[switch])
