"""Messages from the broker are untrusted: legal ones survive a round trip, all others are named."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.control.messages import (
    MAX_MESSAGE_BYTES,
    ActualState,
    BlobReference,
    DesiredState,
    MalformedMessage,
    Phase,
    WireAddress,
    decode,
    encode,
)

DESIRED = DesiredState(
    revision=3,
    phase=Phase.START,
    job=BlobReference(url="http://127.0.0.1:1/blobs/x", sha256="0" * 64, size_bytes=9),
    peers={"h0-l0/1": WireAddress(address="127.0.0.1", port=5000)},
    start_realtime_ns=1_700_000_000_000_000_000,
    records_url="http://127.0.0.1:1/records/a",
    token="secret-token",
)


def test_a_message_survives_encoding() -> None:
    """Decoding is the inverse of encoding."""
    assert decode(DesiredState, encode(DESIRED)) == DESIRED


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "explode"},
        {"revision": 0},
        {"revision": "3"},
        {"revision": 2**63},
        {"surprise": 1},
        {"start_realtime_ns": -1},
        {"job": {"url": "file:///etc/passwd", "sha256": "0" * 64, "size_bytes": 1}},
        {"job": {"url": "http://h/", "sha256": "zz", "size_bytes": 1}},
        {"peers": {"h0-l0/2": {"address": "127.0.0.1", "port": 1}}},
        {"peers": {"h0-l0/0": {"address": "127.0.0.1", "port": 65536}}},
    ],
)
def test_an_illegal_value_is_refused(change: dict[str, Any]) -> None:
    """Unknown keys, wrong types and values out of range make a message malformed."""
    document = json.loads(encode(DESIRED)) | change
    with pytest.raises(MalformedMessage):
        decode(DesiredState, json.dumps(document).encode())


def test_an_oversized_message_is_refused_before_it_is_parsed() -> None:
    """The limit is on the bytes."""
    with pytest.raises(MalformedMessage, match="at most"):
        decode(DesiredState, b" " * (MAX_MESSAGE_BYTES + 1))


@given(st.binary(max_size=200))
def test_garbage_is_always_malformed_and_never_another_error(payload: bytes) -> None:
    """No payload makes the decoder raise anything else."""
    with pytest.raises(MalformedMessage):
        decode(ActualState, payload)


def test_a_token_is_not_shown() -> None:
    """Secrets do not reach logs through repr."""
    assert "secret-token" not in repr(DESIRED)


def test_a_malformed_message_does_not_quote_its_input() -> None:
    """The error names the place, not the value, which may be a secret."""
    document = json.loads(encode(DESIRED)) | {"token": ["secret-token"]}
    with pytest.raises(MalformedMessage) as caught:
        decode(DesiredState, json.dumps(document).encode())
    assert "secret-token" not in str(caught.value)


def test_words_of_another_host_are_only_shown() -> None:
    """A terminal would obey what is between them."""
    reason = "lost\x1b]0;title\x07\nthen\u202egone"
    payload = b'{"incarnation":"%s","revision":0,"state":"failed","reason":%s}' % (
        b"0" * 64,
        json.dumps(reason).encode(),
    )
    assert decode(ActualState, payload).reason == "lost ]0;title  then gone"
