"""Programs: every set runs to completion, in the order of the trace, with every byte paired."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.errors import InputError
from tests.traffic_profiles.program_play import ProgramPlay, check_pairs
from tests.traffic_profiles.synthetic_workload import WorkloadBuilder
from traffic_profiles.collectives import ALGORITHMS, AlgorithmRule
from traffic_profiles.compilation import CompileOptions, compile_workload
from traffic_profiles.program import NO_INSTANCE, OpKind

KINDS = [kind for kind in ALGORITHMS if kind != "send_recv"]
RULES = st.lists(
    st.sampled_from(
        [AlgorithmRule(kind, name, window=2) for kind in KINDS for name in ALGORITHMS[kind]]
    ),
    max_size=4,
)


@st.composite
def workloads(draw):
    """A random job: computes, collectives of random groups and transfers, in one global order."""
    ranks = draw(st.integers(1, 6))
    builder = WorkloadBuilder(ranks)

    def some_rows(rank):
        rows = range(len(builder.rows[rank].action))
        return draw(st.lists(st.sampled_from(rows), max_size=3, unique=True)) if rows else []

    for _ in range(draw(st.integers(0, 12))):
        event = draw(st.sampled_from(["compute", "collective", "transfer"]))
        size = draw(st.sampled_from([0, 1, 5, 1000, 2**32 + 3]))
        if event == "compute":
            rank = draw(st.integers(0, ranks - 1))
            builder.compute(rank, draw(st.integers(0, 9)), some_rows(rank))
        elif event == "collective":
            group = draw(st.permutations(range(ranks)))[: draw(st.integers(1, ranks))]
            parents = {rank: some_rows(rank) for rank in group}
            builder.collective(draw(st.sampled_from(KINDS)), group, size, parents)
        else:
            ends = draw(st.integers(0, ranks - 1)), draw(st.integers(0, ranks - 1))
            builder.transfer(*ends, size, tuple(some_rows(rank) for rank in ends))
    return builder.build()


@settings(max_examples=150, deadline=None)
@given(
    workload=workloads(), rules=RULES, iterations=st.integers(1, 3), seed=st.integers(0, 2**32 - 1)
)
def test_every_set_of_programs_runs_to_completion(workload, rules, iterations, seed):
    """Whatever is ready goes next, at random: nothing waits for what cannot come."""
    options = CompileOptions(iterations=iterations, algorithms=rules)
    job = compile_workload(workload, options)
    check_pairs(job.programs)
    assert ProgramPlay(job.programs, seed).run().complete_sets


@settings(max_examples=100, deadline=None)
@given(workload=workloads(), seed=st.integers(0, 2**32 - 1))
def test_no_row_begins_before_its_parents_are_done(workload, seed):
    job = compile_workload(workload, CompileOptions())
    order = ProgramPlay(job.programs, seed).run().finished
    for program in job.programs:
        bound = workload.bound[program.rank]
        finished = [int(program.row[op]) for rank, op in order if rank == program.rank]
        first = {row: finished.index(row) for row in set(finished)}
        last = {row: len(finished) - 1 - finished[::-1].index(row) for row in set(finished)}
        offsets = bound.parent_offsets.tolist()
        for row in range(len(bound.table)):
            for parent in bound.parents[offsets[row] : offsets[row + 1]].tolist():
                assert last[parent] < first[row]


def two_rank_job(**options):
    builder = WorkloadBuilder(2)
    before = {rank: [builder.compute(rank, 7, lane=1)] for rank in range(2)}
    reduce = builder.collective("all_reduce", (0, 1), 1000, before)
    builder.compute(0, 11, [reduce.rows[0]])
    return compile_workload(builder.build(), CompileOptions(**options))


def test_a_collective_is_entered_after_its_parents_and_left_after_its_messages():
    program = two_rank_job().programs[0]
    names = [OpKind(kind).name for kind in program.kind]
    assert names == ["DELAY", "JOIN", *["SEND", "RECV"] * 2, "JOIN", "DELAY", "JOIN"]
    offsets = program.dep_offsets
    deps = [program.deps[offsets[i] : offsets[i + 1]].tolist() for i in range(len(program))]
    assert deps == [[], [0], [1], [1], [3], [1], [2, 4, 5], [6], [7]]
    assert program.size_bytes.tolist() == [0, 0, 500, 500, 500, 500, 0, 0, 0]
    assert program.row.tolist() == [0, 1, 1, 1, 1, 1, 1, 2, 0xFFFFFFFF]
    assert program.instance.tolist() == [NO_INSTANCE, *[0] * 6, NO_INSTANCE, NO_INSTANCE]
    assert program.duration_ps.tolist() == [7, 0, 0, 0, 0, 0, 0, 11, 0]
    assert program.lane.tolist() == [1, -1, -1, -1, -1, -1, -1, 0, -1]


def test_the_next_iteration_begins_when_the_last_is_done():
    once, twice = two_rank_job().programs[0], two_rank_job(iterations=2).programs[0]
    length = len(once)
    assert len(twice) == 2 * length
    assert twice.deps[twice.dep_offsets[length] : twice.dep_offsets[length + 1]] == [length - 1]
    assert twice.instance[length:].tolist().count(1) == 6
    other = two_rank_job(iterations=2).programs[1]
    sends = np.flatnonzero(twice.kind == OpKind.SEND)
    assert all(other.peer_op[twice.peer_op[op]] == op for op in sends)


def test_instances_tell_algorithm_and_size_of_every_iteration():
    job = two_rank_job(iterations=2, size_scale=0.5)
    frame = job.instances
    assert frame["instance"].to_list() == [0, 1]
    assert frame["iteration"].to_list() == [0, 1]
    assert frame["size_bytes"].to_list() == [500, 500]
    assert frame["traced_size_bytes"].to_list() == [1000, 1000]
    assert frame["algorithm"].to_list() == ["ring", "ring"]
    assert job.report.collective_bytes == {"all_reduce": 2 * 2 * 500}
    assert job.report.warnings == [
        "the sizes of 1 of 1 messages and collectives were multiplied by 0.5"
    ]


def test_a_scaled_size_stays_at_least_one_byte_and_nothing_stays_nothing():
    builder = WorkloadBuilder(2)
    for size in (0, 1, 499, 10_000):
        builder.transfer(0, 1, size)
    job = compile_workload(builder.build(), CompileOptions(size_scale=0.001))
    assert job.instances["size_bytes"].to_list() == [0, 1, 1, 10]
    assert (job.report.raised_to_one_byte, job.report.zero_size_instances) == (2, 1)
    assert job.report.scaled_sizes == 2
    assert job.report.warnings == [
        "the sizes of 2 of 4 messages and collectives were multiplied by 0.001",
        "2 of 4 messages and collectives would have had no byte after scaling and were given one",
    ]


def test_a_transfer_to_oneself_waits_for_its_send_without_traffic():
    builder = WorkloadBuilder(1)
    builder.transfer(0, 0, 1000, ([builder.compute(0, 5)], []))
    program = compile_workload(builder.build(), CompileOptions()).programs[0]
    assert set(program.kind.tolist()) == {OpKind.DELAY, OpKind.JOIN}
    assert [
        row for _, op in ProgramPlay([program]).run().finished if (row := program.row[op]) < 9
    ] == [
        0,
        1,
        2,
    ]


def test_compute_durations_scale():
    assert two_rank_job(compute_scale=2.5).programs[0].duration_ps.sum() == 18 + 28


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"ranks_per_node": 8}, "8 ranks would share a scale-up domain"),
        ({"iterations": 0}, "iterations"),
        ({"size_scale": 0.0}, "size_scale"),
        ({"size_scale": float("nan")}, "size_scale"),
        ({"max_ops": 10}, "the programs would have 17 operations, more than 10"),
    ],
)
def test_options_without_a_meaning_are_refused(options, what):
    with pytest.raises(InputError, match=what):
        two_rank_job(**options)


def test_large_jobs_compile_in_seconds():
    """84 all-reduces on 8 ranks, and an all-to-all and an all-reduce on 256."""
    begin = time.perf_counter()
    builder = WorkloadBuilder(8)
    for _ in range(84):
        builder.collective("all_reduce", range(8), 67_108_865)
    small = compile_workload(builder.build(), CompileOptions())
    assert small.report.ops == 8 * (84 * 30 + 1)
    wide = WorkloadBuilder(256)
    wide.collective("all_to_all", range(256), 1 << 28)
    wide.collective("all_reduce", range(256), 1 << 32)
    job = compile_workload(wide.build(), CompileOptions())
    assert job.report.ops == 256 * (2 * 255 + 2 + 4 * 255 + 2 + 1)
    assert time.perf_counter() - begin < 8
