"""Whole jobs: real trace sets are bound, and everything wrong is reported at once."""

from collections import Counter

import numpy as np
import pytest

from dataplane.errors import InputError
from traffic_profiles.binding import bind
from traffic_profiles.binding_options import BindingOptions
from traffic_profiles.chakra import NodeType, TraceBuilder, TraceNode, read_traces, write_trace
from traffic_profiles.workload import NO_INSTANCE, Action


def bound(path, **options):
    """Read and bind a trace set."""
    return bind(read_traces(path), source=path, options=BindingOptions(**options))


def kinds(workload):
    """How often each kind and size occurs."""
    return Counter((instance.kind, instance.size_bytes) for instance in workload.instances)


def test_megatron_tensor_parallel(sample_traces):
    """84 all-reduces over 8 ranks; their CPU wrappers are delays."""
    workload = bound(sample_traces / "converted" / "megatron_tp8")
    assert kinds(workload) == {("all_reduce", 67108865): 81, ("all_reduce", 32769): 3}
    assert workload.report.counts["cpu_communication_as_delay"] == 8 * 170
    assert workload.report.counts["sizes_one_above_a_multiple_of_32"] == 8 * 84
    assert workload.report.counts["idle_kept_ns"] > 0


def test_stage_with_tensor_data_and_pipeline_parallelism(sample_traces):
    """Groups from the generator's file; 32 sends match 32 receives."""
    path = sample_traces / "stage" / "stage_dp2tp2pp2"
    workload = bound(path, group_file=path / "workload.json")
    assert kinds(workload)["send_recv", 262144] == 32
    assert kinds(workload)["all_gather", 2 * 262144] == 4 * 48
    assert workload.report.counts["compute_without_duration"] > 0
    with pytest.raises(InputError, match=r"workload\.json looks right"):
        bound(path)


@pytest.mark.parametrize("kind", ["all_gather", "all_reduce", "all_to_all", "reduce_scatter"])
@pytest.mark.parametrize("ranks", [4, 8, 16])
def test_microbenchmarks(sample_traces, kind, ranks):
    """One collective of 1 MiB input each."""
    path = sample_traces / "astra-sim/workload/microbenchmarks" / kind / f"{ranks}npus_1MB"
    size = (1 << 20) * (ranks if kind == "all_gather" else 1)
    assert kinds(bound(path)) == {(kind, size): 1}


def test_a_ring_of_sends_and_receives(sample_traces):
    """An all-reduce written as a graph of transfers."""
    path = sample_traces / "astra-sim/system/custom_collectives/custom_ring_allreduce_8npus_1MB"
    assert kinds(bound(path)) == {("send_recv", 131072): 112}


def test_sizes_above_4_gib_in_groups_without_a_declaration(sample_traces):
    """The user must say what the groups are; kernels of stream 7 get their order."""
    path = sample_traces / "ericdinging" / "test-1-comm-group"
    with pytest.raises(InputError, match=r"process groups '1' .* are not declared"):
        bound(path)
    workload = bound(path, world_group=True)
    assert kinds(workload) == {("all_reduce", 1 << 32): 2}
    assert workload.report.counts["stream_order_edges_added"] == 2 * 41


def test_order_given_by_control_dependencies(sample_traces):
    """Files of 2023 have no data dependencies at all."""
    prefix = sample_traces / "astra-sim-legacy/runs/example/workload/resnet50_DataParallel"
    workload = bound(prefix)
    assert workload.report.counts["ranks_ordered_by_ctrl_deps"] == 4
    assert len(workload.instances) == 54


def test_group_numbers_that_passed_through_a_float(sample_traces):
    """`pg_name` "0.0" is the group file's "0"."""
    path = sample_traces / "shuoshuc/examples/T2D-analytical"
    workload = bound(path / "trace", group_file=path / "inputs" / "comm_group.json")
    assert workload.groups["0.0"] == (0, 1, 2, 3)


def test_every_row_of_an_instance_points_back_to_it(sample_traces):
    """Instances and rows agree, and a topological order covers every row."""
    path = sample_traces / "stage" / "stage_dp2tp2pp2"
    workload = bound(path, group_file=path / "workload.json")
    for instance in workload.instances:
        for rank, row in zip(instance.ranks, instance.rows, strict=True):
            assert workload.bound[rank].instance[row] == instance.id
    for own in workload.bound.values():
        traffic = own.action >= Action.COLLECTIVE
        assert np.array_equal(own.instance != NO_INSTANCE, traffic)
        position = np.empty(len(own.order), np.int64)
        position[own.order] = np.arange(len(own.order))
        child = np.repeat(np.arange(len(own.order)), np.diff(own.parent_offsets).astype(np.int64))
        assert (position[own.parents] < position[child]).all()


def test_problems_of_all_ranks_come_together(tmp_path):
    """One message for each, not one run for each."""
    write_trace(tmp_path / "x.0.et", [TraceNode(1, "a", NodeType.COMP, data_deps=[1])])
    write_trace(tmp_path / "x.1.et", [TraceNode(1, "b", NodeType.COMM_COLL)])
    with pytest.raises(InputError) as caught:
        bound(tmp_path)
    assert [problem.place for problem in caught.value.problems] == [
        "rank 0 row 0",
        "rank 1 row 0 node 1",
    ]


def test_traces_without_any_node_are_refused(tmp_path):
    """There is nothing to run."""
    for rank in range(2):
        TraceBuilder().write(tmp_path / f"x.{rank}.et")
    with pytest.raises(InputError, match="hold no node"):
        bound(tmp_path)
