"""What may explain a difference between two runs, from what both recorded; facts, no verdicts."""

from collections.abc import Iterator, Mapping
from typing import Any

from metrics.compare.sides import Totals
from metrics.fluid import fluid_label, is_fluid
from metrics.presentation import count_text, duration_text
from metrics.records import RunRecords

__all__ = ["explanations"]

_NOTABLE_RATIO = 0.1
_COUNTED = {
    "dropped_packets": "packets dropped",
    "resent_packets": "packets sent again",
    "pause_frames_sent": "pause frames",
    "ecn_marked_packets": "ECN marks",
    "cnps_handled": "CNPs handled",
}


def explanations(
    sides: tuple[RunRecords, RunRecords],
    names: tuple[str, str],
    totals: tuple[Totals, Totals],
    paths: tuple[int, int],
    differing_settings: int,
) -> list[str]:
    """Sentences: settings, what the fabric did differently, how late the wall clock was."""
    found = []
    if differing_settings:
        found.append(f"{differing_settings} settings differ; they are listed.")
    found += _fabric(names, totals)
    if paths[0]:
        found.append(
            f"{count_text(paths[0])} of {count_text(paths[1])} data flows took another path."
        )
    found += _balance(names, totals)
    for side, name in zip(sides, names, strict=True):
        if is_fluid(side.run):
            found.append(f"{name}: {fluid_label(side.run)}")
        found += [f"{name}: {text}" for text in _lateness(side.run)]
    return found


def _fabric(names: tuple[str, str], totals: tuple[Totals, Totals]) -> Iterator[str]:
    """Counts of marks, pauses, drops and resends that are not about the same."""
    for figure, title in _COUNTED.items():
        first, second = totals[0][figure], totals[1][figure]
        if first is None or second is None:
            continue
        if abs(second - first) > _NOTABLE_RATIO * max(first, second):
            yield (
                f"{title}: {count_text(first)} in {names[0]}, {count_text(second)} in {names[1]}."
            )


def _balance(names: tuple[str, str], totals: tuple[Totals, Totals]) -> Iterator[str]:
    """Loads of equal-cost ports that are not about equally uneven."""
    first, second = (side["ecmp_max_over_mean"] for side in totals)
    if first and second and abs(second - first) > _NOTABLE_RATIO * max(first, second):
        yield (
            f"equal-cost ports: largest/mean load {first:.2f} in {names[0]}, {second:.2f} in "
            f"{names[1]}."
        )


def _lateness(run: Mapping[str, Any]) -> Iterator[str]:
    """How many frames came after their time, and by how much in wall and emulated time."""
    dilation = float(run.get("time_dilation") or 1)
    for agent in run.get("control", {}).get("agents", []):
        lateness = agent.get("lateness", {})
        if late := lateness.get("late_frames"):
            late_ns = lateness["frame_max_ns"]
            yield (
                f"{count_text(late)} of {count_text(lateness['frames'])} frames to agent "
                f"{agent['name']} came after their time, by at most {duration_text(late_ns)} "
                f"(wall), {duration_text(late_ns / dilation)} emulated; all others came in time."
            )
