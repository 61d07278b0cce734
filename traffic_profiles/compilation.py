"""From a workload to one program per rank.

Decides sizes, algorithms and iterations; knows no lab, no address and no link rate.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from dataplane.errors import InputError, Problem
from traffic_profiles.assembly import Assembly, Layout, first_rows, instance_arrays
from traffic_profiles.collectives.algorithm import Parameters
from traffic_profiles.collectives.choice import AlgorithmRule, AlgorithmTable, Choice
from traffic_profiles.collectives.expansion import ExpansionError, expand
from traffic_profiles.collectives.schedule import Ints, Schedule
from traffic_profiles.program import OpKind, Program
from traffic_profiles.traffic_classes import TrafficClassRule, class_of
from traffic_profiles.workload import Instance, Workload

__all__ = ["CompileOptions", "CompileReport", "CompiledJob", "compile_workload"]


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """What the user decides about the compilation."""

    iterations: int = 1
    """How often the trace is replayed, unrolled; a rank begins the next when its last is done."""
    size_scale: float = 1.0
    """Factor on message sizes; a size that was not zero stays at least 1 byte."""
    compute_scale: float = 1.0
    """Factor on the durations of compute nodes, idle time included."""
    algorithms: Sequence[AlgorithmRule] = ()
    """Algorithm rules, first match wins; without a match, what NCCL would pick."""
    traffic_classes: Sequence[TrafficClassRule] = ()
    """Further classes of data packets, first match wins; the rest is of the data class."""
    nccl_channels: int | None = None
    """Messages are cut as NCCL cuts them, over so many channels; None sends them whole."""
    ranks_per_node: int = 1
    """Consecutive ranks that share a scale-up domain; only 1 is supported."""
    max_ops: int = 50_000_000
    """Most operations of all programs together: 50 bytes each, 150 while they are made."""


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
    """Instances of one iteration that scaling would have left without a byte: 1 byte instead."""
    zero_size_instances: int = 0
    """Instances of one iteration that carry no byte by their trace."""
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
    scaling), `traced_size_bytes` u64 (the same before scaling), `label`, `traffic_class` (its
    name)."""
    lanes: dict[int, list[str]]
    """Rank to the names of its lanes, by lane index."""
    ops_per_iteration: dict[int, int]
    """Rank to operations of one iteration `k`: operation `i` is of iteration `i // k`."""
    report: CompileReport
    """What the compilation did."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one instance is carried."""

    instance: Instance
    size_bytes: int
    """S as in nccl-tests, after scaling."""
    choice: Choice
    traffic_class: int
    """0 for the data class, else the position among the further classes, from 1."""

    @property
    def local(self) -> bool:
        """Nothing leaves the rank: a group of one, or a transfer to itself."""
        return len(set(self.instance.ranks)) == 1

    @property
    def shape(self) -> tuple[str, str, int, int, Parameters]:
        """Arguments of `expand`: plans of equal shape share a schedule."""
        one, choice = self.instance, self.choice
        return one.kind, choice.algorithm, len(one.ranks), self.size_bytes, choice.parameters


def compile_workload(workload: Workload, options: CompileOptions) -> CompiledJob:
    """Expand every communication and lay out the programs.

    Raises `InputError` for options that cannot be met, before any large array is made.
    """
    check_options(options)
    table = AlgorithmTable(options.algorithms, options.nccl_channels)
    plans = [plan(one, table, options) for one in workload.instances]
    schedules, local = group_by_schedule(plans)
    ops_of_row = count_ops(workload, schedules)
    check_length(int(ops_of_row.sum()), workload, options)
    layout = Layout.of(workload, ops_of_row)
    assembly = Assembly.of(workload, layout, options.compute_scale)
    assembly.add_without_traffic(local)
    classes = np.zeros(len(plans), np.uint8)
    classes[[one.instance.id for one in plans]] = [one.traffic_class for one in plans]
    for schedule, instances in schedules:
        assembly.add(instances, schedule, classes)
    programs = assembly.programs(workload.ranks, options.iterations, len(plans))
    return CompiledJob(
        programs=programs,
        instances=instance_frame(plans, options),
        lanes={rank: list(workload.bound[rank].lanes) for rank in workload.ranks},
        ops_per_iteration=dict(zip(workload.ranks, np.diff(layout.op_base).tolist(), strict=True)),
        report=report(programs, plans, schedules, options),
    )


def check_options(options: CompileOptions) -> None:
    """Refuse options without a meaning; raises `InputError` with all of them."""
    wrong = []
    if options.ranks_per_node != 1:
        wrong.append(
            Problem(
                "ranks_per_node",
                f"{options.ranks_per_node} ranks would share a scale-up domain",
                "only 1 is supported: every rank has its own NIC, all traffic crosses the fabric",
            )
        )
    if options.iterations < 1:
        wrong.append(Problem("iterations", f"{options.iterations}", "give at least 1"))
    for name in ("size_scale", "compute_scale"):
        value = getattr(options, name)
        if not (0 < value < float("inf") or (name == "compute_scale" and value == 0)):
            wrong.append(Problem(name, f"the factor is {value}", "give a positive number"))
    if wrong:
        raise InputError(*wrong)


def check_length(ops: int, workload: Workload, options: CompileOptions) -> None:
    """Refuse programs that would not fit in memory."""
    total = (ops + len(workload.ranks)) * options.iterations
    if total > options.max_ops:
        raise InputError(
            Problem(
                workload.source,
                f"the programs would have {total} operations, more than {options.max_ops}",
                "take fewer iterations, larger chunk_bytes or slice_bytes, or an algorithm with "
                "fewer messages",
            )
        )


