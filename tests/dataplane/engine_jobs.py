"""Small jobs for the engine: a ring of ranks on one switch."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

import dataplane
from emulator.job_config import job_config
from emulator.lab import load

NONE = 0xFFFFFFFF
SEND, RECV, DELAY, JOIN = range(4)


def star_config(hosts: int, *overrides: str) -> dict[str, Any]:
    """`hosts` hosts on one switch, with the switch and the parameters of a shipped lab."""
    loaded = load("single-switch", [f"topology.hosts_per_leaf={hosts}", *overrides])
    return job_config(loaded.lab, loaded.fabric, seed=1)


def program(rank: int, ops: Sequence[dict[str, Any]]) -> dataplane.Program:
    """A program from one dictionary for each operation; what is left out is none or zero."""

    def column(name: str, dtype: Any, absent: int) -> Any:
        return np.array([op.get(name, absent) for op in ops], dtype=dtype)

    deps = [op.get("deps", ()) for op in ops]
    return dataplane.Program(
        rank=rank,
        kind=column("kind", np.uint8, JOIN),
        peer=column("peer", np.uint32, rank),
        size_bytes=column("size_bytes", np.uint64, 0),
        duration_ps=column("duration_ps", np.uint64, 0),
        lane=column("lane", np.int32, -1),
        peer_op=column("peer_op", np.uint32, 0),
        instance=column("instance", np.uint32, NONE),
        row=column("row", np.uint32, NONE),
        dep_offsets=np.cumsum([0, *map(len, deps)], dtype=np.uint32),
        deps=np.array([dep for some in deps for dep in some], dtype=np.uint32),
    )


def ring(ranks: int, steps: int, size_bytes: int) -> list[dataplane.Program]:
    """Each rank sends to the next; a step needs the message of the step before."""

    def ops(rank: int) -> list[dict[str, Any]]:
        following, preceding = (rank + 1) % ranks, (rank - 1) % ranks
        made: list[dict[str, Any]] = []
        for step in range(steps):
            send = {"kind": SEND, "peer": following, "size_bytes": size_bytes}
            recv = {"kind": RECV, "peer": preceding, "size_bytes": size_bytes}
            made.append({**send, "peer_op": 2 * step + 1, "deps": [2 * step - 1] if step else []})
            made.append({**recv, "peer_op": 2 * step})
        return made

    return [program(rank, ops(rank)) for rank in range(ranks)]


def virtual(config: dict[str, Any], programs: Sequence[dataplane.Program]) -> dataplane.Emulation:
    """A job in virtual time."""
    return dataplane.Emulation(json.dumps(config), programs)
