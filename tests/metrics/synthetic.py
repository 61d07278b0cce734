"""A small made-up run for tests: a two-leaf Clos, ring all-reduces and linear all-to-alls.

The times are drawn, not simulated, but the programs and the engine's columns have the real layout.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

SEND, RECV, DELAY, JOIN = range(4)
NONE = 0xFFFFFFFF
RATE_BPS = 400_000_000_000
NOT_DONE = 2**64 - 1


@dataclass
class Program:
    """One rank's columns."""

    rank: int
    kind: Any
    peer: Any
    peer_op: Any
    size_bytes: Any
    duration_ps: Any
    lane: Any
    instance: Any
    row: Any


@dataclass
class Run:
    """Everything that `write_records` takes."""

    programs: list[Program]
    instances: pl.DataFrame
    config: dict[str, Any]
    engine: dict[str, Any]


def clos(ranks: int) -> dict[str, Any]:
    """Configuration of `ranks` NICs on two leaves, each with one link to each of two spines."""
    links = []
    for rank in range(ranks):
        leaf = rank * 2 // ranks
        links.append(_link(f"host{rank}-leaf{leaf}", {"nic": rank}, 0, {"switch": leaf}, rank))
    for leaf in (0, 1):
        for spine in (0, 1):
            end = {"switch": 2 + spine}
            links.append(
                _link(f"leaf{leaf}-spine{spine}", {"switch": leaf}, ranks + spine, end, leaf)
            )
    names = ["leaf0", "leaf1", "spine0", "spine1"]
    return {
        "seed": 1,
        "nics": [{"name": f"host{rank}", "rank": rank} for rank in range(ranks)],
        "switches": [{"name": name, "routes": [[8, 9]]} for name in names],
        "links": links,
        "transport": {"mtu_bytes": 4096},
    }


def _link(name: str, a: dict[str, int], a_port: int, b: dict[str, int], b_port: int) -> Any:
    return {
        "name": name,
        "a": {"node": a, "port": a_port},
        "b": {"node": b, "port": b_port},
        "rate_bps": RATE_BPS,
        "delay_ps": 500_000,
    }


class Builder:
    """Programs under construction: per rank, rows of (kind, peer, size, lane, instance, row)."""

    def __init__(self, ranks: int, seed: int) -> None:
        self.ranks = ranks
        self.random = np.random.default_rng(seed)
        self.ops: list[list[list[int]]] = [[] for _ in range(ranks)]
        self.times: list[list[tuple[int, int]]] = [[] for _ in range(ranks)]
        self.clock = np.zeros(ranks, dtype=np.int64)
        self.instances: list[dict[str, Any]] = []

    def compute(self, mean_ps: int, row: int) -> None:
        """One DELAY on every rank."""
        for rank in range(self.ranks):
            length = int(mean_ps * self.random.uniform(0.9, 1.1))
            self.ops[rank].append([DELAY, rank, 0, 0, NONE, row, 0])
            self._spend(rank, length)

    def collective(self, kind: str, size: int, iteration: int, row: int) -> None:
        """A ring (all_reduce) or linear (all_to_all) collective among all ranks."""
        number = len(self.instances)
        algorithm = "ring" if kind == "all_reduce" else "linear"
        self.instances.append(
            {
                "instance": number, "iteration": iteration, "kind": kind, "group": "world",
                "ranks": list(range(self.ranks)), "algorithm": algorithm, "size_bytes": size,
                "traced_size_bytes": size, "label": f"{kind}#{row}",
            }
        )  # fmt: skip
        chunk = size // self.ranks
        factor = float(self.random.lognormal(0.15, 0.12))
        for sender, receiver in self._pairs(kind):
            self._message(sender, receiver, chunk, number, row, factor)
        self.clock[:] = self.clock.max()

    def _pairs(self, kind: str) -> list[tuple[int, int]]:
        n = self.ranks
        if kind == "all_reduce":
            return [(r, (r + 1) % n) for _ in range(2 * (n - 1)) for r in range(n)]
        return [(r, (r + k) % n) for k in range(1, n) for r in range(n)]

    def _message(self, a: int, b: int, size: int, number: int, row: int, factor: float) -> None:
        length = int((size * 20 + 3_000_000) * factor * self.random.lognormal(0, 0.05))
        self.ops[a].append([SEND, b, size, -1, number, row, len(self.ops[b])])
        self.ops[b].append([RECV, a, size, -1, number, row, len(self.ops[a]) - 1])
        start = int(self.clock[a])
        self.times[a].append((start, start + length + 2_000_000))
        self.times[b].append((int(self.clock[b]), start + length))
        self.clock[a] += length

    def _spend(self, rank: int, length: int) -> None:
        self.times[rank].append((int(self.clock[rank]), int(self.clock[rank]) + length))
        self.clock[rank] += length

    def programs(self) -> list[Program]:
        """The finished columns."""
        return [_program(rank, self.ops[rank]) for rank in range(self.ranks)]


