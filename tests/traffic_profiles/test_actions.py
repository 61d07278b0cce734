"""What a row does: its action, duration and lane."""

from dataclasses import replace

import numpy as np
import pytest

from traffic_profiles.actions import row_actions
from traffic_profiles.binding_options import BindingOptions
from traffic_profiles.chakra import CollectiveType, NodeType, TraceBuilder, read_trace
from traffic_profiles.workload import NO_LANE, Action


def actions_of(tmp_path, build, **options):
    """Actions of a trace that `build` makes."""
    builder = TraceBuilder()
    build(builder)
    builder.write(tmp_path / "x.0.et")
    return row_actions(read_trace(tmp_path / "x.0.et", 0), BindingOptions(**options))


def add(node_type, duration_us=0, **attributes):
    """A builder step that adds one node."""
    return lambda builder: builder.add(
        "n", node_type, duration_us=duration_us, attributes=attributes
    )


@pytest.mark.parametrize(
    ("step", "action"),
    [
        (add(NodeType.METADATA), Action.NONE),
        (add(NodeType.INVALID), Action.NONE),
        (add(NodeType.COMP, 3), Action.DELAY),
        (add(NodeType.COMM_COLL, comm_type=0, comm_size=8), Action.COLLECTIVE),
        (add(NodeType.COMM_COLL, comm_type=0, comm_size=8, is_cpu_op=True), Action.COLLECTIVE),
        (add(NodeType.COMM_COLL, comm_type=9), Action.COLLECTIVE),
        (add(NodeType.COMM_COLL, comm_type=0, comm_size=0), Action.NONE),
        (add(NodeType.COMM_COLL, 5, is_cpu_op=True), Action.DELAY),
        (add(NodeType.COMM_SEND, comm_dst=1, comm_size=0), Action.SEND),
        (add(NodeType.COMM_SEND, comm_dst=1, tensor_size=4), Action.SEND),
        (add(NodeType.COMM_RECV, comm_src=1, comm_size=8), Action.RECEIVE),
        (add(NodeType.COMM_RECV, 5, is_cpu_op=True, comm_size=8), Action.DELAY),
    ],
)
def test_the_action_follows_from_type_and_attributes(tmp_path, step, action):
    """A communication node with its attributes is traffic, a CPU wrapper without is a delay."""
    result = actions_of(tmp_path, step)
    assert (result.action[0], result.problems) == (action, [])


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (add(NodeType.COMM_COLL), "a collective without comm_type or comm_size"),
        (add(NodeType.COMM_COLL, comm_type=12, comm_size=8), "comm_type above 9"),
        (add(NodeType.COMM_SEND, comm_size=8), "a send without comm_dst"),
        (add(NodeType.COMM_RECV, comm_size=8), "a receive without comm_src"),
        (
            add(NodeType.COMM_COLL, comm_type=0, comm_size=1 << 60),
            "more than 281474976710656",
        ),
        (add(NodeType.COMP, 1 << 50), "more than 1000000000000 microseconds"),
    ],
)
def test_communication_with_a_hole_is_a_problem_with_its_place(tmp_path, step, expected):
    """What nobody can send must not be passed over in silence."""
    (problem,) = actions_of(tmp_path, step).problems
    assert expected in problem.what
    assert problem.place == "rank 0 row 0 node 1"


def test_durations_are_exact_picoseconds(tmp_path):
    """Microseconds of compute; none of a communication, whose duration includes waiting."""

    def build(builder):
        builder.compute("c", 7)
        builder.add(
            "ar",
            NodeType.COMM_COLL,
            duration_us=900,
            attributes={"comm_type": 0, "comm_size": 8},
        )

    assert actions_of(tmp_path, build).duration_ps.tolist() == [7_000_000, 0]


def test_the_roofline_takes_the_slower_of_arithmetic_and_memory(tmp_path):
    """Only for compute without a duration."""

    def build(builder):
        for work, touched in ((4000, 100), (10, 8000)):
            add(NodeType.COMP, num_ops=work, tensor_size=touched)(builder)
        builder.compute("timed", 1)

    result = actions_of(tmp_path, build, peak_flops=2e9, memory_bandwidth_bytes_per_s=1e9)
    assert result.duration_ps.tolist() == [2_000_000, 8_000_000, 1_000_000]
    assert result.counts["compute_by_roofline"] == 2
    without = actions_of(tmp_path, build)
    assert without.duration_ps.tolist() == [0, 0, 1_000_000]
    assert without.counts["compute_without_duration"] == 2


def test_lanes_are_threads_streams_and_the_device(tmp_path):
    """Only delays hold a lane."""

    def build(builder):
        add(NodeType.COMP, is_cpu_op=True, tid=3, stream=0)(builder)
        add(NodeType.COMP, is_cpu_op=True)(builder)
        builder.compute("kernel", 1, stream=7)
        add(NodeType.COMP)(builder)
        builder.collective("ar", CollectiveType.ALL_REDUCE, 8, stream=7)

    result = actions_of(tmp_path, build)
    names = [result.lanes[lane] if lane != NO_LANE else None for lane in result.lane]
    assert names == ["cpu 3", "cpu", "stream 7", "device", None]


def test_a_collective_over_some_dimensions_needs_a_group(tmp_path):
    """Which ranks a dimension connects is known to the simulator that the trace was made for."""
    path = tmp_path / "x.0.et"
    for group, problems in (("", 1), ("g", 0)):
        builder = TraceBuilder()
        builder.collective("ar", CollectiveType.ALL_REDUCE, 8, group=group)
        builder.write(path)
        table = replace(read_trace(path, 0), rows_in_some_dimensions=np.array([0], np.uint64))
        assert len(row_actions(table, BindingOptions()).problems) == problems
