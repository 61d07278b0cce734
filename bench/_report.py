"""What every benchmark prints: figures, and their ratios to a peer or a limit of the same run.

A ratio is taken in each round, of figures measured side by side, and shown as the median of the
rounds and their range: absolute figures are the machine's, ratios are ours.
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Figure", "Ratio", "Report", "ratios", "show", "tell"]


@dataclass(frozen=True)
class Figure:
    """Something measured once in each round."""

    what: str
    unit: str
    values: Sequence[float]

    def text(self) -> str:
        """One line."""
        return f"  {self.what:<46} {spread(self.values)} {self.unit}"

    def as_dict(self) -> dict[str, Any]:
        """Values and their summary."""
        return {"what": self.what, "unit": self.unit} | summary(self.values)


@dataclass(frozen=True)
class Ratio:
    """What was measured, divided in each round by a peer or a limit."""

    what: str
    peer: str
    values: Sequence[float]
    at_least: float | None = None
    below: float | None = None

    @property
    def is_missed(self) -> bool:
        """Whether there is a target, and the median does not hold it."""
        median = statistics.median(self.values)
        too_small = self.at_least is not None and median < self.at_least
        return too_small or (self.below is not None and median >= self.below)

    def text(self) -> str:
        """One line."""
        return f"  {self.what}: {spread(self.values)} of {self.peer}{self._target()}"

    def _target(self) -> str:
        if self.at_least is None and self.below is None:
            return ""
        limit = f"below {self.below:g}" if self.at_least is None else f"at least {self.at_least:g}"
        return f"; target {limit}: {'MISSED' if self.is_missed else 'holds'}"

    def as_dict(self) -> dict[str, Any]:
        """Values, their summary and the target."""
        target = {"at_least": self.at_least, "below": self.below, "is_missed": self.is_missed}
        return {"what": self.what, "peer": self.peer} | summary(self.values) | target


@dataclass
class Report:
    """One benchmark's result."""

    measures: str
    """What was measured, in a sentence."""
    figures: list[Figure] = field(default_factory=list)
    ratios: list[Ratio] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What was left out, and why; what disturbed the measurement."""

    def text(self) -> str:
        """The result for people."""
        lines = [self.measures]
        lines += [figure.text() for figure in self.figures]
        lines += [ratio.text() for ratio in self.ratios]
        lines += [f"  note: {remark}" for remark in self.remarks]
        return "\n".join(lines)

    def as_dict(self) -> dict[str, Any]:
        """The result for programs."""
        return {
            "measures": self.measures,
            "figures": [figure.as_dict() for figure in self.figures],
            "ratios": [ratio.as_dict() for ratio in self.ratios],
            "remarks": self.remarks,
        }

    @property
    def exit_status(self) -> int:
        """1 if a target is missed."""
        return int(any(ratio.is_missed for ratio in self.ratios))


def ratios(values: Sequence[float], peers: Sequence[float]) -> list[float]:
    """The ratio of each round."""
    return [value / peer for value, peer in zip(values, peers, strict=True)]


def summary(values: Sequence[float]) -> dict[str, Any]:
    """Median, range and the values themselves."""
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "values": list(values),
    }


def spread(values: Sequence[float]) -> str:
    """Median, and the range if there are several."""
    median = statistics.median(values)
    if len(values) == 1:
        return number(median)
    return f"{number(median)} ({number(min(values))} to {number(max(values))}, n={len(values)})"


def number(value: float) -> str:
    """Three significant digits at least, no exponent."""
    magnitude = abs(value)
    decimals = 2 - math.floor(math.log10(magnitude)) if magnitude > 0 else 0
    return f"{value:,.{min(max(decimals, 0), 6)}f}"


def show(description: str, measure: Callable[[], Report]) -> int:
    """Measure and print; the whole main function of most benchmarks. Returns the exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    return tell(measure(), is_json=options.json)


def tell(report: Report, *, is_json: bool) -> int:
    """Print; 1 if a target is missed."""
    print(json.dumps(report.as_dict()) if is_json else report.text())
    sys.stdout.flush()
    return report.exit_status