def _program(rank: int, ops: Sequence[Sequence[int]]) -> Program:
    table = np.array(ops, dtype=np.int64).reshape(-1, 7)
    return Program(
        rank=rank,
        kind=table[:, 0].astype(np.uint8),
        peer=table[:, 1].astype(np.uint32),
        size_bytes=table[:, 2].astype(np.uint64),
        duration_ps=np.zeros(len(table), np.uint64),
        lane=table[:, 3].astype(np.int32),
        instance=table[:, 4].astype(np.uint32),
        row=table[:, 5].astype(np.uint32),
        peer_op=table[:, 6].astype(np.uint32),
    )


def moe_run(ranks: int = 8, iterations: int = 3, layers: int = 6, seed: int = 7) -> Run:
    """Iterations of compute, all-reduce and all-to-all on every rank."""
    builder = Builder(ranks, seed)
    for iteration in range(iterations):
        for layer in range(layers):
            builder.compute(60_000_000, 3 * layer)
            builder.collective("all_reduce", 8_000_000, iteration, 3 * layer + 1)
            builder.collective("all_to_all", 4_000_000, iteration, 3 * layer + 2)
    config = clos(ranks)
    schema = {
        "instance": pl.UInt32, "iteration": pl.UInt32, "kind": pl.String, "group": pl.String,
        "ranks": pl.List(pl.UInt32), "algorithm": pl.String, "size_bytes": pl.UInt64,
        "traced_size_bytes": pl.UInt64, "label": pl.String,
    }  # fmt: skip
    return Run(
        builder.programs(),
        pl.DataFrame(builder.instances, schema=schema),
        config,
        engine_columns(builder, config),
    )


def engine_columns(builder: Builder, config: dict[str, Any]) -> dict[str, Any]:
    """What the engine would report of a built run."""
    end_ps = int(builder.clock.max())
    return {
        "ops": _ops(builder),
        "links": _links(config, end_ps),
        "queues": _queues(end_ps),
        "qps": _qps(builder, end_ps),
        "counters": _counters(builder),
    }


def _ops(builder: Builder) -> dict[str, Any]:
    counts = [len(times) for times in builder.times]
    times = np.array([pair for rank in builder.times for pair in rank], dtype=np.uint64)
    total = len(times)
    marked = builder.random.poisson(0.4, total).astype(np.uint32)
    return {
        "rank": np.repeat(np.arange(builder.ranks, dtype=np.uint32), counts),
        "op": np.concatenate([np.arange(count, dtype=np.uint32) for count in counts]),
        "start_ps": times[:, 0],
        "end_ps": times[:, 1],
        "retransmitted_packets": np.zeros(total, np.uint32),
        "marked_packets": marked,
        "cnps": (marked > 1).astype(np.uint32),
    }


def _grid(count: int, samples: int, end_ps: int) -> tuple[Any, Any, Any]:
    """Series index, time and phase (0 to 1) of `samples` points of `count` series."""
    series = np.tile(np.arange(count), samples)
    times = np.repeat(np.linspace(end_ps / samples, end_ps, samples), count)
    return series, times.astype(np.uint64), times / end_ps


