"""Fixtures for tests of traces."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.traffic_profiles.trace_job import Job


@pytest.fixture
def job(tmp_path: Path) -> Callable[[int], Job]:
    """Makes an empty job of some ranks."""
    return lambda ranks: Job(tmp_path, ranks)
