"""What a profile is: a named job that writes its own traces, with parameters that have defaults."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from dataplane.errors import InputError, Problem
from traffic_profiles.chakra import TraceBuilder
from traffic_profiles.collectives.choice import AlgorithmRule

__all__ = ["GeneratedProfile", "Parameter", "Profile", "ProfileJob", "parameter"]


def parameter(default: float, doc: str, *, minimum: float = 0) -> Any:
    """Declare a field of a profile's parameters: its default, meaning and smallest value."""
    return field(default=default, metadata={"doc": doc, "minimum": minimum})


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter for a listing."""

    name: str
    default: float
    doc: str
    """Meaning and unit."""


@dataclass(frozen=True, slots=True)
class ProfileJob:
    """What a profile makes in memory: one trace per rank, and rules that belong to it."""

    traces: Sequence[TraceBuilder]
    """By rank."""
    algorithms: Sequence[AlgorithmRule] = ()
    """Rules for `CompileOptions.algorithms`, after the user's own: splits of its all-to-alls."""


@dataclass(frozen=True, slots=True)
class GeneratedProfile:
    """What was written."""

    name: str
    directory: Path
    files: Sequence[Path]
    """Trace files by rank, `<name>.<rank>.et`."""
    parameters: Mapping[str, float]
    """Every parameter as it was used."""
    algorithms: Sequence[AlgorithmRule]
    """Rules for `CompileOptions.algorithms`, after the user's own."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A named job."""

    name: str
    description: str
    """One sentence for a listing."""
    parameters_type: type[Any]
    """Frozen dataclass whose fields are declared with `parameter`."""
    build: Callable[[int, int, Any], ProfileJob]
    """Makes the traces from (ranks, seed, parameters)."""
    minimum_ranks: int = 2

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Every parameter with its default and meaning."""
        return [
            Parameter(one.name, one.default, one.metadata["doc"])  # type: ignore[arg-type]
            for one in fields(self.parameters_type)
        ]

    def check(self, ranks: int, given: Mapping[str, object]) -> Any:
        """Turn what the user gave (numbers or their text) into parameters; raises `InputError`."""
        known = {one.name: one for one in fields(self.parameters_type)}
        problems, values = [], {}
        if ranks < self.minimum_ranks:
            what, remedy = f"{ranks} ranks", f"give at least {self.minimum_ranks}"
            problems.append(Problem(f"profile {self.name}", what, remedy, place="ranks"))
        for name, value in given.items():
            complaint = "no such parameter"
            remedy = f"one of {', '.join(known)}"
            if name in known:
                minimum, kind = known[name].metadata["minimum"], type(known[name].default)
                remedy = f"give {kind.__name__} of at least {minimum:g}"
                values[name], complaint = converted(value, kind, minimum)
            if complaint:
                source = f"profile {self.name}"
                problems.append(Problem(source, complaint, remedy, place=name))
        if problems:
            raise InputError(*problems)
        return self.parameters_type(**values)


def converted(value: object, kind: type[Any], minimum: float) -> tuple[float, str]:
    """Convert to the kind of the default; gives the value and what is wrong with it, or nothing."""
    try:
        number = kind(str(value))
    except ValueError:
        return 0, f"'{value}' is not a number of type {kind.__name__}"
    return number, "" if minimum <= number < math.inf else f"{value} is out of range"
