"""A schedule: the messages of one collective on n ranks, and what each of them waits for.

Positions 0..n-1 stand for the ranks of the group, in group order. Everything is in arrays, so that
256 ranks all-to-all are a few vector operations. Knows no algorithm, no trace and no program.

Each message also says which bytes of the logical buffer it carries and whether the receiver adds
or stores them; programs ignore that, proofs need it.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from traffic_profiles.program import OpKind

__all__ = ["Ints", "Messages", "Schedule", "ScheduleBuilder"]

Ints = npt.NDArray[np.int64]
"""Array of indices, positions or bytes."""


class Messages(NamedTuple):
    """Operation numbers of a batch of messages, in the batch's shape."""

    sends: Ints
    """The SEND of each message."""
    receives: Ints
    """The RECV of each message."""


@dataclass(frozen=True, slots=True, eq=False)
class Schedule:
    """Operations of a collective, sorted by position; `o` operations and `e` edges."""

    ranks: int
    """Size of the group, n."""
    kind: npt.NDArray[np.uint8]
    """`uint8[o]`, SEND, RECV or JOIN of `OpKind`."""
    position: Ints
    """`int64[o]`, who executes it."""
    peer: Ints
    """`int64[o]`, position of the other side; the own one for JOIN."""
    partner: Ints
    """`int64[o]`, operation number of the counterpart; the own one for JOIN."""
    size_bytes: Ints
    """`int64[o]`, bytes of the message; 0 for JOIN."""
    offset_bytes: Ints
    """`int64[o]`, first byte of the logical buffer that the message carries, modulo its size."""
    reduces: npt.NDArray[np.bool_]
    """`bool[o]`, the receiver adds the bytes to its own instead of storing them."""
    channel: Ints
    """`int64[o]`, the channel that the message takes; 0 for JOIN."""
    first_op: Ints
    """`int64[n + 1]`, operations of position p are `first_op[p]` to `first_op[p + 1]`."""
    edge_op: Ints
    """`int64[e]`, the operation that waits, for each edge."""
    edge_dependency: Ints
    """`int64[e]`, the operation of the same position that it waits for."""

    def __len__(self) -> int:
        """Count the operations."""
        return len(self.kind)

    @property
    def begins(self) -> Ints:
        """Operations that the issue of the collective itself must release.

        Every RECV is posted then, and so is every SEND or JOIN that waits for nothing else.
        """
        free = np.ones(len(self), np.bool_)
        free[self.edge_op] = False
        return np.flatnonzero(free | (self.kind == OpKind.RECV))

    @property
    def ends(self) -> Ints:
        """Operations that no other waits for: the collective is done when they are."""
        last = np.ones(len(self), np.bool_)
        last[self.edge_dependency] = False
        return np.flatnonzero(last)

    def bytes_by_position(self, kind: OpKind) -> Ints:
        """Sum the bytes of every position's SENDs or RECVs: `int64[n]`."""
        chosen = self.kind == kind
        totals = np.zeros(self.ranks, np.int64)
        np.add.at(totals, self.position[chosen], self.size_bytes[chosen])
        return totals


@dataclass(slots=True)
class ScheduleBuilder:
    """Collects messages and edges; numbers are final only in the schedule that `build` returns."""

    ranks: int
    """Size of the group."""
    _columns: list[npt.NDArray[np.int64]] = field(default_factory=list)
    _edges: list[npt.NDArray[np.int64]] = field(default_factory=list)
    _count: int = 0

    def messages(
        self,
        source: npt.ArrayLike,
        destination: npt.ArrayLike,
        size_bytes: npt.ArrayLike,
        offset_bytes: npt.ArrayLike,
        *,
        reduces: npt.ArrayLike = False,
        channel: npt.ArrayLike = 0,
    ) -> Messages:
        """Add messages; the arguments are broadcast against each other."""
        start, end, *properties = np.broadcast_arrays(
            np.asarray(source, np.int64),
            np.asarray(destination, np.int64),
            np.asarray(size_bytes, np.int64),
            np.asarray(offset_bytes, np.int64),
            np.asarray(reduces, np.int64),
            np.asarray(channel, np.int64),
        )
        sends = self._count + 2 * np.arange(start.size, dtype=np.int64).reshape(start.shape)
        receives = sends + 1
        self._count += 2 * start.size
        columns = np.empty((8, start.size, 2), np.int64)
        columns[0, :, 0], columns[0, :, 1] = OpKind.SEND, OpKind.RECV
        columns[1, :, 0] = columns[2, :, 1] = start.ravel()
        columns[2, :, 0] = columns[1, :, 1] = end.ravel()
        columns[3, :, 0], columns[3, :, 1] = receives.ravel(), sends.ravel()
        for row, column in enumerate(properties, 4):
            columns[row] = column.reshape(-1, 1)
        self._columns.append(columns.reshape(8, -1))
        return Messages(sends, receives)

    def joins(self, position: npt.ArrayLike) -> Ints:
        """Add an operation that takes no time at each of the positions."""
        own = np.asarray(position, np.int64)
        numbers = self._count + np.arange(own.size, dtype=np.int64).reshape(own.shape)
        self._count += own.size
        columns = np.zeros((8, own.size), np.int64)
        columns[0] = OpKind.JOIN
        columns[1] = columns[2] = own.ravel()
        columns[3] = numbers.ravel()
        self._columns.append(columns)
        return numbers

    def after(self, operations: npt.ArrayLike, dependencies: npt.ArrayLike) -> None:
        """Let operations wait for others of the same position; broadcast against each other."""
        pair = np.broadcast_arrays(np.asarray(operations), np.asarray(dependencies))
        self._edges.append(np.stack([side.ravel() for side in pair]).astype(np.int64))

    def build(self, *, keep_empty: bool = False) -> Schedule:
        """Sort by position and drop messages without bytes, with their edges.

        An algorithm whose messages may be empty must state every dependency by itself, not by
        way of another message.
        """
        columns = np.concatenate([np.empty((8, 0), np.int64), *self._columns], axis=1)
        edges = np.concatenate([np.empty((2, 0), np.int64), *self._edges], axis=1)
        kept = (columns[0] == OpKind.JOIN) | (columns[4] > 0) | keep_empty
        order = np.argsort(columns[1], kind="stable")
        order = order[kept[order]]
        number = np.full(columns.shape[1], -1, np.int64)
        number[order] = np.arange(order.size)
        edges = number[edges[:, kept[edges].all(axis=0)]]
        kind, position, peer, partner, size, offset, adds, channel = columns[:, order]
        return Schedule(
            ranks=self.ranks,
            kind=kind.astype(np.uint8),
            position=position,
            peer=peer,
            partner=number[partner],
            size_bytes=size,
            offset_bytes=offset,
            reduces=adds.astype(np.bool_),
            channel=channel,
            first_op=np.searchsorted(position, np.arange(self.ranks + 1)).astype(np.int64),
            edge_op=edges[0],
            edge_dependency=edges[1],
        )
