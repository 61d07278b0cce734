"""The bound workload: every rank's trace with groups resolved, order added, and peers matched.

A workload says what each trace row does (`Action`), in which order, and which rows of different
ranks are one collective or one transfer (`Instance`). It knows no algorithm, packet or NIC.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from traffic_profiles.chakra.table import TraceTable

__all__ = [
    "KINDS",
    "NO_INSTANCE",
    "NO_LANE",
    "Action",
    "BindingReport",
    "BoundTrace",
    "Instance",
    "Workload",
]

NO_INSTANCE = 0xFFFF_FFFF
"""Value of `BoundTrace.instance` for a row that belongs to none."""
NO_LANE = -1
"""Value of `BoundTrace.lane` for a row that occupies none."""

KINDS: tuple[str, ...] = (
    "all_reduce",
    "reduce",
    "all_gather",
    "gather",
    "scatter",
    "broadcast",
    "all_to_all",
    "reduce_scatter",
    "reduce_scatter",
    "barrier",
)
"""Kind of instance for each `CollectiveType` number; a block reduce-scatter is a reduce-scatter."""


class Action(IntEnum):
    """What a row does when its parents are done."""

    NONE = 0
    """Nothing, in no time: metadata, a zero-size or single-rank collective."""
    DELAY = 1
    """Holds its lane for `duration_ps` (which may be 0)."""
    COLLECTIVE = 2
    """Issues this rank's part of a collective instance; done when that part is done."""
    SEND = 3
    """Sends to the peer of a send_recv instance."""
    RECEIVE = 4
    """Receives from the peer of a send_recv instance."""


@dataclass(frozen=True, slots=True)
class Instance:
    """One collective, or one send with its receive, over the ranks that take part."""

    id: int
    """Index in `Workload.instances`."""
    kind: str
    """One of `KINDS`, or `send_recv`."""
    group: str
    """Name of the group in `Workload.groups`; empty for send_recv."""
    ranks: tuple[int, ...]
    """Global ranks in group order; (source, destination) for send_recv."""
    rows: tuple[int, ...]
    """Trace row of each of `ranks`."""
    comm_size: int
    """Bytes as the trace says: the input buffer of one rank."""
    size_bytes: int
    """Bytes in nccl-tests' sense: all-gather and gather count the whole gathered buffer."""
    label: str
    """Name of the node on the first rank."""


@dataclass(frozen=True, slots=True, eq=False)
class BoundTrace:
    """One rank's rows with what they do and after what; n rows, m edges."""

    table: TraceTable
    """The columns as read."""
    action: npt.NDArray[np.uint8]
    """`Action` of each row, `uint8[n]`."""
    duration_ps: npt.NDArray[np.uint64]
    """Time for which a DELAY row holds its lane, idle time before it included, `uint64[n]`."""
    idle_ps: npt.NDArray[np.uint64]
    """Part of `duration_ps` that is idle time kept before the row, `uint64[n]`."""
    lane: npt.NDArray[np.int32]
    """Index into `lanes` of a DELAY row, `int32[n]`; NO_LANE for other rows."""
    lanes: tuple[str, ...]
    """Names of the rank's lanes: `cpu`, `cpu <tid>`, `device`, `stream <number>`."""
    instance: npt.NDArray[np.uint32]
    """Instance of each row, `uint32[n]`; NO_INSTANCE for rows without."""
    order: npt.NDArray[np.uint32]
    """Rows in a deterministic topological order over `parents`, `uint32[n]`."""
    parent_offsets: npt.NDArray[np.uint64]
    """`uint64[n+1]`: the parents of row i are `parents[parent_offsets[i]:parent_offsets[i+1]]`."""
    parents: npt.NDArray[np.uint32]
    """`uint32[m]`: rows that must be done first, by the trace, its streams and communicators."""

    @property
    def rank(self) -> int:
        """Global rank."""
        return self.table.rank


@dataclass(slots=True)
class BindingReport:
    """What was found and decided while binding, summed over ranks."""

    counts: dict[str, int] = field(default_factory=dict)
    """Name of a finding -> how often; only findings that occurred."""
    warnings: list[str] = field(default_factory=list)
    """Sentences for the reader of a report."""

    def count(self, name: str, amount: int = 1) -> None:
        """Add `amount` to a finding."""
        if amount:
            self.counts[name] = self.counts.get(name, 0) + amount


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """All ranks' bound traces and the instances that connect them."""

    source: str
    """Directory or file of the traces, or the profile that made them; for messages."""
    ranks: tuple[int, ...]
    """Global ranks 0..N-1."""
    bound: Mapping[int, BoundTrace]
    """Rank -> its bound trace."""
    groups: Mapping[str, tuple[int, ...]]
    """Name of a process group -> its global ranks, in group order."""
    instances: Sequence[Instance]
    """Collectives and transfers; `instances[i].id == i`, in an order in which they can be done."""
    report: BindingReport
    """Counts and warnings."""

    @property
    def tables(self) -> Mapping[int, TraceTable]:
        """Rank -> its trace as read."""
        return {rank: bound.table for rank, bound in self.bound.items()}
