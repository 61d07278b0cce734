"""Types of the compiled module; the sources are in `dataplane/src/bindings`."""

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str

class TraceError(Exception):
    """A trace file that cannot be read.

    `args` are the file, the byte offset in the decompressed file, what is wrong, and what would
    be right.
    """

def read_trace(
    path: str | PathLike[str], *, limit_bytes: int | None = None
) -> dict[str, Any]:
    """Read a Chakra v0.0.4 file, plain or gzip, into columns: one row for each node.

    The keys are the fields of `traffic_profiles.chakra.TraceTable`, without rank and path. A
    decompressed size above `limit_bytes` is an error. Raises `TraceError`.
    """

def topological_order(
    offsets: NDArray[np.uint64], parents: NDArray[np.uint32], keys: NDArray[np.int64]
) -> NDArray[np.uint32]:
    """Vertices in topological order, smallest key first among the ready, then smallest index.

    The parents of vertex i are `parents[offsets[i]:offsets[i+1]]`. A vertex counts with a key of
    at least its parents'. Vertices on a cycle or behind one are left out.
    """

def find_cycle(
    offsets: NDArray[np.uint64], parents: NDArray[np.uint32], order: NDArray[np.uint32]
) -> list[int]:
    """Find one cycle among the vertices that `order` leaves out; empty when there is none.

    Each vertex of the result is a parent of the one before it, the first of the last.
    """
