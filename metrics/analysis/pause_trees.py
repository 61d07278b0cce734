"""Who paused whom, and because of which congestion: pauses as trees.

A switch pauses the neighbour of a port when too much of what came in there is stored. The bytes
wait in egress queues; the one that holds most of them is the cause. The cause was in turn paused by
the next switch, which then is the parent, if that switch paused it

* for at least half of the time that the oldest frame of the queue had waited, or
* for some of it, and the queue took in no more in that time than its line carries: without the
  pause there would be no queue.

Otherwise the queue is congested of itself: a root.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl

__all__ = ["PauseNode", "PauseTree", "parents", "pause_trees", "trees_as_json"]

_PAUSE_FRAME_BYTES = 84
"""A pause frame with preamble and gap."""
_PS_PER_BYTE_BPS = 8e12
TREE_LIMIT = 32
"""Most trees in `run.json`, those with most paused time."""


@dataclass(slots=True)
class PauseNode:
    """All pauses of one ingress that followed from the same place."""

    switch: str
    port: int
    paused: str
    """Who was paused: a NIC, or `switch:port`."""
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Beginning and end of every pause, ns, in the order of time; they don't overlap."""
    max_held_bytes: int = 0
    """Most bytes of the ingress that were stored."""
    children: list["PauseNode"] = field(default_factory=list)

    @property
    def paused_ns(self) -> int:
        """Length of all pauses together."""
        return sum(end - begin for begin, end in self.spans)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, "PauseNode"]]:
        """All nodes from this one on, each before its children, with their depths."""
        yield depth, self
        for child in self.children:
            yield from child.walk(depth + 1)


@dataclass(slots=True)
class PauseTree:
    """One congested egress queue, and all that was paused because of it."""

    switch: str
    port: int
    towards: str
    """The node at the other end of the congested link."""
    priority: int
    max_depth_bytes: int = 0
    """Deepest queue at the beginning of one of its pauses."""
    children: list[PauseNode] = field(default_factory=list)

    def walk(self) -> Iterator[tuple[int, PauseNode]]:
        """All nodes with their depths, from 1."""
        for child in self.children:
            yield from child.walk(1)

    @property
    def paused_ns(self) -> int:
        """Paused time of all its nodes together."""
        return sum(node.paused_ns for _, node in self.walk())


def parents(pauses: Sequence[Mapping[str, Any]], links: Mapping[Any, Any]) -> list[int | None]:
    """The pause that each of `pauses` follows from, by position; None for a congestion.

    A pause has `switch` and `port` (indices), `priority`, `begin_ps`, `end_ps`, `cause_port`,
    `oldest_ps`, `depth_bytes`. `links` says of (switch, port): the (switch, port) at the other end,
    or None at a NIC; propagation delay, ps; rate, bits/s.
    """
    of_ingress: dict[tuple[int, int, int], list[int]] = {}
    for place in sorted(range(len(pauses)), key=lambda place: int(pauses[place]["begin_ps"])):
        pause = pauses[place]
        key = (pause["switch"], pause["port"], pause["priority"])
        of_ingress.setdefault(key, []).append(place)
    begins = {
        key: [int(pauses[place]["begin_ps"]) for place in places]
        for key, places in of_ingress.items()
    }
    found: list[int | None] = []
    for pause in pauses:
        beyond, delay_ps, rate_bps = links.get(
            (pause["switch"], pause["cause_port"]), (None, 0, 1.0)
        )
        ingress = (*beyond, pause["priority"]) if beyond is not None else None
        if ingress is None or ingress not in of_ingress:
            found.append(None)
            continue
        late_ps = delay_ps + int(_PAUSE_FRAME_BYTES * _PS_PER_BYTE_BPS / rate_bps)
        window = (int(pause["oldest_ps"]) - late_ps, int(pause["begin_ps"]) - late_ps)
        last = bisect_left(begins[ingress], window[1])
        overlaps = _overlaps(pauses, of_ingress[ingress][:last], window)
        found.append(_parent(pause, overlaps, window, rate_bps))
    return found