def plan(instance: Instance, table: AlgorithmTable, options: CompileOptions) -> Plan:
    """Scale the size, choose the algorithm and the traffic class."""
    size = scaled(instance.size_bytes, options.size_scale)
    kind, group, label = instance.kind, instance.group, instance.label
    choice = table.choose(kind, size, len(instance.ranks), group, label)
    number = class_of(options.traffic_classes, kind, size, group, label)
    return Plan(instance, size, choice, number)


def scaled(size_bytes: int, size_scale: float) -> int:
    """Round the scaled size; what was not zero stays at least 1 byte."""
    if size_scale == 1:
        return size_bytes
    return max(round(size_bytes * size_scale), min(size_bytes, 1))


Schedules = Sequence[tuple[Schedule, Sequence[Instance]]]


def group_by_schedule(plans: Sequence[Plan]) -> tuple[Schedules, Sequence[Instance]]:
    """Expand each shape once; instances whose traffic never leaves a rank come apart."""
    local = [plan.instance for plan in plans if plan.local]
    shapes: defaultdict[tuple[str, str, int, int, Parameters], list[Instance]] = defaultdict(list)
    for one in plans:
        if not one.local:
            shapes[one.shape].append(one.instance)
    return [(expand(*shape), instances) for shape, instances in shapes.items()], local


def count_ops(workload: Workload, schedules: Schedules) -> Ints:
    """Operations of each row, `int64[rows]`: one, or those of its part of the schedule and two."""
    row_base = first_rows(workload)
    ops_of_row = np.ones(row_base[-1], np.int64)
    for schedule, instances in schedules:
        rows, ranks, _ = instance_arrays(instances)
        own = np.diff(schedule.first_op)
        ops_of_row[row_base[ranks] + rows] = np.where(own > 0, own + 2, 1)
    return ops_of_row


def instance_frame(plans: Sequence[Plan], options: CompileOptions) -> pl.DataFrame:
    """Tabulate the instances of all iterations; see `CompiledJob.instances`."""
    class_names = ("data", *(rule.name for rule in options.traffic_classes))
    once = pl.DataFrame(
        {
            "kind": [one.instance.kind for one in plans],
            "group": [one.instance.group for one in plans],
            "ranks": [list(one.instance.ranks) for one in plans],
            "algorithm": [one.choice.algorithm for one in plans],
            "size_bytes": [one.size_bytes for one in plans],
            "traced_size_bytes": [one.instance.size_bytes for one in plans],
            "label": [one.instance.label for one in plans],
            "traffic_class": [class_names[one.traffic_class] for one in plans],
        },
        schema={
            "kind": pl.String,
            "group": pl.String,
            "ranks": pl.List(pl.UInt32),
            "algorithm": pl.String,
            "size_bytes": pl.UInt64,
            "traced_size_bytes": pl.UInt64,
            "label": pl.String,
            "traffic_class": pl.String,
        },
    )
    turns = [
        once.with_columns(iteration=pl.lit(turn, pl.UInt32)) for turn in range(options.iterations)
    ]
    return (
        pl.concat(turns).with_row_index("instance").select("instance", "iteration", *once.columns)
    )


def report(
    programs: Sequence[Program],
    plans: Sequence[Plan],
    schedules: Schedules,
    options: CompileOptions,
) -> CompileReport:
    """Sum up, and check the programs' bytes against the schedules'; raises `ExpansionError`."""
    sent, received = (
        {p.rank: int(p.size_bytes[p.kind == kind].sum()) for p in programs}
        for kind in (OpKind.SEND, OpKind.RECV)
    )
    by_kind: Counter[str] = Counter()
    for schedule, instances in schedules:
        each = int(schedule.bytes_by_position(OpKind.SEND).sum())
        by_kind[instances[0].kind] += each * len(instances) * options.iterations
    if not sum(sent.values()) == sum(received.values()) == sum(by_kind.values()):
        raise ExpansionError(
            f"internal error: programs send {sum(sent.values())} and receive "
            f"{sum(received.values())} bytes, their collectives {sum(by_kind.values())}"
        )
    changed = [one for one in plans if one.size_bytes != one.instance.size_bytes]
    raised = [one for one in plans if 0 < one.instance.size_bytes * options.size_scale <= 0.5]
    empty = [one for one in plans if one.instance.size_bytes == 0]
    return CompileReport(
        ops=sum(len(p) for p in programs),
        edges=sum(len(p.deps) for p in programs),
        program_bytes=sum(p.nbytes for p in programs),
        sent_bytes=sent,
        received_bytes=received,
        collective_bytes=dict(by_kind),
        algorithms=dict(Counter(f"{p.instance.kind}/{p.choice.algorithm}" for p in plans)),
        scaled_sizes=len(changed),
        raised_to_one_byte=len(raised),
        zero_size_instances=len(empty),
        warnings=[
            *warnings(len(changed), len(raised), len(plans), options),
            *unused_classes(plans, options),
        ],
    )


def warnings(changed: int, raised: int, total: int, options: CompileOptions) -> Sequence[str]:
    """Say what makes the traffic differ from the trace."""
    sentences = []
    if changed:
        sentences.append(
            f"the sizes of {changed} of {total} messages and collectives were multiplied by "
            f"{options.size_scale:g}"
        )
    if raised:
        sentences.append(
            f"{raised} of {total} messages and collectives would have had no byte after scaling "
            "and were given one"
        )
    if options.compute_scale != 1:
        sentences.append(f"compute durations were multiplied by {options.compute_scale:g}")
    return sentences


def unused_classes(plans: Sequence[Plan], options: CompileOptions) -> Sequence[str]:
    """Say which traffic classes carry nothing: their rules may not be what was meant."""
    used = {one.traffic_class for one in plans}
    return [
        f"traffic class {rule.name} carries no collective or message of this job"
        for number, rule in enumerate(options.traffic_classes, start=1)
        if number not in used
    ]
