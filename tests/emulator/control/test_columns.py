"""Arrays on the way: what is packed comes out again, and hostile bytes do no harm."""

import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.control import columns
from emulator.control.messages import MalformedMessage


def test_a_nested_tree_survives() -> None:
    """Groups, arrays, numbers and strings come out as they went in."""
    tree = {
        "ops": {"rank": np.arange(3, dtype=np.uint32), "end_ps": np.full(2, 2**64 - 1, np.uint64)},
        "now_ps": 2**63,
        "name": "agent-0",
        "ratio": 0.5,
    }
    unpacked = columns.decode(columns.encode(tree))
    assert unpacked["now_ps"] == 2**63
    assert unpacked["name"] == "agent-0"
    assert unpacked["ratio"] == 0.5
    for name, column in tree["ops"].items():
        np.testing.assert_array_equal(unpacked["ops"][name], column)
        assert unpacked["ops"][name].dtype == column.dtype


def test_a_pickle_is_never_loaded() -> None:
    """An object array would run code of the sender's choice."""
    buffer = io.BytesIO()
    np.savez(buffer, evil=np.array([{"a": 1}], dtype=object))
    for data in (buffer.getvalue(), pickle.dumps({"a": 1})):
        with pytest.raises(MalformedMessage):
            columns.decode(data)


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    """The unpacked size is limited, not the packed one."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", b"\0" * 10_000_000)
    with pytest.raises(MalformedMessage, match="more than"):
        columns.decode(buffer.getvalue(), limit_bytes=1_000_000)


def test_an_object_that_cannot_be_packed_is_an_error_of_the_sender() -> None:
    """Nothing is pickled behind the sender's back."""
    with pytest.raises(ValueError, match="allow_pickle"):
        columns.encode({"x": object()})


@given(st.binary(max_size=300))
def test_garbage_is_always_malformed(data: bytes) -> None:
    """No bytes make the decoder raise anything else."""
    with pytest.raises(MalformedMessage):
        columns.decode(data)


@given(
    st.integers(min_value=0, max_value=10_000),
    st.integers(min_value=0, max_value=255),
    st.booleans(),
)
@settings(max_examples=1000, deadline=None)
def test_a_damaged_archive_never_raises_anything_else(
    place: int, value: int, compress: bool
) -> None:
    """One wrong byte is noticed, or changes a value that the receiver checks."""
    tree = {"a": np.arange(20), "b": {"c": np.ones(3)}}
    data = bytearray(columns.encode(tree, compress=compress))
    data[place % len(data)] = value
    try:
        columns.decode(bytes(data))
    except MalformedMessage:
        return
