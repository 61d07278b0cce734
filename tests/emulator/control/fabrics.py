"""Small fabrics and programs for tests of the control."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from traffic_profiles.program import Program


def config(hosts: int = 4, leaves: int = 2, rate_bps: int = 10**9) -> dict[str, Any]:
    """Return the nodes and links of hosts on leaves under one spine."""
    links = [
        _link(
            f"h{host}-l{host * leaves // hosts}", {"nic": host}, {"switch": host * leaves // hosts}
        )
        for host in range(hosts)
    ]
    links += [_link(f"l{leaf}-s0", {"switch": leaf}, {"switch": leaves}) for leaf in range(leaves)]
    for link in links:
        link["rate_bps"] = rate_bps
    return {
        "nics": [
            {"name": f"h{host}", "rank": host, "address": f"198.18.0.{host + 1}"}
            for host in range(hosts)
        ],
        "switches": [{"name": f"l{leaf}"} for leaf in range(leaves)] + [{"name": "s0"}],
        "links": links,
    }


def _link(name: str, a: dict[str, int], b: dict[str, int]) -> dict[str, Any]:
    return {"name": name, "a": {"node": a, "port": 0}, "b": {"node": b, "port": 0}}


def config_json(hosts: int = 4) -> str:
    """Return the configuration as the engine's document."""
    return json.dumps(config(hosts))


def joins(rank: int, count: int = 3) -> Program:
    """Return a program of operations that take no time."""
    return Program(
        rank=rank,
        kind=np.full(count, 3, np.uint8),
        peer=np.full(count, rank, np.uint32),
        size_bytes=np.zeros(count, np.uint64),
        duration_ps=np.zeros(count, np.uint64),
        lane=np.full(count, -1, np.int32),
        peer_op=np.zeros(count, np.uint32),
        channel=np.zeros(count, np.uint16),
        traffic_class=np.zeros(count, np.uint8),
        instance=np.full(count, 0xFFFFFFFF, np.uint32),
        row=np.full(count, 0xFFFFFFFF, np.uint32),
        dep_offsets=np.zeros(count + 1, np.uint32),
        deps=np.zeros(0, np.uint32),
    )


def completed(rank: int, ops: Sequence[int], end_ps: int) -> dict[str, Any]:
    """Return a progress report of some completed operations."""
    return {
        "rank": np.full(len(ops), rank, np.uint32),
        "op": np.array(ops, np.uint32),
        "start_ps": np.zeros(len(ops), np.uint64),
        "end_ps": np.full(len(ops), end_ps, np.uint64),
    }
