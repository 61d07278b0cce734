"""A program: what one rank does, as a graph of sends, receives and delays in flat arrays.

A program is a compiled trace. It names peers by rank and the matching operation by its index in
the peer's program, so the engine never searches; it knows neither addresses nor time of day.
"""

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

__all__ = ["NO_INSTANCE", "NO_LANE", "NO_ROW", "OpKind", "Program"]

NO_INSTANCE = 0xFFFFFFFF
"""`Program.instance` of an operation that belongs to no communication."""
NO_ROW = 0xFFFFFFFF
"""`Program.row` of an operation that stems from no trace node."""
NO_LANE = -1
"""`Program.lane` of an operation that needs no serial resource."""


class OpKind(IntEnum):
    """What an operation does."""

    SEND = 0
    """Posts a message to a peer; complete when its last byte is acknowledged."""
    RECV = 1
    """Waits for a peer's message; complete when started and the whole message has arrived."""
    DELAY = 2
    """Takes time on a lane; one at a time on a lane, lowest ready index first."""
    JOIN = 3
    """Takes no time; complete when all its dependencies are."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The operations of one rank, one array element for each; the engine takes it as it is."""

    rank: int
    """The rank that executes it."""
    kind: NDArray[np.uint8]
    """`uint8[n]`, values of `OpKind`."""
    peer: NDArray[np.uint32]
    """`uint32[n]`, rank of the other side; the own rank for DELAY and JOIN."""
    size_bytes: NDArray[np.uint64]
    """`uint64[n]`, message size of SEND and RECV; 0 is legal."""
    duration_ps: NDArray[np.uint64]
    """`uint64[n]`, picoseconds that a DELAY takes."""
    lane: NDArray[np.int32]
    """`int32[n]`, lane of a DELAY or `NO_LANE`."""
    peer_op: NDArray[np.uint32]
    """`uint32[n]`, SEND and RECV: index of the counterpart in the peer's program."""
    channel: NDArray[np.uint16]
    """`uint16[n]`, channel of a SEND or RECV; 0 where there are none."""
    traffic_class: NDArray[np.uint8]
    """`uint8[n]`, class of the data packets of a SEND or RECV; 0 is the data class."""
    instance: NDArray[np.uint32]
    """`uint32[n]`, communication instance or `NO_INSTANCE`."""
    row: NDArray[np.uint32]
    """`uint32[n]`, row of the rank's trace table or `NO_ROW`."""
    dep_offsets: NDArray[np.uint32]
    """`uint32[n + 1]`, `deps[dep_offsets[i]:dep_offsets[i + 1]]` belong to operation `i`."""
    deps: NDArray[np.uint32]
    """`uint32[m]`, operations that must be complete before; forward references are legal."""

    def __len__(self) -> int:
        """Count the operations."""
        return len(self.kind)

    @property
    def nbytes(self) -> int:
        """Bytes that the arrays take."""
        arrays = (getattr(self, field.name) for field in fields(self) if field.name != "rank")
        return sum(int(array.nbytes) for array in arrays)
