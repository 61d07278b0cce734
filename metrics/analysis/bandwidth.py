"""Algorithm and bus bandwidth, and the bytes that RoCEv2 puts on the wire for a message.

Source of the factors and of what S means: nccl-tests (PERFORMANCE.md). S is the whole array: for
all-gather and reduce-scatter n times the shard of one rank.
"""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ACK_WIRE_BYTES",
    "OVERLAPPED_BY_SLICES",
    "PACKET_OVERHEAD_BYTES",
    "PREAMBLE_AND_GAP_BYTES",
    "bus_factor",
    "frame_wire_bytes",
    "header_efficiency",
    "message_wire_bytes",
    "serial_steps",
]

PREAMBLE_AND_GAP_BYTES = 20
"""Bytes on the link between frames: preamble and start 8, least gap 12 (IEEE 802.3)."""
PACKET_OVERHEAD_BYTES = 82
"""Bytes on the link around the payload of a middle packet: preamble and gap 20, Ethernet 14, IPv4
20, UDP 8, BTH 12, ICRC 4, FCS 4 (IEEE 802.3, InfiniBand Architecture Annex A17)."""
RETH_BYTES = 16
IMMEDIATE_BYTES = 4
ACK_WIRE_BYTES = 86
"""An acknowledgement on the link: `PACKET_OVERHEAD_BYTES` and the AETH of 4 bytes."""
WRITE_LIMIT_BYTES = 1 << 31
"""Largest RDMA WRITE; longer messages are several of them (InfiniBand Architecture 9.7.8)."""

_UNIT_FACTOR = frozenset({"broadcast", "reduce", "send_recv", "barrier"})
_SHARD_FACTOR = frozenset({"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"})


def bus_factor(kind: str, ranks: int) -> float:
    """Factor from algorithm to bus bandwidth of a collective among `ranks` ranks.

    A kind that nccl-tests doesn't have, and any collective of one rank, has 1.
    """
    if ranks < 2 or kind in _UNIT_FACTOR:
        return 1.0
    if kind == "all_reduce":
        return 2.0 * (ranks - 1) / ranks
    if kind in _SHARD_FACTOR:
        return (ranks - 1) / ranks
    return 1.0


def header_efficiency(mtu_bytes: int) -> float:
    """Share of the line rate left for payload by full packets: MTU / (MTU + overhead)."""
    return mtu_bytes / (mtu_bytes + PACKET_OVERHEAD_BYTES)


def message_wire_bytes(size_bytes: NDArray[np.uint64], mtu_bytes: int) -> NDArray[np.uint64]:
    """Bytes on the link for one message as RDMA WRITEs with an immediate, gaps included."""
    size = np.asarray(size_bytes, dtype=np.uint64)
    writes = np.maximum(-(-size.astype(np.int64) // WRITE_LIMIT_BYTES), 1).astype(np.uint64)
    packets = np.maximum(-(-size.astype(np.int64) // mtu_bytes), 1).astype(np.uint64)
    pad = (-size.astype(np.int64) % 4).astype(np.uint64)
    headers = packets * np.uint64(PACKET_OVERHEAD_BYTES) + writes * np.uint64(RETH_BYTES)
    return size + pad + headers + np.uint64(IMMEDIATE_BYTES)


def frame_wire_bytes(size_bytes: NDArray[np.uint64], mtu_bytes: int) -> NDArray[np.float64]:
    """Bytes on the link of the largest packet of a message, without RETH and immediate."""
    payload = np.minimum(np.asarray(size_bytes, dtype=np.float64), mtu_bytes)
    return payload + PACKET_OVERHEAD_BYTES


OVERLAPPED_BY_SLICES = frozenset({"ring", "halving_doubling", "recursive_doubling"})
"""Algorithms whose steps overlap once each has several messages: the link sends slices of one step
while those of another are on their way, so that the ideal pays the latency of one path."""


def serial_steps(kind: str, algorithm: str, ranks: int) -> int:
    """Messages that must follow one another in a collective, at least.

    The latency of one path is paid once for each. A windowed all-to-all and an unknown algorithm
    count as one step, so that the ideal stays a lower bound.
    """
    if ranks < 2:
        return 0
    phases = 2 if kind == "all_reduce" else 1
    if algorithm in {"double_binary_tree", "binomial"}:
        return phases * math.floor(math.log2(ranks))
    if algorithm in {"halving_doubling", "recursive_doubling", "dissemination"}:
        return phases * math.ceil(math.log2(ranks))
    if algorithm in {"ring", "chain"}:
        return phases * (ranks - 1)
    return phases if algorithm == "direct" else 1
