"""Order that traces do not write down."""

import numpy as np

from tests.traffic_profiles.trace_job import edges
from traffic_profiles.chakra import CollectiveType, NodeType

ALL_REDUCE = CollectiveType.ALL_REDUCE


def kernel(builder, name, stream, ts=None, after=()):
    """Add a device kernel."""
    attributes = {"is_cpu_op": False, "stream": stream}
    if ts is not None:
        attributes["ts"] = ts
    return builder.add(name, NodeType.COMP, after=after, duration_us=1, attributes=attributes)


def test_kernels_of_one_stream_run_one_after_the_other(job):
    """Leaves of a converted trace: in file order where there is no time stamp."""
    made = job(1)
    for stream in (7, 8, 7, 7):
        kernel(made.ranks[0], "k", stream)
    workload = made.bind()
    assert edges(workload, 0) == {(0, 2), (2, 3)}
    assert workload.report.counts["stream_order_edges_added"] == 2
    assert edges(made.bind(stream_order=False), 0) == set()


def test_time_stamps_go_before_file_order(job):
    """The later row ran first."""
    made = job(1)
    kernel(made.ranks[0], "second", 7, ts=20)
    kernel(made.ranks[0], "first", 7, ts=10)
    assert edges(made.bind(), 0) == {(1, 0)}


def test_dependencies_go_before_time_stamps(job):
    """A clock that contradicts the graph must not close a cycle."""
    made = job(1)
    parent = kernel(made.ranks[0], "parent", 7, ts=20)
    kernel(made.ranks[0], "child", 7, ts=10, after=[parent])
    assert edges(made.bind(), 0) == {(0, 1)}


def test_edges_that_the_trace_has_are_not_counted_as_added(job):
    """Only what is new."""
    made = job(1)
    first = kernel(made.ranks[0], "a", 7)
    kernel(made.ranks[0], "b", 7, after=[first])
    assert "stream_order_edges_added" not in made.bind().report.counts


def test_cpu_rows_and_rows_without_a_stream_are_left_alone(job):
    """Converters write stream 0 on CPU rows."""
    made = job(1)
    for _ in range(2):
        made.ranks[0].add("cpu", NodeType.COMP, attributes={"is_cpu_op": True, "stream": 0})
        made.ranks[0].compute("device", 1)
    assert edges(made.bind(), 0) == set()


def test_collectives_of_a_group_run_one_after_the_other(job):
    """As a communicator runs them; other groups are not held up."""
    made = job(2)
    for builder in made.ranks:
        builder.process_groups({"a": [], "b": []}, world_size=2)
        for group in ("a", "b", "a"):
            builder.collective("ar", ALL_REDUCE, 8, group=group)
    workload = made.bind()
    assert edges(workload, 0) == {(1, 3)}
    assert workload.report.counts["communicator_order_edges_added"] == 2
    assert edges(made.bind(collective_order="dependencies"), 0) == set()


def cpu_row(builder, ts, duration_us, tid=1):
    """Add a CPU operation with a time stamp."""
    attributes = {"is_cpu_op": True, "tid": tid, "ts": ts}
    builder.add("op", NodeType.COMP, duration_us=duration_us, attributes=attributes)


def test_idle_time_is_what_durations_do_not_explain(job):
    """Per thread; kept before the row that it precedes."""
    made = job(1)
    for ts, duration in ((100, 10), (110, 5), (145, 5)):
        cpu_row(made.ranks[0], ts, duration)
    cpu_row(made.ranks[0], 500, 5, tid=2)
    workload = made.bind()
    assert workload.bound[0].idle_ps.tolist() == [0, 0, 30_000_000, 0]
    assert workload.bound[0].duration_ps.tolist() == [10_000_000, 5_000_000, 35_000_000, 5_000_000]
    assert workload.report.counts["idle_kept_ns"] == 30_000


def test_an_enclosing_row_is_not_idle(job):
    """Its own time may pass after its children began: the figure is a lower bound."""
    made = job(1)
    for ts, duration in ((100, 40), (120, 10), (150, 1)):
        cpu_row(made.ranks[0], ts, duration)
    assert not made.bind().bound[0].idle_ps.any()


def test_dropped_idle_time_is_reported_and_changes_nothing(job):
    """`--idle drop`."""
    made = job(1)
    cpu_row(made.ranks[0], 0, 1)
    cpu_row(made.ranks[0], 11, 1)
    workload = made.bind(idle="drop")
    assert workload.report.counts["idle_dropped_ns"] == 10_000
    assert np.array_equal(workload.bound[0].duration_ps, [1_000_000, 1_000_000])


def test_without_time_stamps_idle_time_is_unknown(job):
    """And said to be."""
    made = job(1)
    made.ranks[0].add("op", NodeType.COMP, duration_us=5, attributes={"is_cpu_op": True})
    assert made.bind().report.counts["ranks_with_unknown_idle_time"] == 1
