"""Converted traces say the same."""

from dataclasses import fields

import numpy as np
import pytest

from traffic_profiles.chakra import (
    NodeType,
    TraceBuilder,
    TraceNode,
    convert_trace,
    read_trace,
    read_traces,
    write_trace,
)

DIFFERENT = {"path", "dialect", "frame_offsets", "metadata"}


def assert_equal_columns(first, second):
    """All that a run needs is the same."""
    for column in (one.name for one in fields(first) if one.name not in DIFFERENT):
        left, right = getattr(first, column), getattr(second, column)
        assert np.array_equal(left, right), column


@pytest.mark.parametrize(
    "name",
    [
        "astra-sim-legacy/runs/example/workload/transformer_2stack",
        "astra-sim-legacy/runs/example/workload/resnet50_DataParallel",
        "converted/megatron_tp8",
        "stage/stage_dp2tp2pp2",
        "jsonizer-sample",
    ],
)
def test_collected_traces_survive(sample_traces, tmp_path, name):
    """Old dialects and JSON become v0.0.4 with equal columns."""
    table = read_traces(sample_traces / name)[0]
    convert_trace(table, tmp_path / "x.0.et.gz")
    converted = read_trace(tmp_path / "x.0.et.gz", 0)
    assert converted.dialect == "v0.0.4"
    assert_equal_columns(table, converted)


def test_groups_dimensions_and_unknown_types_survive(tmp_path):
    """What only some traces have."""
    builder = TraceBuilder()
    builder.process_groups({"g": [0]}, world_size=1)
    builder.add("new", 10, attributes={"involved_dim": [True, False], "pg_name": "g"})
    builder.add("ar", NodeType.COMM_COLL, attributes={"comm_size": 1 << 40, "comm_type": 0})
    builder.write(tmp_path / "x.0.et")
    table = read_trace(tmp_path / "x.0.et", 0)
    assert table.rows_in_some_dimensions.tolist() == [1]
    convert_trace(table, tmp_path / "y.0.et")
    converted = read_trace(tmp_path / "y.0.et", 0)
    assert converted.process_groups_json == table.process_groups_json is not None
    assert_equal_columns(table, converted)


def test_metadata_and_start_times_survive(tmp_path):
    """The version is the written schema's."""
    node = TraceNode(1, "a", NodeType.COMP, start_us=5, ctrl_deps=[9])
    write_trace(tmp_path / "x.0.et", [node], metadata={"schema": "1.1", "pid": 7})
    convert_trace(read_trace(tmp_path / "x.0.et", 0), tmp_path / "y.0.et")
    converted = read_trace(tmp_path / "y.0.et", 0)
    assert converted.metadata == {"version": "0.0.4", "schema": "1.1", "pid": 7}
    assert (converted.start_us[0], converted.ctrl_deps.tolist()) == (5, [9])
