"""What may explain a difference is said with its numbers."""

from collections.abc import Callable

import numpy as np

from metrics.compare import compare
from metrics.records import RunRecords
from tests.metrics.synthetic import moe_run


def test_marks_and_lateness_are_named(record: Callable[..., RunRecords]) -> None:
    """More marks on one side, and how many of its frames were late, in wall and emulated time."""
    run, other = moe_run(), moe_run()
    other.engine["queues"]["marked_packets"] = np.zeros(3200, np.uint64)
    lateness = {"frames": 2000, "late_frames": 30, "frame_max_ns": 400_000}
    agent = {"name": "agent-0", "nodes": [], "lateness": lateness}
    result = compare(
        record(run, "a"),
        record(other, "b", command="run", time_dilation=2000, control={"agents": [agent]}),
    )
    marks = next(text for text in result.explanations if text.startswith("ECN marks"))
    assert marks.endswith("in predict, 0 in run.")
    late = next(text for text in result.explanations if "agent agent-0" in text)
    assert late.startswith("run: 30 of 2\u202f000 frames to agent agent-0 came after their time")
    assert "by at most 400.0 µs (wall), 200.0 ns emulated;" in late


def test_equal_runs_need_no_explanation(record: Callable[..., RunRecords]) -> None:
    """Nothing differs, nothing is said."""
    assert compare(record(moe_run(), "a"), record(moe_run(), "b")).explanations == []
