"""What a job was made from, as plain values for `run.json`: files, digests, versions, settings."""

import hashlib
import os
import platform
import re
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dataplane
from emulator.doctor import Level, diagnose_network
from emulator.lab import LoadedLab
from emulator.lab.congestion import Dcqcn
from emulator.lab.effective import data_classes
from emulator.lab.sources import sourced_tables
from emulator.presets import APPROXIMATE_PRESETS
from traffic_profiles.compilation import CompiledJob
from traffic_profiles.workload import Workload

if TYPE_CHECKING:
    from emulator.job import JobRequest, TrafficSource

__all__ = ["TraceFile", "describe_job", "trace_files"]


@dataclass(frozen=True, slots=True)
class TraceFile:
    """One trace file as it was read."""

    rank: int
    file: str
    size_bytes: int
    sha256: str
    nodes: int
    dialect: str


def trace_files(workload: Workload) -> list[TraceFile]:
    """The files behind a workload, with their digests."""
    return [
        TraceFile(
            rank,
            str(table.path),
            table.path.stat().st_size,
            _sha256(table.path),
            len(table),
            table.dialect,
        )
        for rank, table in sorted(workload.tables.items())
    ]


def describe_job(
    request: "JobRequest",
    loaded: LoadedLab,
    source: "TrafficSource",
    compiled: CompiledJob,
) -> dict[str, Any]:
    """Everything that decides the job's result, so that it can be repeated."""
    workload = source.workload
    profile = None if request.trace else request.profile or loaded.lab.default_profile
    return {
        "lab": loaded.lab.name,
        "lab_file": str(loaded.path),
        "lab_sha256": _sha256(loaded.path),
        "overrides": [_without_login(text) for text in request.overrides],
        "lab_resolved": loaded.lab.model_dump(mode="json"),
        "settings": {
            title: {key: [item.value, item.source] for key, item in values.items()}
            for title, values in sourced_tables(loaded).items()
        },
        "trace": None if request.trace is None else str(request.trace),
        "profile": profile,
        "profile_parameters": dict(source.parameters),
        "trace_files": [asdict(file) for file in trace_files(workload)] if request.trace else [],
        "ranks": len(workload.ranks),
        "seed": request.seed,
        "iterations": request.iterations,
        "size_scale": request.size_scale,
        "compute_scale": request.compute_scale,
        "binding": _plain(asdict(request.binding)),
        "binding_counts": dict(workload.report.counts),
        "compilation": _plain(asdict(compiled.report)),
        "versions": _versions(),
        "warnings": _warnings(loaded, workload, compiled),
    }


def _warnings(loaded: LoadedLab, workload: Workload, compiled: CompiledJob) -> list[str]:
    warnings = [*workload.report.warnings, *compiled.report.warnings]
    presets = {
        item.congestion_control.preset
        for item in data_classes(loaded.lab)
        if isinstance(item.congestion_control, Dcqcn)
    }
    warnings += [
        f"preset {preset}: {APPROXIMATE_PRESETS[preset]}"
        for preset in sorted(presets & set(APPROXIMATE_PRESETS))
    ]
    return warnings + [
        f"it does not hold that {item.rule}: {item.finding}; {item.remedy}"
        for item in diagnose_network(loaded)
        if item.level is not Level.GOOD
    ]


def _versions() -> dict[str, str]:
    try:
        rankwire = version("rankwire")
    except PackageNotFoundError:
        rankwire = dataplane.__version__
    return {
        "rankwire": rankwire,
        "dataplane": dataplane.__version__,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "processors": str(os.cpu_count()),
    }


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _without_login(text: str) -> str:
    """The text without the user and password of a URL."""
    return re.sub(r"//[^/\s]*@", "//", text)


def _plain(value: Any) -> Any:
    """The value with JSON types only; keys as text."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    return str(value) if isinstance(value, Path) else value
