"""A run directory: which files it has, how they are written and opened.

Files: `run.json`, and the tables of `TABLES` as Parquet. Nothing here computes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dataplane.errors import InputError, Problem
from metrics.analysis.ecmp import ECMP_SCHEMA
from metrics.analysis.flow_paths import FLOW_LINK_SCHEMA, PATH_SCHEMA
from metrics.records.adapters import ADAPTER_SCHEMA
from metrics.records.pauses import PAUSE_SCHEMA

__all__ = ["FORMAT", "RUN_FILE", "TABLES", "RunRecords", "load", "store"]

FORMAT = 1
"""Version of the directory's layout; a larger one than this is refused."""
RUN_FILE = "run.json"
TABLES = (
    "collectives", "flows", "links", "queues", "qps", "timeline", "flow_links", "paths", "ecmp",
    "pauses", "adapters",
)  # fmt: skip


@dataclass(frozen=True)
class RunRecords:
    """The records of one run or prediction; tables are read when first used."""

    directory: Path
    run: Mapping[str, Any] = field(repr=False)
    """`run.json`: resolved configuration, seed, provenance, counters, warnings."""

    @cached_property
    def collectives(self) -> pl.DataFrame:
        """One row per collective instance and iteration."""
        return self._table("collectives")

    @cached_property
    def flows(self) -> pl.DataFrame:
        """One row per message."""
        return self._table("flows")

    @cached_property
    def links(self) -> pl.DataFrame:
        """Time series of link utilisation."""
        return self._table("links")

    @cached_property
    def queues(self) -> pl.DataFrame:
        """Time series of queue depth, marks, drops and pauses."""
        return self._table("queues")

    @cached_property
    def qps(self) -> pl.DataFrame:
        """Time series of the queue pairs' rates and alpha."""
        return self._table("qps")

    @cached_property
    def timeline(self) -> pl.DataFrame:
        """Spans of computation and communication on every rank."""
        return self._table("timeline")

    @cached_property
    def flow_links(self) -> pl.DataFrame:
        """What every flow sent over every link; empty if that wasn't counted."""
        return self._optional("flow_links", FLOW_LINK_SCHEMA)

    @cached_property
    def paths(self) -> pl.DataFrame:
        """The paths of every flow; empty if they weren't counted."""
        return self._optional("paths", PATH_SCHEMA)

    @cached_property
    def ecmp(self) -> pl.DataFrame:
        """Expected and actual load of every equal-cost port; empty if flows weren't counted."""
        return self._optional("ecmp", ECMP_SCHEMA)

    @cached_property
    def pauses(self) -> pl.DataFrame:
        """Pauses that switches asked for, with their causes; empty if they weren't kept."""
        return self._optional("pauses", PAUSE_SCHEMA)

    @cached_property
    def adapters(self) -> pl.DataFrame:
        """Counters of RDMA devices over time; empty where no device carried a NIC."""
        return self._optional("adapters", ADAPTER_SCHEMA)

    def _optional(self, name: str, schema: Mapping[str, Any]) -> pl.DataFrame:
        """A table that directories of earlier versions don't have."""
        if (self.directory / f"{name}.parquet").exists():
            return self._table(name)
        return pl.DataFrame(schema=dict(schema))

    def _table(self, name: str) -> pl.DataFrame:
        path = self.directory / f"{name}.parquet"
        try:
            return pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InputError(_unreadable(path, error)) from error


def store(directory: Path, run: Mapping[str, Any], tables: Mapping[str, pl.DataFrame]) -> None:
    """Write a run directory; `run.json` comes last, so that a directory with it is whole."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, table in tables.items():
        table.write_parquet(directory / f"{name}.parquet", compression="zstd")
    text = json.dumps({"format": FORMAT, **run}, indent=2, default=_plain)
    partial = directory / f"{RUN_FILE}.partial"
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(directory / RUN_FILE)


def load(directory: Path | str) -> RunRecords:
    """Open a run directory.

    Raises `InputError` when it isn't one, when `run.json` can't be read, or when it was written by
    a newer version.
    """
    place = Path(directory)
    path = place / RUN_FILE
    try:
        run = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(_unreadable(path, error)) from error
    version = run.get("format") if isinstance(run, dict) else None
    if not isinstance(version, int) or version > FORMAT:
        raise InputError(
            Problem(
                source=str(path),
                place="format",
                what=f"the format is {version!r}, this version reads up to {FORMAT}",
                remedy="read it with the version of rankwire that wrote it",
            )
        )
    return RunRecords(place, run)


def _plain(value: Any) -> Any:
    """What JSON has no type for: numpy's numbers as numbers, anything else as text."""
    return value.item() if isinstance(value, np.generic) else str(value)


def _unreadable(path: Path, error: Exception) -> Problem:
    """A file of a run directory that can't be opened or parsed."""
    missing = isinstance(error, FileNotFoundError)
    return Problem(
        source=str(path),
        what="there is no such file" if missing else f"can't be read ({error})",
        remedy="give a directory that `rankwire run` or `rankwire predict` has written",
    )
