"""Proof that a bound workload ends: a dry execution over all ranks, without time.

A row is done when its parents are; a collective when every member's parents are; a receive when
its send is, too. Whatever cannot be done waits in a circle, and the circle is the message.
"""

import numpy as np
import numpy.typing as npt

import dataplane
from dataplane.errors import InputError, Problem
from traffic_profiles.graph import Edges, children_of, to_parents
from traffic_profiles.workload import Action, BoundTrace, Workload

__all__ = ["execution_order", "validate"]

_SHOWN_AT_MOST = 8


def validate(workload: Workload) -> None:
    """Prove that the workload ends. Raises `InputError` that names who waits for whom."""
    execution_order(workload)


def execution_order(workload: Workload) -> npt.NDArray[np.int64]:
    """Instance ids in an order in which they can be done, `int64[instances]`.

    Raises `InputError` when some rows can never be done.
    """
    job = _JobGraph(workload)
    offsets, parents = to_parents(job.edges, job.vertices)
    order = dataplane.topological_order(offsets, parents, np.zeros(job.vertices, np.int64))
    if len(order) < job.vertices:
        cycle = dataplane.find_cycle(offsets, parents, order)
        raise InputError(job.deadlock(cycle, order))
    vertices = order.astype(np.int64)
    return vertices[vertices >= job.rows] - job.rows


class _JobGraph:
    """All ranks' rows as vertices, then one more for each instance.

    The vertex of a collective stands between its members' parents and its members, that of a
    transfer between its send and its receive.
    """

    def __init__(self, workload: Workload) -> None:
        self.workload = workload
        self.bound = [workload.bound[rank] for rank in workload.ranks]
        counts = [len(bound.table) for bound in self.bound]
        self.first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        self.rows = int(self.first[-1])
        self.vertices = self.rows + len(workload.instances)
        self.edges = self._edges()

    def _edges(self) -> Edges:
        parts = [
            self._edges_of(bound, int(first))
            for bound, first in zip(self.bound, self.first[:-1], strict=True)
        ]
        parents = np.concatenate([part.parent for part in parts])
        return Edges(parents, np.concatenate([part.child for part in parts]))

    def _edges_of(self, bound: BoundTrace, first: int) -> Edges:
        child = children_of(bound.parent_offsets)
        vertex = self.rows + bound.instance.astype(np.int64)
        collective = bound.action == Action.COLLECTIVE
        # A member's parents hold up the whole collective.
        target = np.where(collective[child], vertex[child], first + child)
        members = np.flatnonzero(collective)
        sends = np.flatnonzero(bound.action == Action.SEND)
        receives = np.flatnonzero(bound.action == Action.RECEIVE)
        parents = [first + bound.parents.astype(np.int64), vertex[members]]
        children = [target, first + members]
        parents += [first + sends, vertex[receives]]
        children += [vertex[sends], first + receives]
        return Edges(np.concatenate(parents), np.concatenate(children))

    def deadlock(self, cycle: list[int], order: npt.NDArray[np.uint32]) -> Problem:
        """Say who waits for whom, and which ranks are blocked."""
        done = np.zeros(self.vertices, np.bool_)
        done[order] = True
        blocked = [
            bound.rank
            for bound, begin, end in zip(self.bound, self.first[:-1], self.first[1:], strict=True)
            if not done[begin:end].all()
        ]
        chain = ", which waits for ".join(map(self._told, cycle[:_SHOWN_AT_MOST]))
        more = f" and {len(cycle) - _SHOWN_AT_MOST} more" if len(cycle) > _SHOWN_AT_MOST else ""
        ranks = ", ".join(map(str, blocked[:_SHOWN_AT_MOST]))
        ranks += ", ..." if len(blocked) > _SHOWN_AT_MOST else ""
        what = (
            f"the job would deadlock, {int(np.count_nonzero(~done[: self.rows]))} nodes of ranks "
            f"{ranks} would never run: {chain}{more}, which waits for the first"
        )
        remedy = (
            "the ranks issue these in contrary order: correct the traces, or try "
            "--collective-order dependencies or --stream-order off"
        )
        return Problem(self.workload.source, what, remedy)

    def _told(self, vertex: int) -> str:
        if vertex >= self.rows:
            instance = self.workload.instances[vertex - self.rows]
            ranks = ", ".join(map(str, instance.ranks[:_SHOWN_AT_MOST]))
            return f"{instance.kind} '{instance.label}' of ranks {ranks}"
        index = int(np.searchsorted(self.first, vertex, side="right")) - 1
        return self.bound[index].table.describe(vertex - int(self.first[index]))
