"""Byte conservation: what was sent, what arrived and what the programs ask for must be equal."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl

from metrics.records.operations import RECV, SEND, Operations

__all__ = ["conservation"]


def conservation(
    operations: Operations, collectives: pl.DataFrame, nic_counters: Mapping[str, Sequence[Any]]
) -> dict[str, Any]:
    """The sums of bytes over the run, and whether they agree.

    Messages: bytes of completed sends, of completed receives, and of all sends of the programs.
    Packets: payload that the NICs sent apart from retransmissions and clear-to-send messages, and
    received; compared only when all operations are complete, and only if the engine counts them.
    Clear-to-send messages are no bytes of a collective; they are counted apart.
    """
    done = operations.done
    sums = {
        "sent_bytes": _sum(operations, (operations.kind == SEND) & done),
        "received_bytes": _sum(operations, (operations.kind == RECV) & done),
        "expected_bytes": _sum(operations, operations.kind == SEND),
    }
    complete = bool(done.all())
    broken = _unbalanced(collectives)
    packets = _payload(nic_counters) if complete else {}
    whole = len({*sums.values(), *packets.values()}) == 1
    return {
        **sums,
        **packets,
        "clear_to_send_messages": int(np.sum(nic_counters.get("clear_to_send_sent", [0]))),
        "complete": complete,
        "unbalanced_instances": broken,
        "holds": not broken and (whole or not complete),
    }


def _sum(operations: Operations, mask: Any) -> int:
    """Bytes of the operations under `mask`."""
    return int(operations.size_bytes[mask].sum(dtype=np.uint64))


def _unbalanced(collectives: pl.DataFrame) -> list[int]:
    """Complete instances whose bytes sent, received and expected differ."""
    column = pl.col
    differs = (column("bytes_sent") != column("bytes_received")) | (
        column("bytes_sent") != column("bytes_expected")
    )
    return collectives.filter(column("complete") & differs)["instance"].to_list()


def _payload(counters: Mapping[str, Sequence[Any]]) -> dict[str, int]:
    """New payload bytes sent and payload bytes accepted by all NICs, if counted."""
    if "data_payload_bytes_sent" not in counters:
        return {}
    total = {name: int(np.sum(counters.get(name, [0]), dtype=np.uint64)) for name in _PAYLOAD}
    return {
        "nic_sent_bytes": total["data_payload_bytes_sent"]
        - total["data_payload_bytes_retransmitted"]
        - total["clear_to_send_bytes_sent"],
        "nic_received_bytes": total["data_payload_bytes_received"]
        - total["clear_to_send_bytes_received"],
    }


_PAYLOAD = (
    "data_payload_bytes_sent",
    "data_payload_bytes_retransmitted",
    "data_payload_bytes_received",
    "clear_to_send_bytes_sent",
    "clear_to_send_bytes_received",
)
