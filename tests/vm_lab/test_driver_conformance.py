"""Suites that need RDMA devices, in a guest that has some: of all drivers, and of the engine."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.vm_lab.laboratory import GUESTS, Laboratory, on_the_wire

REPOSITORY = Path(__file__).parents[2]
SUITE = REPOSITORY / "tests/nic_drivers/test_conformance.py"
# Python takes half a minute to import everything where nothing but software emulates a machine.
TIMEOUT_S = 300.0

pytestmark = [pytest.mark.kernel_peer, pytest.mark.slow]


def run_in_guest(laboratory: Laboratory, *command: str) -> dict[str, Any]:
    """Run a program in a guest, with two addresses of its device as two ends.

    The kernel hands WRITEs from one to the other.
    """
    laboratory.with_rdma()
    addresses = ",".join(on_the_wire(0, number).address for number in range(2))
    environment = {"PYTHONPATH": str(REPOSITORY), "RANKWIRE_RDMA_ADDRESSES": addresses}
    peer = laboratory.guests[GUESTS[0]].peer
    peer.ask("run", command=command, environment=environment, timeout_s=TIMEOUT_S)
    return peer.wait_answer(TIMEOUT_S)


def test_the_driver_of_rdma_devices_keeps_the_contract(laboratory: Laboratory) -> None:
    """What the suite asks of every driver."""
    options = ("-q", "-p", "no:cacheprovider", "--rootdir", str(REPOSITORY), "-k", "verbs")
    ended = run_in_guest(laboratory, sys.executable, "-m", "pytest", *options, str(SUITE))
    assert ended["status"] == 0, ended["output"]
    assert "passed" in ended["output"]


def built_tests() -> Sequence[Path]:
    """The engine's tests with RDMA devices as cargo has built them, the newest last."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "dataplane/target"))
    found = [path for path in target.glob("debug/deps/verbs-*") if os.access(path, os.X_OK)]
    return sorted(found, key=lambda path: path.stat().st_mtime)


def test_the_engine_hands_messages_of_any_size_to_devices(laboratory: Laboratory) -> None:
    """Of no byte, of several WRITEs, many at once, cleared by their receivers."""
    if not built_tests():
        pytest.skip("the engine's tests are not built: cargo test --test verbs --no-run")
    ended = run_in_guest(laboratory, str(built_tests()[-1]), "--test-threads=1")
    assert ended["status"] == 0, ended["output"]
