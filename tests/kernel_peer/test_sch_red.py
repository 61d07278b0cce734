"""RED as `rankwire lab up` asks for it, in a kernel that has it."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from emulator.lab import load
from emulator.lab.effective import EcnProfile
from emulator.lab.namespaces import Namespaces
from emulator.namespaces import lay_out
from emulator.namespaces.shaping import shaping_requests
from tests.kernel_peer import machine, packages

HERE = Path(__file__).parent
MODULES = (
    *("virtio_ring", "virtio", "virtio_mmio", "netfs", "fscache", "9pnet", "9pnet_virtio", "9p"),
    *("sch_htb", "sch_tbf", "sch_red"),
)
TIMEOUT_S = 240
PROFILE = EcnProfile(kmin_bytes=20_000, kmax_bytes=60_000, pmax_ratio=0.5)
FRAME_BYTES = 1042
SHAPERS = {"htb": False, "htb and a strict band": True, "tbf": False}


def requests(shaper: str, *, has_strict_band: bool) -> list[str]:
    """What a port of 10 Mb/s gets, for the loopback interface."""
    port = next(port for port in lay_out(load("netns-clos")).ports if port.is_switch)
    small = replace(port, number=-1, rate_bps=10_000_000, buffer_bytes=200_000, marking=PROFILE)
    options = Namespaces.model_validate({"shaper": shaper, "marking": "sch_red"})
    made = shaping_requests(small, options, has_strict_band=has_strict_band)
    return [request.data.hex() for request in made]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the guest says of each scenario; it runs for some seconds."""
    try:
        folder = packages.prepare(packages.cache_folder())
    except packages.UnavailableError as unavailable:
        pytest.skip(f"no Linux kernel peer: {unavailable}")
    scenarios = {
        name: requests(name.partition(" ")[0], has_strict_band=band)
        for name, band in SHAPERS.items()
    }
    archive = initial_file_system(folder, tmp_path_factory.mktemp("guest"), scenarios)
    ran = subprocess.run(
        machine.command_without_network(folder, archive),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    lines = [line for line in ran.stdout.splitlines() if line.startswith("@@ ")]
    assert lines, ran.stdout[-2000:]
    found: dict[str, Any] = json.loads(lines[0].removeprefix("@@ "))
    return found


def initial_file_system(folder: Path, work: Path, scenarios: dict[str, list[str]]) -> Path:
    """An initramfs of busybox, the modules, the scenarios and the script."""
    tree = machine.initial_tree(folder, work, MODULES, HERE / "red_init.sh")
    (tree / "scenarios.json").write_text(json.dumps(scenarios))
    shutil.copy(HERE / "red_guest.py", tree)
    return machine.packed(tree, work / "initramfs.cpio")


@pytest.mark.kernel_peer
@pytest.mark.slow
@pytest.mark.parametrize("shaper", SHAPERS)
def test_the_kernels_red_marks_by_the_profile(told: dict[str, Any], shaper: str) -> None:
    """120 packets at once: all that find more than Kmax are marked, none below Kmin."""
    found = told[shaper]
    assert set(found["errors"]) == {0}
    assert "min 20000b max 60000b ecn" in found["shown"]
    assert found["received"] == 120
    assert found["marked"] == found["ce"]
    below, above = PROFILE.kmin_bytes // FRAME_BYTES, 120 - PROFILE.kmax_bytes // FRAME_BYTES
    assert above - 10 <= found["ce"] <= 120 - below
