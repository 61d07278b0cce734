"""The points of a sweep: every combination of settings and seeds, each with a digest.

The digest names the point's directory, so an interrupted sweep goes on where it was.
"""

import hashlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dataplane
from dataplane.errors import InputError
from emulator.job import JobRequest
from emulator.lab import find_lab, load
from emulator.sweep.spec import LoadedSweep

__all__ = ["Point", "Points", "expand_points"]

_DIGEST_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Point:
    """One setting with one seed."""

    digest: str
    """Over everything that decides the result; names the directory."""
    settings: dict[str, Any]
    """Path of the grid -> value."""
    seed: int
    request: JobRequest


@dataclass(frozen=True, slots=True)
class Points:
    """What a sweep will do, and what it leaves out."""

    points: list[Point]
    impossible: list[tuple[dict[str, Any], str]]
    """Settings that the lab refuses, with the reason."""


def expand_points(sweep: LoadedSweep) -> Points:
    """Every combination, each checked against the lab.

    Raises `InputError` for a combination that the lab refuses, unless those are to be left out
    and some remain.
    """
    labs = sweep.labs
    common = {name: _common_digest(sweep, lab) for name, lab in labs.items()}
    possible: list[Point] = []
    impossible: list[tuple[dict[str, Any], str]] = []
    errors: list[InputError] = []
    for settings in _combinations(sweep.grid):
        name = settings.get("lab", next(iter(labs)))
        overrides = _override_texts(sweep.spec.set | _without_lab(settings))
        try:
            load(labs[name], overrides)
        except InputError as error:
            errors.append(error)
            impossible.append((settings, str(error).splitlines()[0]))
            continue
        for seed in sweep.spec.seeds:
            request = _request(sweep, labs[name], overrides, seed)
            possible.append(Point(_digest(common[name], settings, seed), settings, seed, request))
    if errors and (not possible or not sweep.spec.skip_impossible):
        problems = [problem for error in errors for problem in error.problems]
        raise InputError(*dict.fromkeys(problems))
    return Points(possible, impossible)


def _combinations(grid: dict[str, list[Any]]) -> Iterator[dict[str, Any]]:
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


def _without_lab(settings: dict[str, Any]) -> dict[str, Any]:
    return {path: value for path, value in settings.items() if path != "lab"}


def _override_texts(settings: dict[str, Any]) -> list[str]:
    """`path=value` for each setting; JSON is YAML on one line."""
    return [f"{path}={json.dumps(value)}" for path, value in settings.items()]


def _request(sweep: LoadedSweep, lab: str, overrides: list[str], seed: int) -> JobRequest:
    return JobRequest(
        lab=lab,
        overrides=tuple(overrides),
        trace=sweep.trace,
        profile=sweep.spec.profile,
        iterations=sweep.spec.iterations,
        size_scale=sweep.spec.size_scale,
        compute_scale=sweep.spec.compute_scale,
        seed=seed,
        model=sweep.spec.model,
    )


def _digest(common: str, settings: dict[str, Any], seed: int) -> str:
    text = json.dumps([common, settings, seed], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_LENGTH]


def _common_digest(sweep: LoadedSweep, lab: str) -> str:
    """Over what all points share: version, lab file, common settings, job, trace files."""
    spec = sweep.spec
    parts = [
        dataplane.__version__,
        find_lab(lab).read_text(encoding="utf-8"),
        spec.mode,
        spec.model,
        spec.profile,
        spec.iterations,
        spec.size_scale,
        spec.compute_scale,
        spec.set,
        [] if sweep.trace is None else _file_marks(sweep.trace),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _file_marks(trace: Path) -> list[tuple[str, int, int]]:
    """Name, size and time of every trace file: cheap, and changes when a file does."""
    if not trace.is_dir():
        return []
    return [
        (path.name, path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted(trace.iterdir())
        if path.is_file()
    ]
