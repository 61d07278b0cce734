"""The ideal of an uneven all-to-all is that of its busiest rank."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from metrics.analysis.bandwidth import header_efficiency
from metrics.records import RunRecords
from tests.metrics.synthetic import RATE_BPS, RECV, SEND, moe_run
from tests.metrics.test_flow_paths import recorded

BYTES = np.array([[0, 1_000_000, 500_000], [100_000, 0, 3_000_000], [200_000, 0, 0]])
"""From row to column: rank 1 sends most, 3.1 MB, but rank 2 receives more, 3.5 MB."""


def test_the_ideal_is_the_busiest_ranks_bytes_over_the_goodput(
    record: Callable[..., RunRecords],
) -> None:
    """3.5 MB at 400 Gb/s x 4096 / 4178 are 71.4 us, beside one path latency."""
    run = moe_run(ranks=3, iterations=1, layers=1)
    for program in run.programs:
        peers = program.peer.astype(int)
        ends = {SEND: (program.rank, peers), RECV: (peers, program.rank)}
        for kind, (source, destination) in ends.items():
            mine = (program.kind == kind) & (program.instance == 1)
            sizes = np.broadcast_to(BYTES[source, destination], mine.shape)
            program.size_bytes[mine] = sizes[mine]
    even, uneven = record(run).collectives.sort("instance").to_dicts()
    assert (even["kind"], uneven["kind"]) == ("all_reduce", "all_to_all")
    transfer_ns = 3_500_000 * 8e9 / (RATE_BPS * header_efficiency(4096))
    assert transfer_ns == pytest.approx(71_401, rel=1e-4)
    assert uneven["ideal_ns"] == pytest.approx(transfer_ns + uneven["path_latency_ns"])
    assert even["ideal_ns"] == pytest.approx(
        8_000_000 * 4 / 3 * 8e9 / (RATE_BPS * header_efficiency(4096))
        + even["serial_steps"] * even["path_latency_ns"]
    )


def test_nothing_beats_it_and_an_undisturbed_one_comes_near(tmp_path: Path) -> None:
    """On one switch, rank 0 of three sends three times what the others do: within 1 % of ideal."""
    file = tmp_path / "splits.csv"
    file.write_text("0,3,3\n1,0,1\n1,1,0\n", encoding="utf-8")
    rule = f"[{{collective: all_to_all, algorithm: linear, split_matrix_file: {file}}}]"
    records = recorded(
        tmp_path / "run", "single-switch", "all-to-all,repeats=1",
        "topology.hosts_per_leaf=3", f"collectives.rules={rule}",
    )  # fmt: skip
    (row,) = records.collectives.to_dicts()
    sent = records.flows.group_by("source_rank").sum().sort("source_rank")["size_bytes"].to_list()
    assert sent[0] == pytest.approx(3 * sent[1], rel=1e-6)
    assert 0.99 < row["ideal_ratio"] <= 1
