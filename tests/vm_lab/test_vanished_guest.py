"""What is said and kept when a virtual machine, as a host in a rack, is gone at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from metrics.records import load
from tests.emulator.control.processes import command
from tests.vm_lab.jobs import expect_complete, lab_file, run_job, wait_for_traffic
from tests.vm_lab.laboratory import Laboratory, on_the_wire

# Some 100 s of traffic: it is cut off after the first packets.
LONG_JOB = "all-reduce,repeats=50,size_bytes=4194304"
# The broker hears at once that the connection is gone.
END_TIMEOUT_S = 60.0

pytestmark = [pytest.mark.kernel_peer, pytest.mark.slow]


def test_a_guest_that_is_killed_is_named_and_the_others_records_are_kept(
    laboratory: Laboratory, tmp_path: Path
) -> None:
    """By its last will; the other guest's agent stops, and serves the next run."""
    laboratory.without_rdma()
    places = laboratory.between_guests()
    lab = lab_file(laboratory, tmp_path / "lab.yaml", places, "udp")
    out = tmp_path / "cut-off"
    words = ("run", str(lab), "--profile", LONG_JOB, "--out", str(out), "--quiet")
    with command(*words, directory=tmp_path) as process:
        wait_for_traffic(laboratory, places[1], process)
        laboratory.kill("guest1")
        _, said = process.communicate(timeout=END_TIMEOUT_S)
    assert process.returncode == 1
    what = "agent guest1 (n1) was lost: its process ended or its connection to the broker broke"
    assert what in said
    run = load(out).run
    assert run["outcome"] == what
    assert run["ops_done"] < run["ops_total"]
    agents = {agent["name"]: agent for agent in run["control"]["agents"]}
    assert agents["guest0"]["has_records"]
    assert not agents["guest1"]["has_records"]
    alone = [on_the_wire(0), on_the_wire(0, 1)]
    expect_complete(run_job(laboratory, tmp_path, alone, "udp", mtu_bytes=1024))
