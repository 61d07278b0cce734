"""What several agents report as one: snapshots, completed operations, final records.

Every node is carried by one agent, and every counter belongs to one node: so totals add up, and
tables are the agents' tables one after the other, in the order that `predict` gives them.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from traffic_profiles.program import Program

__all__ = ["NOT_DONE", "merge_completed", "merge_records", "merge_snapshots", "reported_operations"]

NOT_DONE: Final = np.uint64(2**64 - 1)
"""`end_ps` of an operation that never completed."""

Columns = Mapping[str, Any]

_NONE_COMPLETED: Final = {
    "rank": np.zeros(0, np.uint32),
    "op": np.zeros(0, np.uint32),
    "start_ps": np.zeros(0, np.uint64),
    "end_ps": np.zeros(0, np.uint64),
}
_SORT_KEYS: Final = {
    "ops": ("rank", "op"),
    "links": ("time_ps", "link", "direction"),
    "queues": ("time_ps", "is_switch", "node", "port", "priority"),
    "qps": ("time_ps", "source_rank", "destination_rank", "qp"),
    "flow_links": ("link", "direction", "source_rank", "destination_rank", "source_port"),
    "pauses": ("switch", "number"),
    "pause_causes": ("switch", "number"),
    "lost_pauses": ("switch",),
    "failures": ("time_ps", "rank", "peer_rank", "qp"),
    "nics": ("nic",),
    "adapters": ("nic",),
    "adapter_counters": ("nic", "name"),
    "adapter_series": ("time_ps", "nic", "name"),
    "switch_ports": ("switch", "port"),
    "impairments": ("link", "direction"),
    "link_events": ("time_ps", "event", "link"),
    "link_event_orders": ("event", "taken_ps"),
    "link_event_ends": ("time_ps", "event", "link", "end"),
    "link_losses": ("link", "direction"),
}
_COUNTERS: Final = ("retransmitted_packets", "marked_packets", "cnps")
_LARGEST: Final = frozenset({"now_ps", "lateness_p99_ns"})
"""Totals of which the largest counts: a position in time, how late the latest agent is."""


def merge_snapshots(snapshots: Sequence[Columns]) -> dict[str, Any]:
    """Return the totals over all agents."""
    merged: dict[str, Any] = {}
    for snapshot in snapshots:
        for key, value in snapshot.items():
            merged[key] = _together(key, merged[key], value) if key in merged else value
    return merged


def _together(key: str, left: Any, right: Any) -> Any:
    if isinstance(left, Mapping):
        return merge_snapshots([left, right])
    if isinstance(left, str):
        return left
    return max(left, right) if key in _LARGEST else left + right


def merge_completed(reports: Sequence[Columns]) -> dict[str, NDArray[Any]]:
    """Return the completed operations of several reports, one after the other."""
    return _concatenate([_NONE_COMPLETED, *reports])


def merge_records(parts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tables of all agents as one set of tables."""
    names = dict.fromkeys(name for part in parts for name in part)
    return {name: _merge_table(name, [p[name] for p in parts if name in p]) for name in names}


def _merge_table(name: str, tables: Sequence[Any]) -> Any:
    if not isinstance(tables[0], Mapping):
        return max(tables)
    if any(isinstance(column, Mapping) for column in tables[0].values()):
        return merge_records(tables)
    return _sorted(_concatenate(tables), _SORT_KEYS.get(name, ()))


def _concatenate(tables: Sequence[Columns]) -> dict[str, NDArray[Any]]:
    filled = [table for table in tables if any(len(column) for column in table.values())]
    parts = filled or tables[:1]
    return {name: np.concatenate([table[name] for table in parts]) for name in parts[0]}


def _sorted(table: dict[str, NDArray[Any]], keys: Sequence[str]) -> dict[str, NDArray[Any]]:
    if not keys or not set(keys) <= table.keys():
        return table
    order = np.lexsort([table[key] for key in reversed(keys)])
    return {name: column[order] for name, column in table.items()}


def reported_operations(
    programs: Sequence[Program], reports: Sequence[Columns]
) -> dict[str, NDArray[Any]]:
    """Return the operations table of an agent that gave no records, from its progress reports.

    Counters of retransmissions and marks are not known then and stand at 0.
    """
    counts = np.array([len(program) for program in programs], np.int64)
    ranks = np.array([program.rank for program in programs], np.int64)
    firsts = np.cumsum(counts) - counts
    total = int(counts.sum())
    table: dict[str, NDArray[Any]] = {
        "rank": np.repeat(ranks, counts).astype(np.uint32),
        "op": (np.arange(total) - np.repeat(firsts, counts)).astype(np.uint32),
        "start_ps": np.full(total, NOT_DONE),
        "end_ps": np.full(total, NOT_DONE),
    }
    for name in _COUNTERS:
        table[name] = np.zeros(total, np.uint32)
    done = merge_completed(reports)
    for rank, first, count in zip(ranks, firsts, counts, strict=True):
        rows = np.flatnonzero((done["rank"] == rank) & (done["op"] < count))
        for name in ("start_ps", "end_ps"):
            table[name][first + done["op"][rows].astype(np.int64)] = done[name][rows]
    return table
