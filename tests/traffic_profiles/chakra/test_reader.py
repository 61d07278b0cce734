"""Which file is which rank, and what a damaged file says."""

import tarfile
from pathlib import Path

import numpy as np
import pytest

from dataplane.errors import InputError
from traffic_profiles.chakra import (
    CollectiveType,
    NodeType,
    TraceBuilder,
    read_trace,
    read_traces,
)


def write(directory: Path, *names: str) -> Path:
    """Write a one-node trace under each name."""
    for name in names:
        builder = TraceBuilder()
        builder.compute(name, 1)
        builder.write(directory / name)
    return directory


def refusal(path: Path) -> str:
    """Text of the refusal to read `path`."""
    with pytest.raises(InputError) as caught:
        read_traces(path)
    return str(caught.value)


def test_ranks_come_from_file_names_in_numerical_order(tmp_path):
    """`x.10.et` is rank 10, after `x.9.et`; other files are passed over."""
    write(tmp_path, *(f"x.{rank}.et" for rank in range(11)), "notes.json")
    tables = read_traces(tmp_path)
    assert list(tables) == list(range(11))
    assert tables[10].name(0) == "x.10.et"


def test_gzip_is_found_by_content(tmp_path):
    """A compressed file is read whatever its name."""
    write(tmp_path, "x.0.et.gz")
    (tmp_path / "x.0.et.gz").rename(tmp_path / "x.0.et")
    assert len(read_traces(tmp_path)[0]) == 1


def test_missing_ranks_are_named(tmp_path):
    """Ranks must be 0..N-1."""
    write(tmp_path, "x.0.et", "x.3.et")
    assert "ranks 1, 2 of 0..3 have no file" in refusal(tmp_path)


def test_an_absurd_rank_number_costs_nothing(tmp_path):
    """Only the first missing ranks are listed."""
    write(tmp_path, "x.0.et", "x.4000000000.et")
    assert "ranks 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ... of 0..4000000000" in refusal(tmp_path)


def test_two_files_of_a_rank_are_named(tmp_path):
    """A rank has one file."""
    write(tmp_path, "x.0.et", "x.0.et.gz")
    assert "rank 0 has 2 files: x.0.et, x.0.et.gz" in refusal(tmp_path)


def test_a_prefix_chooses_among_several_jobs(tmp_path):
    """A directory with two jobs is refused, with the prefix as the remedy."""
    write(tmp_path, "x.0.et", "y.0.et")
    assert f"name one of them, for example {tmp_path / 'x'}" in refusal(tmp_path)
    assert read_traces(tmp_path / "y")[0].name(0) == "y.0.et"


def test_a_directory_without_traces_says_what_is_expected(tmp_path):
    """The message shows the names that were found and the ones that are wanted."""
    (tmp_path / "trace.txt").touch()
    assert "no trace file among trace.txt; name the files <prefix>.<rank>.et" in refusal(tmp_path)


def test_every_bad_file_is_reported_at_once(tmp_path):
    """One problem for each file, with the byte offset."""
    write(tmp_path, "x.0.et", "x.1.et")
    for rank in range(2):
        file = tmp_path / f"x.{rank}.et"
        file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(InputError) as caught:
        read_traces(tmp_path)
    assert [problem.place for problem in caught.value.problems] == ["byte 8", "byte 8"]
    assert "truncated" in caught.value.problems[0].what


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "the file is empty"),
        (b'{"traceEvents": []}', "Kineto"),
        (b'{"a": 1}', "JSON, but no trace in a known form"),
        (b'{"schema": "1.0.2-chakra.0.0.4", "nodes": []}', "PyTorch host execution trace"),
        (b"PK\x03\x04", "archive"),
        (b"not a trace at all", "give a Chakra trace (.et)"),
        (b"\x1f\x8b\x08\x00broken", "gzip"),
    ],
)
def test_a_file_that_is_no_trace_says_what_it_is(tmp_path, content, expected):
    """The form is told from the content."""
    (tmp_path / "x.0.et").write_bytes(content)
    message = refusal(tmp_path)
    assert expected in message
    assert str(tmp_path / "x.0.et") in message


