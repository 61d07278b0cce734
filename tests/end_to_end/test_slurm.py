"""The launch file for Slurm, submitted as it stands to a cluster of two nodes."""

import contextlib
import os
import sys
from pathlib import Path

import pytest
import yaml

from metrics.records import load
from tests.emulator.control.processes import mosquitto, until
from tests.end_to_end.commands import REPOSITORY
from tests.end_to_end.slurm import cluster

pytestmark = [pytest.mark.slow, pytest.mark.privileged]

LAUNCH_FILE = REPOSITORY / "docs" / "deployment" / "rankwire.sbatch"
NODES = ("node0", "node1")
LAB = {
    "name": "on-slurm",
    "topology": {
        "kind": "explicit",
        "nics": [{"name": "n0"}, {"name": "n1"}],
        "switches": [{"name": "s0", "ports": 2}],
        "links": [{"ends": [f"n{rank}", f"s0:{rank}"], "rate_gbps": 100} for rank in range(2)],
    },
    "agents": {"spawn": False, "placement": {"node0": ["n0", "s0"], "node1": ["n1"]}},
    "time_dilation": 2000,
    "default_profile": "all-to-all",
}


def install(directory: Path, url: str) -> None:
    """Put on every node what the launch file expects there, and the lab."""
    program = directory / "bin" / "rankwire"
    program.parent.mkdir()
    program.write_text(
        f'#!/bin/sh\nPYTHONPATH="{REPOSITORY}" exec "{sys.executable}" -m emulator "$@"\n'
    )
    program.chmod(0o755)
    config = directory / "rankwire" / "agent.yaml"
    config.parent.mkdir()
    config.write_text(f"broker: {url}\n")
    lab = LAB | {"control": {"broker": url}}
    (directory / "lab.yaml").write_text(yaml.safe_dump(lab), encoding="utf-8")


def commands_about(directory: Path) -> list[bytes]:
    """Command lines of living processes that name a directory."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            found.append(entry.read_bytes())
    return [words for words in found if os.fsencode(directory) in words]


def test_the_launch_file_runs_a_job_with_an_agent_on_each_node(tmp_path: Path) -> None:
    """Agents are named after their nodes, the controller ends, and they end in order after it."""
    with (
        mosquitto(tmp_path) as (url, _),
        cluster(tmp_path, NODES, PATH=str(tmp_path / "bin"), HOME=str(tmp_path)) as slurm,
    ):
        install(tmp_path, url)
        options = ("lab.yaml", "--quiet", "--size-scale", "0.01")
        job = slurm.submit("--nodes=2", "--output=out", str(LAUNCH_FILE), *options)
        until(lambda: slurm.state(job).split()[0] not in ("PENDING", "RUNNING", "COMPLETING"), 90)
        told = (tmp_path / "out").read_text()
        assert slurm.state(job) == "COMPLETED 0:0", told
    assert "Killed" not in told
    records = load(tmp_path / f"rankwire-{job}").run
    assert records["ops_done"] == records["ops_total"] > 0
    assert [agent["name"] for agent in records["control"]["agents"]] == list(NODES)
    assert all(agent["has_records"] for agent in records["control"]["agents"])
    until(lambda: not commands_about(tmp_path))
