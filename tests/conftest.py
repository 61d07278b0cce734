"""What every test may ask for."""

import os
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def sample_traces() -> Path:
    """Directory of collected real traces; tests that need it skip where it is absent."""
    path = Path(os.environ.get("RANKWIRE_TRACES", REPOSITORY.parent / "shared" / "traces"))
    if not path.is_dir():
        pytest.skip(f"no collected traces in {path} (RANKWIRE_TRACES names another place)")
    return path
