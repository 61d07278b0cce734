"""The comparison of two runs as plain values."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl

from metrics.compare.agreement import Check, agreement
from metrics.compare.explanation import explanations
from metrics.compare.sides import (
    Totals,
    differing_facts,
    ecmp_sides,
    path_sides,
    queue_sides,
    totals,
)
from metrics.compare.times import collective_errors, flow_errors, matched_collectives
from metrics.records import RunRecords, load

__all__ = ["Comparison", "compare"]


@dataclass(frozen=True)
class Comparison:
    """Two runs side by side; relative errors are (second - first) / first."""

    first: RunRecords
    second: RunRecords
    checks: Sequence[Check]
    matched: pl.DataFrame
    """Collectives that completed in both."""
    errors: Sequence[dict[str, Any]]
    """Completion-time error per kind and size."""
    flows: dict[str, Any] | None
    """Flow-completion-time error; None when the messages are not the same."""
    totals: tuple[Totals, Totals]
    queues: Sequence[dict[str, Any]]
    ecmp: Sequence[dict[str, Any]]
    """Balance of equal-cost ports, measured and expected, of the most uneven groups."""
    paths: tuple[int, int]
    """Data flows with another largest path, of how many."""
    differing: Sequence[tuple[str, str | None, str | None]]
    """Settings that differ: path, first, second."""

    @property
    def explanations(self) -> list[str]:
        """What may explain the differences."""
        sides = (self.first, self.second)
        return explanations(sides, self.names, self.totals, self.paths, len(self.differing))

    @property
    def agrees(self) -> bool:
        """Counts, bytes and order are the same."""
        return all(check.holds for check in self.checks)

    @property
    def names(self) -> tuple[str, str]:
        """Short names of the two: the commands, else the models, else the directories."""
        commands = [str(side.run.get("command", "run")) for side in (self.first, self.second)]
        models = [str(side.run.get("model", "packets")) for side in (self.first, self.second)]
        if commands[0] != commands[1]:
            return commands[0], commands[1]
        if models[0] != models[1]:
            return models[0], models[1]
        places = [side.directory.resolve().name for side in (self.first, self.second)]
        return (places[0], places[1]) if places[0] != places[1] else ("first", "second")

    def as_dict(self) -> dict[str, Any]:
        """Everything for `--json`."""
        return {
            "first": str(self.first.directory),
            "second": str(self.second.directory),
            "agrees": self.agrees,
            "checks": [{**asdict(check), "holds": check.holds} for check in self.checks],
            "completion_time_errors": list(self.errors),
            "flow_completion_time_error": self.flows,
            "totals": {"first": self.totals[0], "second": self.totals[1]},
            "queues": list(self.queues),
            "ecmp": list(self.ecmp),
            "flows_on_other_paths": {"differing": self.paths[0], "compared": self.paths[1]},
            "explanations": self.explanations,
            "differing_settings": [
                {"setting": path, "first": left, "second": right}
                for path, left, right in self.differing
            ],
        }


def compare(first: Path | str | RunRecords, second: Path | str | RunRecords) -> Comparison:
    """Compare two run directories; raises `InputError` when one can't be read."""
    one, other = (side if isinstance(side, RunRecords) else load(side) for side in (first, second))
    matched = matched_collectives(one, other)
    return Comparison(
        one,
        other,
        checks=agreement(one, other),
        matched=matched,
        errors=collective_errors(matched),
        flows=flow_errors(one, other),
        totals=(totals(one), totals(other)),
        queues=queue_sides(one, other),
        ecmp=ecmp_sides(one, other),
        paths=path_sides(one, other),
        differing=differing_facts(one, other),
    )
