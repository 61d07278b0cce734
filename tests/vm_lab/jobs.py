"""A small job on the laboratory's network, from the lab file to the report."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from metrics.records import RunRecords, load
from tests.emulator.control.processes import until
from tests.end_to_end.commands import Ended, rankwire
from tests.vm_lab.laboratory import Laboratory, Place

# Real trace files of all-reduces and all-to-alls at the same time; each rank sends about 1 MB.
JOB = (
    "mixed-collectives,all_reduces=2,all_reduce_bytes=262144,all_to_alls=2,all_to_all_bytes=262144"
)
COLLECTIVES = 4
# Wall seconds per emulated second: NICs of 100 Gb/s send 5 Mb/s.
DILATION = 20_000
RUN_TIMEOUT_S = 180.0
# A machine that others want may leave a guest without a processor for some time.
CONTROL = {"agent_silence_limit_s": 60}


@dataclass(frozen=True)
class Ran:
    """A run that has ended."""

    ended: Ended
    out: Path

    def records(self) -> RunRecords:
        """What it recorded."""
        return load(self.out)


def lab_file(
    laboratory: Laboratory,
    path: Path,
    places: Sequence[Place],
    driver: str,
    *,
    rate_gbps: float = 100,
    **keys: Any,
) -> Path:
    """Write a lab of one NIC for each place."""
    nics = [f"n{rank}" for rank in range(len(places))]
    placement: dict[str, list[str]] = {}
    interfaces = {}
    for nic, place in zip(nics, places, strict=True):
        interfaces[nic] = {name: value for name, value in asdict(place).items() if value}
        placement.setdefault(interfaces[nic].pop("agent"), []).append(nic)
    lab = {
        "name": "guests",
        "topology": {
            "kind": "explicit",
            "nics": [{"name": nic} for nic in nics],
            "switches": [{"name": "s0", "ports": len(nics)}],
            "links": [
                {"ends": [nic, f"s0:{n}"], "rate_gbps": rate_gbps} for n, nic in enumerate(nics)
            ],
        },
        "driver": driver,
        "interfaces": interfaces,
        "agents": {"spawn": False, "placement": placement},
        "control": {"broker": laboratory.broker, **CONTROL},
        "time_dilation": DILATION,
    }
    path.write_text(yaml.safe_dump(lab | keys), encoding="utf-8")
    return path


def run_job(
    laboratory: Laboratory,
    directory: Path,
    places: Sequence[Place],
    driver: str,
    *,
    mtu_bytes: int,
    **keys: Any,
) -> Ran:
    """Run the job as a user does."""
    transport = {"mtu_bytes": mtu_bytes, **keys.pop("transport", {})}
    path = directory / "lab.yaml"
    lab = lab_file(laboratory, path, places, driver, transport=transport, **keys)
    out = directory / "run"
    words = ("run", str(lab), "--profile", JOB, "--out", str(out), "--quiet")
    return Ran(rankwire(*words, directory=directory, timeout_s=RUN_TIMEOUT_S), out)


def wait_for_traffic(
    laboratory: Laboratory, place: Place, run: subprocess.Popen[str], packets: int = 200
) -> None:
    """Wait until a guest has sent some packets more than it had, for a run that goes on."""

    def sent() -> int:
        guest = laboratory.guests[place.agent]
        return int(guest.ask("interface", name=place.interface)["tx_packets"])

    first = sent()
    until(lambda: run.poll() is not None or sent() - first >= packets, RUN_TIMEOUT_S)
    assert run.poll() is None, run.communicate()


def expect_complete(ran: Ran) -> dict[str, Any]:
    """The run came to its report with every collective and every byte; returns `run.json`."""
    assert ran.ended.status == 0, ran.ended.err
    assert "<html" in (ran.out / "report.html").read_text(encoding="utf-8")
    records = ran.records()
    run = records.run
    assert run["ops_done"] == run["ops_total"] > 0
    assert run["byte_conservation"]["holds"], run["byte_conservation"]
    collectives = records.collectives
    assert set(collectives["kind"]) == {"all_reduce", "all_to_all"}
    assert collectives.height == COLLECTIVES
    assert collectives.filter(pl.col("completion_time_ns").is_null()).is_empty()
    assert all(agent["clock_samples"] > 0 for agent in run["control"]["agents"])
    return run


def column(run: dict[str, Any], table: str, name: str) -> list[int]:
    """A counter of every NIC that the table has, by rank."""
    return list(run["counters"][table][name])


def expect_valid_frames(run: dict[str, Any]) -> None:
    """No port took a frame that it should not have had, or could not send one."""
    for name in ("decode_errors", "icrc_errors", "unexpected_sources", "misaddressed"):
        assert sum(column(run, "ports", name)) == 0, name
    assert sum(column(run, "ports", "send_errors")) == 0
    assert sum(column(run, "nics", "rx_icrc_errors")) == 0
    assert sum(column(run, "nics", "payload_mismatches")) == 0
