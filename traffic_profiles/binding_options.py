"""How traces are bound into a workload: everything a user may choose about it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

__all__ = ["BindingOptions", "CollectiveOrder", "IdleTime"]

IdleTime = Literal["keep", "drop"]
CollectiveOrder = Literal["communicator", "dependencies"]


@dataclass(frozen=True, slots=True)
class BindingOptions:
    """Choices of `traffic_profiles.binding.bind`."""

    group_file: Path | None = None
    """`comm_group` JSON: group name -> global ranks; `//` comments are allowed."""
    world_group: bool = False
    """A group that nothing declares is the whole world."""
    idle: IdleTime = "keep"
    """Idle time between CPU rows, where the trace has timestamps."""
    stream_order: bool = True
    """Run device rows of one stream one after the other, as a GPU does."""
    collective_order: CollectiveOrder = "communicator"
    """`communicator`: collectives of a group run one after the other on each rank, as NCCL does."""
    strict: bool = False
    """Dangling dependencies and duplicate ids are errors, not counts."""
    peak_flops: float | None = None
    """Floating-point operations per second of a device, for compute nodes without a duration."""
    memory_bandwidth_bytes_per_s: float | None = None
    """Memory bandwidth of a device, for compute and memory nodes without a duration."""
