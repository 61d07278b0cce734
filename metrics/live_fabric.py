"""What snapshots of a running job say of its fabric: equal-cost ports, pauses, link changes.

Knows the job's configuration and the engine's columns; knows no exposition format.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["LINK_CHANGES", "PORT_LIMIT", "EqualCostPorts", "LivePauses", "link_directions"]

PORT_LIMIT = 4096
"""Most equal-cost ports that are exported."""
LINK_CHANGES = ("down", "up", "rate")

_Labels = tuple[str, ...]


def link_directions(config: Mapping[str, Any]) -> dict[tuple[str, int, int], int]:
    """Kind of node, index and port -> the direction that leaves there: twice the link, plus one."""
    found = {}
    for number, link in enumerate(config["links"]):
        for side, end in enumerate(("a", "b")):
            ((kind, index),) = link[end]["node"].items()
            found[(kind, int(index), int(link[end]["port"]))] = 2 * number + side
    return found


@dataclass(frozen=True, slots=True)
class _Port:
    labels: _Labels
    group: int
    direction: int


class EqualCostPorts:
    """The sets of ports among which each switch chooses, and how much of a set's bytes each has."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        directions = link_directions(config)
        ports = list(_equal_cost_ports(config, directions))
        self.left_out = max(len(ports) - PORT_LIMIT, 0)
        """Ports past the limit."""
        shown = ports[:PORT_LIMIT]
        self.labels: Sequence[_Labels] = [port.labels for port in shown]
        """Switch, number of the group at it, port, link."""
        self._group = np.array([port.group for port in shown], dtype=np.int64)
        self._direction = np.array([port.direction for port in shown], dtype=np.int64)

    def shares(self, by_direction: Any) -> list[tuple[_Labels, float]]:
        """Share of each port in its group; ports of groups that carried nothing are absent."""
        carried = np.asarray(by_direction, dtype=np.float64)[self._direction]
        totals = np.bincount(self._group, carried) if len(carried) else np.zeros(0)
        return [
            (labels, own / totals[group])
            for labels, own, group in zip(self.labels, carried.tolist(), self._group, strict=True)
            if totals[group] > 0
        ]


def _equal_cost_ports(
    config: Mapping[str, Any], directions: Mapping[tuple[str, int, int], int]
) -> Iterator[_Port]:
    group = -1
    for index, switch in enumerate(config["switches"]):
        sets = sorted({tuple(sorted(set(route))) for route in switch["routes"]})
        for number, ports in enumerate(ports for ports in sets if len(ports) > 1):
            group += 1
            for port in ports:
                direction = directions.get(("switch", index, port))
                if direction is not None:
                    name = config["links"][direction // 2]["name"]
                    labels = (switch["name"], str(number), str(port), name)
                    yield _Port(labels, group, direction)


class LivePauses:
    """Who paused whom, and how often."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._switches = [switch["name"] for switch in config["switches"]]
        self._paused = _neighbours(config)

    def counts(self, table: Mapping[str, Any], limit: int) -> list[tuple[_Labels, float]]:
        """Switch, port, priority and who was paused -> pauses begun; only those that there were."""
        pauses = np.asarray(table["pauses"])
        rows = np.flatnonzero(pauses)[:limit]
        found: list[tuple[_Labels, float]] = []
        for row in rows.tolist():
            switch, port = int(table["switch"][row]), int(table["port"][row])
            paused = self._paused.get((switch, port), "")
            labels = (self._switches[switch], str(port), str(table["priority"][row]), paused)
            found.append((labels, float(pauses[row])))
        return found


def _neighbours(config: Mapping[str, Any]) -> dict[tuple[int, int], str]:
    """Switch and port -> the sender at the other end of its link: a NIC, or switch:port."""
    found = {}
    for link in config["links"]:
        for here, there in ((link["a"], link["b"]), (link["b"], link["a"])):
            index = here["node"].get("switch")
            if index is None:
                continue
            ((kind, other),) = there["node"].items()
            if kind == "nic":
                name = config["nics"][other]["name"]
            else:
                name = f"{config['switches'][other]['name']}:{there['port']}"
            found[(int(index), int(here["port"]))] = str(name)
    return found
