"""The programs' operations joined with what the engine measured of each, as one set of columns.

Knows the layout of programs and of the engine's `ops` columns; knows no files and no statistics.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["DELAY", "JOIN", "NONE_U32", "NOT_DONE", "RECV", "SEND", "Operations", "ProgramLike"]

SEND, RECV, DELAY, JOIN = range(4)
"""Kinds of operations of a program."""
NONE_U32 = 0xFFFF_FFFF
"""No instance, no row."""
NOT_DONE = np.uint64(0xFFFF_FFFF_FFFF_FFFF)
"""Start or end of an operation that hasn't happened."""


class ProgramLike(Protocol):
    """The columns of one rank's program that the records need; all have one entry per operation."""

    @property
    def rank(self) -> int:
        """The rank that runs it."""

    @property
    def kind(self) -> NDArray[np.uint8]:
        """SEND, RECV, DELAY or JOIN."""

    @property
    def peer(self) -> NDArray[np.uint32]:
        """Rank at the other side; the own one for DELAY and JOIN."""

    @property
    def peer_op(self) -> NDArray[np.uint32]:
        """Index of the matching operation in the peer's program."""

    @property
    def size_bytes(self) -> NDArray[np.uint64]:
        """Bytes of the message."""

    @property
    def lane(self) -> NDArray[np.int32]:
        """Serial resource of a DELAY; -1 none."""

    @property
    def instance(self) -> NDArray[np.uint32]:
        """Collective instance; `NONE_U32` none."""

    @property
    def row(self) -> NDArray[np.uint32]:
        """Row of the trace; `NONE_U32` none."""


@dataclass(frozen=True)
class Operations:
    """All operations of all ranks, in order of rank and index; times in ps or `NOT_DONE`."""

    rank: NDArray[np.uint32]
    kind: NDArray[np.uint8]
    peer: NDArray[np.uint32]
    partner: NDArray[np.int64]
    """Position, here, of the matching operation of a SEND or RECV."""
    size_bytes: NDArray[np.uint64]
    lane: NDArray[np.int32]
    instance: NDArray[np.uint32]
    row: NDArray[np.uint32]
    start_ps: NDArray[np.uint64]
    end_ps: NDArray[np.uint64]
    retransmitted_packets: NDArray[np.uint32] | None
    """None, like the next two, where the engine knows no packets."""
    marked_packets: NDArray[np.uint32] | None
    cnps: NDArray[np.uint32] | None

    @property
    def done(self) -> NDArray[np.bool_]:
        """Operations that have completed."""
        return np.not_equal(self.end_ps, NOT_DONE)

    @classmethod
    def joined(
        cls, programs: Sequence[ProgramLike], measured: Mapping[str, NDArray[Any]]
    ) -> "Operations":
        """Join `programs` with the engine's `ops` columns; unmeasured operations stay not done."""
        ordered = sorted(programs, key=lambda program: program.rank)
        lengths = np.array([len(program.kind) for program in ordered], dtype=np.int64)
        ranks = np.array([program.rank for program in ordered], dtype=np.int64)
        first = np.zeros(int(ranks.max(initial=-1)) + 1, dtype=np.int64)
        first[ranks] = np.cumsum(lengths) - lengths
        columns = {name: _gathered(ordered, name) for name in _PROGRAM_COLUMNS}
        position = first[measured["rank"].astype(np.int64)] + measured["op"].astype(np.int64)
        total = int(lengths.sum())

        def counted(name: str) -> NDArray[np.uint32] | None:
            known = name in measured
            return _scattered(measured[name], position, total, np.uint32(0)) if known else None

        return cls(
            rank=np.repeat(ranks, lengths).astype(np.uint32),
            partner=_partners(columns, first),
            start_ps=_scattered(measured["start_ps"], position, total, NOT_DONE),
            end_ps=_scattered(measured["end_ps"], position, total, NOT_DONE),
            **{name: columns[name] for name in _PROGRAM_COLUMNS if name != "peer_op"},
            retransmitted_packets=counted("retransmitted_packets"),
            marked_packets=counted("marked_packets"),
            cnps=counted("cnps"),
        )


_PROGRAM_COLUMNS = ("kind", "peer", "peer_op", "size_bytes", "lane", "instance", "row")


def _gathered(programs: Sequence[ProgramLike], name: str) -> NDArray[Any]:
    """One column of all programs; a program without operations adds nothing."""
    parts = [np.asarray(getattr(program, name)) for program in programs]
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.uint32)


def _partners(columns: Mapping[str, NDArray[Any]], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions of matching operations; the value is meaningless for DELAY and JOIN."""
    partner = first[columns["peer"].astype(np.int64)] + columns["peer_op"].astype(np.int64)
    message = np.isin(columns["kind"], (SEND, RECV))
    return np.where(message, partner, 0)


def _scattered(
    values: NDArray[Any], position: NDArray[np.int64], total: int, absent: Any
) -> NDArray[Any]:
    """Values placed by operation; `absent` where the engine reported nothing."""
    dense = np.full(total, absent, dtype=values.dtype)
    dense[position] = values
    return dense
