"""The dependency graph of one rank, over rows: from node ids to a topological order.

Knows nothing of what a row does.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import dataplane
from dataplane.errors import Problem
from traffic_profiles.chakra.table import TraceTable

__all__ = ["Edges", "RankGraph", "children_of", "cycle_problem", "rank_graph", "to_parents"]

Rows = npt.NDArray[np.int64]
_CYCLE_SHOWN = 6


@dataclass(frozen=True, slots=True, eq=False)
class Edges:
    """Directed edges between rows: `parent[i]` must be done before `child[i]`."""

    parent: Rows
    child: Rows

    def __len__(self) -> int:
        """Count of edges."""
        return len(self.parent)

    def joined(self, other: "Edges") -> "Edges":
        """These edges and those of `other`."""
        parent = np.concatenate([self.parent, other.parent])
        return Edges(parent, np.concatenate([self.child, other.child]))

    def without(self, known: "Edges", rows: int) -> "Edges":
        """Edges that are not among `known`; both over `rows` rows."""
        ours, theirs = self.parent * rows + self.child, known.parent * rows + known.child
        new = ~np.isin(ours, theirs)
        return Edges(self.parent[new], self.child[new])


@dataclass(frozen=True, slots=True, eq=False)
class RankGraph:
    """A rank's own dependencies and what was found in them."""

    edges: Edges
    order: npt.NDArray[np.uint32]
    """Rows in topological order, by time stamp where there is one, then by row."""
    dangling: int
    """Dependencies on ids that no node has; dropped."""
    first_dangling: tuple[int, int] | None
    """Row and missing id of the first of them."""
    duplicate_ids: int
    """Nodes whose id an earlier node has; dependencies mean the earliest."""
    duplicate_dependencies: int
    """Dependencies that a node lists more than once; dropped."""
    uses_ctrl_deps: bool
    """The file has no data dependencies, so its control dependencies give the order."""


def rank_graph(table: TraceTable) -> RankGraph | Problem:
    """Build the graph of a trace; a cycle is a problem."""
    uses_ctrl_deps = not len(table.data_deps) and bool(len(table.ctrl_deps))
    offsets = table.ctrl_dep_offsets if uses_ctrl_deps else table.data_dep_offsets
    ids = table.ctrl_deps if uses_ctrl_deps else table.data_deps
    unique_ids, first_row = np.unique(table.id, return_index=True)
    children = children_of(offsets)
    parents, known = _rows_of(ids, unique_ids, first_row)
    edges = _distinct(Edges(parents[known], children[known]), len(table))
    parent_offsets, parent_rows = to_parents(edges, len(table))
    order = dataplane.topological_order(parent_offsets, parent_rows, _order_keys(table))
    if len(order) < len(table):
        cycle = dataplane.find_cycle(parent_offsets, parent_rows, order)
        return cycle_problem(table, cycle)
    return RankGraph(
        edges=edges,
        order=order,
        dangling=int(np.count_nonzero(~known)),
        first_dangling=_first_dangling(children, ids, known),
        duplicate_ids=len(table) - len(unique_ids),
        duplicate_dependencies=int(np.count_nonzero(known)) - len(edges),
        uses_ctrl_deps=uses_ctrl_deps,
    )


def _rows_of(
    ids: npt.NDArray[np.uint64],
    unique_ids: npt.NDArray[np.uint64],
    first_row: npt.NDArray[np.intp],
) -> tuple[Rows, npt.NDArray[np.bool_]]:
    """Row of each id, and whether there is one."""
    if not len(unique_ids):
        return np.zeros(len(ids), np.int64), np.zeros(len(ids), np.bool_)
    position = np.minimum(np.searchsorted(unique_ids, ids), len(unique_ids) - 1)
    return first_row[position].astype(np.int64), unique_ids[position] == ids


def _first_dangling(
    children: Rows, ids: npt.NDArray[np.uint64], known: npt.NDArray[np.bool_]
) -> tuple[int, int] | None:
    if known.all():
        return None
    first = int(np.argmin(known))
    return int(children[first]), int(ids[first])


def _distinct(edges: Edges, rows: int) -> Edges:
    """Each edge once, ordered by child, then by parent."""
    keys = np.unique(edges.child * rows + edges.parent)
    return Edges(keys % max(rows, 1), keys // max(rows, 1))


def _order_keys(table: TraceTable) -> npt.NDArray[np.int64]:
    """Time stamps relative to the first; 0 where there is none, so that the parents' count."""
    has_time = table.ts_us >= 0
    if not has_time.any():
        return np.zeros(len(table), np.int64)
    return np.where(has_time, table.ts_us - table.ts_us[has_time].min(), 0)


def children_of(offsets: npt.NDArray[np.uint64]) -> Rows:
    """Row of each item of compressed rows."""
    counts = offsets[1:] - offsets[:-1]
    return np.repeat(np.arange(len(counts), dtype=np.int64), counts.astype(np.int64))


def to_parents(edges: Edges, rows: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32]]:
    """Edges as compressed rows: offsets `uint64[rows+1]` and parents `uint32[m]`."""
    by_child = np.argsort(edges.child, kind="stable")
    offsets = np.zeros(rows + 1, np.uint64)
    np.cumsum(np.bincount(edges.child, minlength=rows), out=offsets[1:])
    return offsets, edges.parent[by_child].astype(np.uint32)


def cycle_problem(table: TraceTable, cycle: list[int]) -> Problem:
    """Say which nodes wait for each other."""
    shown = cycle[:_CYCLE_SHOWN]
    nodes = [f"{int(table.id[row])} '{table.name(row)}'" for row in shown]
    chain = " waits for ".join(nodes)
    more = f" (and {len(cycle) - len(shown)} more)" if len(cycle) > len(shown) else ""
    what = f"the dependencies form a cycle of {len(cycle)}: node {chain}{more} waits for the first"
    if len(cycle) == 1:
        what = f"node {chain} depends on itself"
    return Problem(
        str(table.path),
        what,
        "remove one of these dependencies, or convert the trace again",
        place=f"rank {table.rank} row {cycle[0]}",
    )