def _links(config: dict[str, Any], end_ps: int) -> dict[str, Any]:
    count, samples = 2 * len(config["links"]), 400
    series, times, phase = _grid(count, samples, end_ps)
    interval = end_ps // samples
    wave = np.clip(np.sin(phase * 240 + series * 0.05) * 0.8 + 0.3, 0, 0.98)
    tx_bytes = (wave * interval / 20).astype(np.uint64)
    return {
        "time_ps": times,
        "interval_ps": np.full(len(times), interval, np.uint64),
        "link": (series // 2).astype(np.uint32),
        "direction": (series % 2).astype(np.uint8),
        "tx_bytes": tx_bytes,
        "tx_packets": tx_bytes // 4158,
        "data_bytes": (tx_bytes * 0.98).astype(np.uint64),
        "busy_ps": tx_bytes * 20,
        "paused_ps": np.zeros(len(times), np.uint64),
    }


def _queues(end_ps: int) -> dict[str, Any]:
    series, times, phase = _grid(8, 400, end_ps)
    depth = np.clip(np.sin(phase * 240 + series) * 6e5, 0, None).astype(np.uint64)
    zeros = np.zeros(len(times), np.uint64)
    return {
        "time_ps": times,
        "interval_ps": np.full(len(times), end_ps // 400, np.uint64),
        "node": (series // 2 % 4).astype(np.uint32),
        "is_switch": np.ones(len(times), bool),
        "port": (series % 2 + 8 * (series < 4)).astype(np.uint16),
        "priority": np.full(len(times), 3, np.uint8),
        "depth_bytes": depth,
        "max_depth_bytes": depth + 4178,
        "marked_packets": depth // 100_000,
        "dropped_packets": zeros,
        "dropped_bytes": zeros,
        "wred_dropped_packets": zeros,
        "pause_frames_sent": zeros,
        "pause_frames_received": zeros,
    }


def _qps(builder: Builder, end_ps: int) -> dict[str, Any]:
    series, times, phase = _grid(builder.ranks, 400, end_ps)
    rate = RATE_BPS * (0.6 + 0.4 * np.cos(phase * 100 + series) ** 2)
    return {
        "time_ps": times,
        "source_rank": series.astype(np.uint32),
        "destination_rank": ((series + 1) % builder.ranks).astype(np.uint32),
        "qp": (series + 17).astype(np.uint32),
        "current_rate_bps": rate.astype(np.uint64),
        "target_rate_bps": np.minimum(rate * 1.1, RATE_BPS).astype(np.uint64),
        "alpha": 0.5 + 0.5 * np.sin(phase * 100 + series),
    }


def _counters(builder: Builder) -> dict[str, Any]:
    sent = [sum(op[2] for op in ops if op[0] == SEND) for ops in builder.ops]
    received = [sum(op[2] for op in ops if op[0] == RECV) for ops in builder.ops]
    return {
        "nics": {
            "data_payload_bytes_sent": np.array(sent, np.uint64),
            "data_payload_bytes_received": np.array(received, np.uint64),
            "data_payload_bytes_retransmitted": np.zeros(builder.ranks, np.uint64),
            "cnps_sent": np.full(builder.ranks, 12, np.uint64),
            "cnps_handled": np.full(builder.ranks, 12, np.uint64),
            "ecn_marked_packets": np.full(builder.ranks, 40, np.uint64),
        }
    }


def snapshot_of(run: Run, share: float = 1.0) -> dict[str, Any]:
    """The engine's totals when `share` of the operations have ended."""
    ops, config = run.engine["ops"], run.config
    now_ps = int(np.quantile(ops["end_ps"], share))
    count = 2 * len(config["links"])
    links = run.engine["links"]
    past = links["time_ps"] <= now_ps
    index = links["link"][past].astype(int) * 2 + links["direction"][past]
    return {
        "now_ps": now_ps,
        "ops_done": int((ops["end_ps"] <= now_ps).sum()),
        "ops_total": len(ops["op"]),
        "bytes_delivered": 1_000_000,
        "events": 123,
        "lateness_p99_ns": 250_000,
        "late_frames": 3,
        "links": {
            name: np.bincount(index, links[name][past], count).astype(np.uint64)
            for name in ("tx_bytes", "tx_packets")
        }
        | {
            "flows": np.full(count, 7, np.uint64),
            "expected_bytes": np.arange(count, dtype=np.uint64) * 1000,
        },
        "link_changes": {
            name: np.zeros(len(config["links"]), np.uint64)
            for name in ("down", "up", "rate", "lost_packets_from_a", "lost_packets_from_b")
        },
        "pauses": _pause_totals(),
        "queues": _queue_totals(),
        "nics": {
            **run.engine["counters"]["nics"],
            **{
                name: np.zeros(len(config["nics"]), np.uint64)
                for name in (
                    "out_of_sequence", "packet_seq_err", "duplicate_requests",
                    "local_ack_timeout_err", "rx_icrc_errors", "payload_mismatches",
                )
            },
        },
    }  # fmt: skip


def _pause_totals() -> dict[str, Any]:
    """Priority 3 of ports 0 and 8 of the first switch; port 0 has paused its host five times."""
    return {
        "switch": np.zeros(2, np.uint32),
        "port": np.array([0, 8], np.uint16),
        "priority": np.full(2, 3, np.uint8),
        "pauses": np.array([5, 0], np.uint64),
    }


def _queue_totals() -> dict[str, Any]:
    """Eight priorities of two ports of four switches; priority 3 has held something."""
    index = np.arange(64)
    priority = index % 8
    depth = np.where(priority == 3, 5000 + index, 0).astype(np.uint64)
    zeros = np.zeros(64, np.uint64)
    return {
        "node": (index // 16).astype(np.uint32),
        "is_switch": np.ones(64, bool),
        "port": (8 + index // 8 % 2).astype(np.uint16),
        "priority": priority.astype(np.uint8),
        "depth_bytes": depth,
        "max_depth_bytes": depth * 2,
        "paused_ps": depth * 1000,
        "marked_packets": depth // 1000,
        "dropped_packets": zeros,
        "wred_dropped_packets": zeros,
        "pause_frames_sent": zeros,
        "pause_frames_received": zeros,
    }
