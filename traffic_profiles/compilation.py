"""From a workload to one program per rank.

Decides the order and the dependencies of operations; knows no lab, no address and no link rate.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from traffic_profiles.collectives.choice import AlgorithmRule
from traffic_profiles.program import Program

__all__ = ["CompileOptions", "CompileReport", "CompiledJob"]


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What the user decides about the compilation."""

    iterations: int = 1
    """How often the trace is replayed, unrolled; a rank begins the next when its last is done."""
    size_scale: float = 1.0
    """Factor on message sizes; a size that was not zero stays at least 1 byte."""
    compute_scale: float = 1.0
    """Factor on the durations of compute nodes."""
    algorithms: Sequence[AlgorithmRule] = ()
    """Algorithm rules, first match wins; without a match, what NCCL would pick."""
    ranks_per_node: int = 1
    """Consecutive ranks that share a scale-up domain; only 1 is supported."""
    operations_per_second: float | None = None
    """Duration of a compute node that has `num_ops` but no duration; None makes it 0."""


@dataclass(frozen=True, slots=True)
class CompileReport:
    """What the compilation did, for the records and the report."""

    ops: int = 0
    """Operations of all programs."""
    edges: int = 0
    """Dependencies of all programs."""
    program_bytes: int = 0
    """Memory that the programs take."""
    sent_bytes: Mapping[int, int] = field(default_factory=dict)
    """Rank to bytes that it sends in all iterations."""
    received_bytes: Mapping[int, int] = field(default_factory=dict)
    """Rank to bytes that it receives in all iterations."""
    collective_bytes: Mapping[str, int] = field(default_factory=dict)
    """Kind to bytes that its instances send in all iterations."""
    algorithms: Mapping[str, int] = field(default_factory=dict)
    """`kind/algorithm` to its number of instances in one iteration."""
    scaled_sizes: int = 0
    """Instances of one iteration whose size `size_scale` changed."""
    raised_to_one_byte: int = 0
    """Those of them that would have become 0 bytes."""
    zero_size_instances: int = 0
    """Instances of one iteration that carry no byte by their trace."""
    computes_without_duration: int = 0
    """Compute nodes of one iteration without a duration: they take no time."""
    warnings: Sequence[str] = ()
    """Sentences for the user."""


@dataclass(frozen=True, slots=True, eq=False)
class CompiledJob:
    """Programs, and what is needed to read their records."""

    programs: list[Program]
    """One per rank, ascending."""
    instances: pl.DataFrame
    """One row per instance and iteration: `instance` u32 (the row's number), `iteration` u32,
    `kind`, `group`, `ranks` list[u32], `algorithm`, `size_bytes` u64 (as in nccl-tests, after
    scaling), `traced_size_bytes` u64, `label`."""
    lanes: dict[int, list[str]]
    """Rank to the names of its lanes (`cpu:<tid>`, `gpu:<stream>`), by lane index."""
    ops_per_iteration: dict[int, int]
    """Rank to operations of one iteration `k`: operation `i` is of iteration `i // k`."""
    report: CompileReport
    """What the compilation did."""
