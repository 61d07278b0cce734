"""Fixtures shared by the tests of metrics."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from metrics.records import RunRecords, write_records
from tests.metrics.synthetic import Run


@pytest.fixture
def record(tmp_path: Path) -> Callable[..., RunRecords]:
    """Write a synthetic run into a directory of that name; keywords go to `run.json`."""

    def write(run: Run, name: str = "run", **facts: Any) -> RunRecords:
        return write_records(
            tmp_path / name,
            run={"command": "predict", "lab": "loopback-clos", "seed": 1, **facts},
            programs=run.programs,
            instances=run.instances,
            config=run.config,
            engine=run.engine,
            row_names=lambda rank, rows: [f"r{rank}n{row}" for row in rows],
        )

    return write