ADVERSARIAL_NODES = {
    "adv_allcycle": 2,
    "adv_ctrl": 3,
    "adv_cycle": 4,
    "adv_dangling": 4,
    "adv_dup": 3,
    "adv_dupdep": 3,
    "adv_empty": 0,
    "adv_emptymeta2": 2,
    "adv_emptynode": 2,
    "adv_fwd": 2,
    "adv_self": 2,
    "adv_u64": 1,
}


@pytest.mark.parametrize(("name", "nodes"), ADVERSARIAL_NODES.items())
def test_adversarial_files_give_every_node(sample_traces, name, nodes):
    """Odd files are read whole; what they mean is decided later."""
    assert len(read_trace(sample_traces / "adversarial" / f"{name}.et", 0)) == nodes


def test_a_size_written_as_unsigned_is_a_size(sample_traces):
    """`comm_size` as uint64 and `is_cpu_op` as int32 count like any other."""
    table = read_trace(sample_traces / "adversarial" / "adv_u64.et", 0)
    assert (table.comm_size[0], table.comm_type[0], table.is_cpu_op[0]) == (4096, 0, 1)


def test_nodes_without_a_metadata_message_are_all_read(sample_traces):
    """Older files begin with their first node, whose id 0 is not on the wire."""
    prefix = sample_traces / "astra-sim-legacy/runs/example/workload/resnet50_DataParallel"
    table = read_traces(prefix)[0]
    assert table.dialect == "v0.0.4 without metadata"
    assert (len(table), int(table.id[0])) == (215, 0)


def test_the_first_schema_takes_todays_numbers(sample_traces):
    """v0.0.1 has other fields and enumerations under the same numbers."""
    prefix = sample_traces / "astra-sim-legacy/runs/example/workload/transformer_2stack"
    table = read_traces(prefix)[0]
    assert table.dialect == "v0.0.1"
    assert np.count_nonzero(table.type == NodeType.COMP) == 102
    assert np.count_nonzero(table.type == NodeType.COMM_COLL) == 40
    assert table.comm_type[5] == CollectiveType.ALL_GATHER
    assert table.comm_size[5] == 419430400


def test_json_of_the_jsonizer_is_read(sample_traces):
    """Objects one after the other, without a list."""
    table = read_trace(sample_traces / "jsonizer-sample" / "T3D.trace.0.json", 0)
    assert table.dialect == "JSON of chakra_jsonizer"
    assert table.name(0) == "All-Reduce-X"
    assert (table.comm_size[0], table.group_name(0), table.duration_us[1]) == (1048576, "0", 100)


def test_json_of_the_feeder_holds_the_same_nodes_as_its_protobuf(sample_traces, tmp_path):
    """One trace is kept in both forms; its names differ by a replacement that was made in one."""
    with tarfile.open(sample_traces / "mlcommons-chakra" / "json_trace.tar.gz") as archive:
        archive.extract("jsonData/chakra.0.json", tmp_path, filter="data")
    from_json = read_trace(tmp_path / "jsonData" / "chakra.0.json", 0)
    from_protobuf = read_trace(sample_traces / "mlcommons-chakra" / "chakra.0.et.gz", 0)
    assert np.array_equal(from_json.id, from_protobuf.id)
    assert np.array_equal(from_json.type, from_protobuf.type)
    assert np.array_equal(from_json.data_deps, from_protobuf.data_deps)


def test_protobuf_is_found_in_a_json_file(sample_traces):
    """A generator writes protobuf into `.json`; the content counts."""
    tables = read_traces(sample_traces / "stage" / "stage_json_dp2pp2")
    assert [len(table) for table in tables.values()] == [75, 75, 79, 79]


def test_a_real_trace_has_its_timestamps_and_kernels(sample_traces):
    """Counts of a Megatron trace, known from another reader."""
    table = read_traces(sample_traces / "converted" / "megatron_tp8")[0]
    assert len(table) == 6118
    assert np.count_nonzero(table.comm_size == 67108865) == 81
    assert (table.ts_us >= 0).all()
