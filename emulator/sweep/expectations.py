"""What a sweep is expected to show: figures of its points, or their ratios, within bounds.

An expectation holds when it holds on every seed: points of one seed are compared with each other.
It knows figures by name and points by their settings, nothing of how they came about.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from emulator.lab.base import LabPart
from emulator.sweep.figures import figure_problem

__all__ = [
    "Divisor",
    "Expectation",
    "Measured",
    "Outcome",
    "check_expectations",
    "expectation_problems",
]


class Divisor(LabPart):
    """What a figure is divided by."""

    figure: str | None = None
    """Figure of the divisor; left out, the same."""
    where: dict[str, Any] = Field(default_factory=dict)
    """Settings of the divisor's point; those that are left out are the same."""


class Expectation(LabPart):
    """One figure of one setting, or its ratio to another, and its bounds."""

    that: Annotated[str, Field(min_length=1)]
    """What is expected, in a sentence."""
    figure: str
    """Figure, as for `rank_by`."""
    where: dict[str, Any] = Field(default_factory=dict)
    """Setting -> value, so that one point of each seed is left."""
    over: Divisor | None = None
    """Divide by this."""
    at_least: float | None = None
    """Smallest value."""
    at_most: float | None = None
    """Largest value."""
    published: str = ""
    """What somebody else found; for people."""
    remark: str = ""
    """Why it differs from what was published; for people."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of an expectation."""

    expectation: Expectation
    values: list[float]
    """By seed, in their order; points that failed are missing."""
    holds: bool

    @property
    def text(self) -> str:
        """One line."""
        given = self.expectation
        bounds = [f"at least {given.at_least:g}"] if given.at_least is not None else []
        bounds += [f"at most {given.at_most:g}"] if given.at_most is not None else []
        measured = " ".join(f"{value:.4g}" for value in self.values) or "nothing"
        verdict = "holds" if self.holds else "DOES NOT HOLD"
        return f"{verdict}: {given.that}: {measured}, expected {' and '.join(bounds)}"

    def as_dict(self) -> dict[str, Any]:
        """For `sweep.json`."""
        given = self.expectation.model_dump(mode="json", exclude_defaults=True)
        return {**given, "values": self.values, "holds": self.holds}


@dataclass(frozen=True, slots=True)
class Measured:
    """A point and its figures; a failed one has none."""

    settings: Mapping[str, Any]
    seed: int
    figures: Mapping[str, float]


def check_expectations(
    expectations: Sequence[Expectation], points: Sequence[Measured]
) -> list[Outcome]:
    """Compare every expectation with the points' figures."""
    return [_outcome(expectation, points) for expectation in expectations]


def _outcome(given: Expectation, points: Sequence[Measured]) -> Outcome:
    seeds = list(dict.fromkeys(point.seed for point in points))
    values = [_value(given, [one for one in points if one.seed == seed]) for seed in seeds]
    known = [value for value in values if value is not None]
    return Outcome(given, known, len(known) == len(seeds) and all(_fits(given, v) for v in known))


def _fits(given: Expectation, value: float) -> bool:
    is_enough = given.at_least is None or value >= given.at_least
    return is_enough and (given.at_most is None or value <= given.at_most)


def _value(given: Expectation, points: Sequence[Measured]) -> float | None:
    """The figure or ratio of one seed; `None` if a point failed or has no such figure."""
    value = _figure(given.figure, given.where, points)
    if given.over is None or value is None:
        return value
    divisor = _figure(given.over.figure or given.figure, given.where | given.over.where, points)
    return value / divisor if divisor else None


def _figure(name: str, where: Mapping[str, Any], points: Sequence[Measured]) -> float | None:
    found = [point.figures for point in points if where.items() <= point.settings.items()]
    return found[0].get(name) if len(found) == 1 else None


def expectation_problems(
    expectations: Sequence[Expectation], grid: Mapping[str, Sequence[Any]]
) -> list[tuple[tuple[str | int, ...], str, str]]:
    """What is wrong with them in a sweep of that grid: key path, what, and what would be right."""
    problems: list[tuple[tuple[str | int, ...], str, str]] = []
    for index, given in enumerate(expectations):
        path: tuple[str | int, ...] = ("expect", index)
        if given.at_least is None and given.at_most is None:
            problems.append((path, "has no bound", "give at_least, at_most or both"))
        named = [(given.figure, (*path, "figure"))]
        places = [(given.where, (*path, "where"))]
        if given.over is not None:
            named.append((given.over.figure or given.figure, (*path, "over", "figure")))
            places.append((given.where | given.over.where, (*path, "over", "where")))
        for name, place in named:
            wrong = figure_problem(name)
            if wrong is not None:
                problems.append((place, *wrong))
        for where, place in places:
            problems += [(place, *wrong) for wrong in _where_problems(where, grid)]
    return problems


def _where_problems(
    where: Mapping[str, Any], grid: Mapping[str, Sequence[Any]]
) -> list[tuple[str, str]]:
    problems = []
    for name, value in where.items():
        if name not in grid:
            problems.append((f"names {name}, which is not varied", f"one of {', '.join(grid)}"))
        elif value not in grid[name]:
            known = ", ".join(map(str, grid[name]))
            problems.append((f"says {name}={value}, which is no point", f"one of {known}"))
    open_ = [name for name, values in grid.items() if name not in where and len(values) > 1]
    if open_:
        problems.append((f"leaves {', '.join(open_)} open", "name one value of each setting"))
    return problems
