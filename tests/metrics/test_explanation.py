"""What may explain a difference is said with its numbers."""

from collections.abc import Callable

import numpy as np

from metrics.compare import compare
from metrics.records import RunRecords
from tests.metrics.synthetic import moe_run


def test_marks_and_lateness_are_named(record: Callable[..., RunRecords]) -> None:
    """More marks on one side, and how late its agents were, in wall and emulated time."""
    run, other = moe_run(), moe_run()
    other.engine["queues"]["marked_packets"] = np.zeros(3200, np.uint64)
    agent = {"name": "agent-0", "nodes": [], "lateness": {"p99_ns": 400_000}}
    result = compare(
        record(run, "a"),
        record(other, "b", command="run", time_dilation=2000, control={"agents": [agent]}),
    )
    marks = next(text for text in result.explanations if text.startswith("ECN marks"))
    assert marks.endswith("in predict, 0 in run.")
    assert any("400.0 µs late (wall), 200.0 ns emulated;" in text for text in result.explanations)


def test_equal_runs_need_no_explanation(record: Callable[..., RunRecords]) -> None:
    """Nothing differs, nothing is said."""
    assert compare(record(moe_run(), "a"), record(moe_run(), "b")).explanations == []
