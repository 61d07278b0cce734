"""One rank's trace as columns: what the file says, before anything is decided about it.

A row is a node, in the order of the file. An absent attribute is -1. Nothing here knows other
ranks, groups or what a node will do.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["TraceTable"]


@dataclass(frozen=True, slots=True, eq=False)
class TraceTable:
    """The nodes of one rank, one row each, in the order of the file; n rows.

    *Source*: Chakra v0.0.4 `Node` and the attribute names that its writers use.
    """

    rank: int
    """Global rank, taken from the file name."""
    path: Path
    """The file."""
    dialect: str
    """What the file was found to be, for example `v0.0.4` or `v0.0.4 without metadata`."""
    id: npt.NDArray[np.uint64]
    """Node id, `uint64[n]`; unique within a well-formed file, meaningless across ranks."""
    type: npt.NDArray[np.uint8]
    """`NodeType` number, `uint8[n]`; numbers unknown to us are kept."""
    name_offsets: npt.NDArray[np.uint64]
    """`uint64[n+1]`: the name of row i is `name_bytes[name_offsets[i]:name_offsets[i+1]]`."""
    name_bytes: npt.NDArray[np.uint8]
    """All names, UTF-8, one after the other."""
    data_dep_offsets: npt.NDArray[np.uint64]
    """`uint64[n+1]`: slices of `data_deps`."""
    data_deps: npt.NDArray[np.uint64]
    """Node ids as the file has them: dangling and duplicate ones too."""
    ctrl_dep_offsets: npt.NDArray[np.uint64]
    """`uint64[n+1]`: slices of `ctrl_deps`."""
    ctrl_deps: npt.NDArray[np.uint64]
    """Node ids as the file has them."""
    duration_us: npt.NDArray[np.uint64]
    """Microseconds; for a communication node it includes waiting for peers."""
    start_us: npt.NDArray[np.uint64]
    """`start_time_micros`; 0 in every trace that current converters write."""
    is_cpu_op: npt.NDArray[np.int8]
    """1 on the CPU, 0 on the device, -1 not said."""
    stream: npt.NDArray[np.int64]
    """Device stream; 0 on CPU rows too."""
    tid: npt.NDArray[np.int64]
    """CPU thread that issued the row."""
    ts_us: npt.NDArray[np.int64]
    """Attribute `ts`: wall-clock start in microseconds."""
    comm_type: npt.NDArray[np.int8]
    """`CollectiveType` number."""
    comm_size: npt.NDArray[np.int64]
    """Bytes of the rank's input buffer (an all-gather's shard); may exceed 2^32."""
    comm_src: npt.NDArray[np.int64]
    """Global rank that sends, of a COMM_RECV."""
    comm_dst: npt.NDArray[np.int64]
    """Global rank that receives, of a COMM_SEND."""
    comm_tag: npt.NDArray[np.int64]
    """Tag of a send or receive."""
    group: npt.NDArray[np.int32]
    """Index into `groups`, `int32[n]`; -1 when the node names no group."""
    groups: tuple[str, ...]
    """Names of process groups (`pg_name`, or `comm_group` as text) that occur in the file."""
    num_ops: npt.NDArray[np.int64]
    """Floating-point operations of a compute node."""
    tensor_size: npt.NDArray[np.int64]
    """Bytes that a compute or memory node touches."""
    frame_offsets: npt.NDArray[np.uint64]
    """Byte offset of each node's message in the decompressed file; 0 within one JSON document."""
    metadata: Mapping[str, Any]
    """`version` and the attributes of the file's metadata message."""
    process_groups_json: str | None
    """Text of the `process_group:init` node's inputs, when there is one."""
    rows_in_some_dimensions: npt.NDArray[np.uint64] = field(
        default_factory=lambda: np.zeros(0, np.uint64)
    )
    """Rows whose `involved_dim` leaves out dimensions of a simulated topology."""

    def __len__(self) -> int:
        """Count of rows."""
        return len(self.id)

    def name(self, row: int) -> str:
        """Name of the node in `row`; bytes that are not UTF-8 are replaced."""
        begin, end = int(self.name_offsets[row]), int(self.name_offsets[row + 1])
        return self.name_bytes[begin:end].tobytes().decode("utf-8", "replace")

    def group_name(self, row: int) -> str | None:
        """Process group that the node in `row` names, or None."""
        index = int(self.group[row])
        return None if index < 0 else self.groups[index]

    def describe(self, row: int) -> str:
        """One phrase that names a node in a message: rank, row, id and name."""
        return f"rank {self.rank} row {row} node {int(self.id[row])} '{self.name(row)}'"