def _overlaps(
    pauses: Sequence[Mapping[str, Any]], places: Sequence[int], window: tuple[int, int]
) -> list[tuple[int, int]]:
    """Time that each pause of an ingress has in `window`, and its place; the latest first."""
    found = []
    for place in reversed(places):
        end_ps = int(pauses[place]["end_ps"])
        if end_ps <= window[0]:
            break
        begin_ps = int(pauses[place]["begin_ps"])
        found.append((min(end_ps, window[1]) - max(begin_ps, window[0]), place))
    return found


def _parent(
    pause: Mapping[str, Any],
    overlaps: Sequence[tuple[int, int]],
    window: tuple[int, int],
    rate_bps: float,
) -> int | None:
    """The pause with the longest part in the window, if pauses explain the queue."""
    paused_ps = sum(length_ps for length_ps, _ in overlaps)
    waited_ps = window[1] - window[0]
    carried_ps = int(pause["depth_bytes"]) * _PS_PER_BYTE_BPS / rate_bps
    if paused_ps <= 0 or (2 * paused_ps < waited_ps and carried_ps > waited_ps):
        return None
    return max(overlaps, key=lambda overlap: overlap[0])[1]


def pause_trees(pauses: pl.DataFrame, end_ns: int) -> list[PauseTree]:
    """Trees of the `pauses` table of the records, the most paused time first.

    Pauses that still hold end at `end_ns`. Pauses at one place that follow from the same place are
    one node; a place is not repeated on its own way to the root.
    """
    trees: dict[tuple[str, int, int], PauseTree] = {}
    nodes: dict[int, tuple[PauseTree, tuple[PauseNode, ...]]] = {}
    for row in pauses.sort("begin_ns", "pause").iter_rows(named=True):
        tree, way = nodes.get(row["parent"], (None, ()))
        if tree is None:
            key = (row["switch"], row["cause_port"], row["priority"])
            tree = trees.setdefault(
                key, PauseTree(key[0], key[1], row["cause_towards"], row["priority"])
            )
            tree.max_depth_bytes = max(tree.max_depth_bytes, row["cause_depth_bytes"])
        way = _extended(tree, way, row)
        end = row["end_ns"] if row["end_ns"] is not None else max(end_ns, row["begin_ns"])
        way[-1].spans.append((row["begin_ns"], end))
        way[-1].max_held_bytes = max(way[-1].max_held_bytes, row["max_held_bytes"])
        nodes[row["pause"]] = (tree, way)
    return sorted(trees.values(), key=lambda tree: (-tree.paused_ns, tree.switch, tree.port))


def _extended(
    tree: PauseTree, way: tuple[PauseNode, ...], row: Mapping[str, Any]
) -> tuple[PauseNode, ...]:
    """The way from the root to the node of a pause."""
    place = (row["switch"], row["port"])
    for length, node in enumerate(way, 1):
        if (node.switch, node.port) == place:
            return way[:length]
    siblings = way[-1].children if way else tree.children
    for node in siblings:
        if (node.switch, node.port) == place:
            return (*way, node)
    siblings.append(PauseNode(*place, row["paused"]))
    return (*way, siblings[-1])


def trees_as_json(trees: Iterable[PauseTree]) -> list[dict[str, Any]]:
    """The first trees as nested plain values; of the pauses of a node their number and time."""
    return [
        {
            "switch": tree.switch,
            "port": tree.port,
            "towards": tree.towards,
            "priority": tree.priority,
            "max_depth_bytes": tree.max_depth_bytes,
            "paused_ns": tree.paused_ns,
            "children": [_as_json(child) for child in tree.children],
        }
        for tree, _ in zip(trees, range(TREE_LIMIT), strict=False)
    ]


def _as_json(node: PauseNode) -> dict[str, Any]:
    return {
        "switch": node.switch,
        "port": node.port,
        "paused": node.paused,
        "pauses": len(node.spans),
        "begin_ns": node.spans[0][0],
        "end_ns": node.spans[-1][1],
        "paused_ns": node.paused_ns,
        "max_held_bytes": node.max_held_bytes,
        "children": [_as_json(child) for child in node.children],
    }
