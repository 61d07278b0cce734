"""Whatever traces hold, binding ends in a job that can run or in a refusal."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.errors import InputError
from traffic_profiles.binding import bind
from traffic_profiles.binding_options import BindingOptions
from traffic_profiles.chakra import TraceBuilder, TraceNode, read_traces, write_trace
from traffic_profiles.workload import NO_INSTANCE

SMALL = st.integers(-2, 6)
ANY_NODE = st.builds(
    TraceNode,
    id=st.integers(0, 8),
    name=st.sampled_from(["n", "## process_group:init ##", "ncclDevKernel"]),
    type=st.integers(0, 9),
    duration_us=st.sampled_from([0, 5, 2**63]),
    data_deps=st.lists(st.integers(0, 8), max_size=2),
    ctrl_deps=st.lists(st.integers(0, 8), max_size=1),
    attributes=st.fixed_dictionaries(
        {},
        optional={
            "comm_type": SMALL,
            "comm_size": st.sampled_from([0, 8, 33, -5, 2**62]),
            "comm_src": SMALL,
            "comm_dst": SMALL,
            "comm_tag": SMALL,
            "stream": SMALL,
            "tid": SMALL,
            "ts": st.sampled_from([-3, 0, 10, 2**62]),
            "is_cpu_op": st.booleans(),
            "pg_name": st.sampled_from(["", "0", "1", "\u20ac"]),
            "num_ops": SMALL,
            "tensor_size": SMALL,
        },
    ),
    input_values=st.sampled_from(["", "['[{}]']", '[{"pg_name": 1, "ranks": [0]}]']),
)
OPTIONS = st.builds(
    BindingOptions,
    world_group=st.booleans(),
    idle=st.sampled_from(["keep", "drop"]),
    stream_order=st.booleans(),
    collective_order=st.sampled_from(["communicator", "dependencies"]),
    strict=st.booleans(),
    peak_flops=st.none() | st.just(1e12),
    memory_bandwidth_bytes_per_s=st.none() | st.just(1e12),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(ANY_NODE, max_size=5), min_size=1, max_size=3), OPTIONS)
def test_arbitrary_traces_bind_or_are_refused(ranks, options):
    """No other error, whatever the values."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        for rank, nodes in enumerate(ranks):
            write_trace(directory / f"x.{rank}.et", nodes)
        problems = ()
        try:
            bind(read_traces(directory), source=directory, options=options)
        except InputError as error:
            problems = error.problems
    assert all(problem.what and problem.remedy for problem in problems)


@st.composite
def agreeing_job(draw):
    """Ranks that issue the same collectives and matching transfers, in one common order."""
    count = draw(st.integers(2, 4))
    ranks = [TraceBuilder() for _ in range(count)]
    for step in range(draw(st.integers(1, 8))):
        size = draw(st.integers(1, 1 << 40))
        source, destination = draw(st.permutations(range(count)))[:2]
        is_transfer = draw(st.booleans())
        for rank, builder in enumerate(ranks):
            known = [node.id for node in builder.nodes]
            after = draw(st.lists(st.sampled_from(known), max_size=2)) if known else []
            if draw(st.booleans()):
                after = [
                    *after,
                    builder.compute("c", 1, after=after, stream=draw(st.integers(0, 1))),
                ]
            if not is_transfer:
                builder.collective(f"ar{step}", 0, size, after=after)
            elif rank == source:
                builder.send(f"s{step}", destination, size, tag=step, after=after)
            elif rank == destination:
                builder.receive(f"r{step}", source, size, tag=step, after=after)
    return ranks


@settings(max_examples=100, deadline=None)
@given(agreeing_job())
def test_jobs_whose_ranks_agree_always_bind(ranks):
    """Nothing that binding adds can make a job wait that would not."""
    with TemporaryDirectory() as name:
        directory = Path(name)
        for rank, builder in enumerate(ranks):
            builder.write(directory / f"x.{rank}.et")
        workload = bind(read_traces(directory), source=directory, options=BindingOptions())
    in_instances = sum(len(instance.ranks) for instance in workload.instances)
    in_rows = sum(np.count_nonzero(own.instance != NO_INSTANCE) for own in workload.bound.values())
    assert in_instances == in_rows
