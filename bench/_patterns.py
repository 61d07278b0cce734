"""Traffic patterns on a Clos, for the benchmarks of virtual time.

A pattern says to which ranks each rank sends one message; all messages are sent at once.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

import dataplane
from emulator.job_config import job_config
from emulator.lab import load

__all__ = ["Pattern", "all_to_all", "clos_config", "incast", "permutation", "programs"]

SEND, RECV = 0, 1
HOSTS_PER_LEAF = 8

Pattern = Sequence[Sequence[int]]
"""For each rank, the ranks that it sends a message to."""


def permutation(hosts: int) -> Pattern:
    """Every rank sends to one other, half the ranks away."""
    return [[(rank + hosts // 2) % hosts] for rank in range(hosts)]


def incast(hosts: int) -> Pattern:
    """All others send to the last rank."""
    return [[hosts - 1] for _ in range(hosts - 1)] + [[]]


def all_to_all(hosts: int) -> Pattern:
    """Every rank sends to every other."""
    return [[(rank + step) % hosts for step in range(1, hosts)] for rank in range(hosts)]


def clos_config(hosts: int, *overrides: str) -> str:
    """Leaves of eight hosts and eight spines, 400 Gb/s, otherwise as in the demo."""
    leaves = max(1, hosts // HOSTS_PER_LEAF)
    shape = [f"leaves={leaves}", "spines=8", "hosts_per_leaf=8", "fabric_link.parallel=1"]
    # The demo's buffer for each port, also where a spine has more ports than a leaf.
    buffer_bytes = max(2 * HOSTS_PER_LEAF, leaves) * (3 << 20)
    settings = [f"switches.buffer_bytes={buffer_bytes}", *overrides]
    loaded = load("loopback-clos", [*(f"topology.{part}" for part in shape), *settings])
    return json.dumps(job_config(loaded.lab, loaded.fabric, seed=1))


def programs(pattern: Pattern, message_bytes: int) -> list[dataplane.Program]:
    """One message from each rank to each of its peers, all at once."""
    ops: list[list[tuple[int, int]]] = [[(SEND, peer) for peer in peers] for peers in pattern]
    for rank, peers in enumerate(pattern):
        for peer in peers:
            ops[peer].append((RECV, rank))
    places = [{op: place for place, op in enumerate(own)} for own in ops]
    return [_program(rank, ops, places, message_bytes) for rank in range(len(pattern))]


def _program(
    rank: int,
    ops: Sequence[Sequence[tuple[int, int]]],
    places: Sequence[dict[tuple[int, int], int]],
    message_bytes: int,
) -> dataplane.Program:
    mine = ops[rank]
    peer_ops = [places[peer][RECV if kind == SEND else SEND, rank] for kind, peer in mine]

    def filled(value: int, dtype: Any) -> Any:
        return np.full(len(mine), value, dtype=dtype)

    return dataplane.Program(
        rank=rank,
        kind=np.array([kind for kind, _ in mine], dtype=np.uint8),
        peer=np.array([peer for _, peer in mine], dtype=np.uint32),
        size_bytes=filled(message_bytes, np.uint64),
        duration_ps=filled(0, np.uint64),
        lane=filled(-1, np.int32),
        peer_op=np.array(peer_ops, dtype=np.uint32),
        instance=filled(0, np.uint32),
        row=filled(0, np.uint32),
        dep_offsets=np.zeros(len(mine) + 1, dtype=np.uint32),
        deps=np.array([], dtype=np.uint32),
    )
