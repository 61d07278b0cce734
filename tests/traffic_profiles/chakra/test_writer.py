"""What is written is what the native reader reads."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given
from hypothesis import strategies as st

from traffic_profiles.chakra import (
    CollectiveType,
    NodeType,
    TraceBuilder,
    TraceNode,
    read_trace,
    write_trace,
)

NODE_IDS = st.integers(0, 2**64 - 1)
SIZES = st.integers(0, 2**63 - 1)
NODES = st.builds(
    TraceNode,
    id=NODE_IDS,
    name=st.text(max_size=20),
    type=st.sampled_from(NodeType),
    duration_us=NODE_IDS,
    data_deps=st.lists(NODE_IDS, max_size=5),
    ctrl_deps=st.lists(NODE_IDS, max_size=2),
    attributes=st.fixed_dictionaries(
        {},
        optional={
            "comm_size": SIZES,
            "comm_tag": SIZES,
            "stream": SIZES,
            "is_cpu_op": st.booleans(),
            "pg_name": st.text(max_size=5),
            "other": st.lists(st.text(max_size=3), max_size=2),
        },
    ),
)


@given(st.lists(NODES, max_size=8), st.sampled_from([".et", ".et.gz"]))
def test_columns_hold_what_was_written(nodes, suffix):
    """Every field and attribute of every node comes back, plain and compressed."""
    with TemporaryDirectory() as directory:
        path = Path(directory) / f"x.0{suffix}"
        write_trace(path, nodes)
        table = read_trace(path, 0)
    assert table.id.tolist() == [node.id for node in nodes]
    assert table.duration_us.tolist() == [node.duration_us for node in nodes]
    for row, node in enumerate(nodes):
        begin, end = (int(table.data_dep_offsets[row + at]) for at in (0, 1))
        assert table.data_deps[begin:end].tolist() == list(node.data_deps)
        assert table.name(row) == node.name
        assert table.type[row] == node.type
        assert table.comm_size[row] == node.attributes.get("comm_size", -1)
        assert table.stream[row] == node.attributes.get("stream", -1)
        assert table.is_cpu_op[row] == node.attributes.get("is_cpu_op", -1)
        assert table.group_name(row) == node.attributes.get("pg_name")


def test_equal_traces_give_equal_compressed_bytes(tmp_path):
    """No time stamp and no name goes into a gzip file that is written."""
    for name in ("a.0.et.gz", "b.0.et.gz"):
        builder = TraceBuilder()
        builder.collective("x", CollectiveType.ALL_REDUCE, 4)
        builder.write(tmp_path / name)
    first, second = ((tmp_path / name).read_bytes() for name in ("a.0.et.gz", "b.0.et.gz"))
    assert first == second
