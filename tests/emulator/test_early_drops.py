"""A profile that drops what it can't mark: which packets, counted where, told to whom."""

from pathlib import Path
from typing import Any

import pytest

from dataplane.errors import InputError
from emulator.cli import main
from emulator.job_config import job_config
from emulator.lab import load, load_lab
from metrics.records import RunRecords
from metrics.records import load as load_records

BULK = "{name: bulk, dscp: 10, priority: 1, ecn_capable: false, collective: send_recv}"
LOW = "{kmin_bytes: 20000, kmax_bytes: 100000, pmax_ratio: 0.02, priorities: [1, 3]}"


def classes_of(*changes: str) -> dict[str, Any]:
    loaded = load("single-switch", changes)
    config = job_config(loaded.lab, loaded.fabric, seed=1)
    return {"data": config["classes"], **{c["name"]: c for c in config["further_classes"]}}


def test_acknowledgements_are_capable_only_where_they_would_be_dropped_else() -> None:
    bulk = f"traffic_classes.further=[{BULK}]"
    assert classes_of()["data"]["ack_ecn_capable"] is False
    dropping = classes_of("ecn.drops_not_ect=true", bulk)
    assert dropping["data"]["ack_ecn_capable"] is True
    assert dropping["bulk"]["ack_ecn_capable"] is False, "its data isn't either"
    elsewhere = "traffic_classes.acknowledgement={dscp: 46, priority: 5}"
    assert classes_of("ecn.drops_not_ect=true", elsewhere)["data"]["ack_ecn_capable"] is False
    given = "traffic_classes.acknowledgement={ecn_capable: true}"
    assert classes_of(given)["data"]["ack_ecn_capable"] is True


def incast(out: Path, *changes: str) -> RunRecords:
    """Messages of a class that is not ECN-capable, eight senders into one queue."""
    arguments = ["--profile", "incast,repeats=1", "--size-scale", "0.05", "--quiet"]
    for change in (f"traffic_classes.further=[{BULK}]", f"switches.ecn={LOW}", *changes):
        arguments += ["--set", change]
    assert main(["predict", "incast-8", *arguments, "--out", str(out)]) == 0
    return load_records(out)


def test_drops_stand_in_series_ports_warnings_and_report(tmp_path: Path) -> None:
    records = incast(tmp_path / "dropped", "ecn.drops_not_ect=true")
    ports = records.run["counters"]["switch_ports"]
    dropped = sum(ports["wred_dropped_packets"])
    assert dropped == sum(ports["dropped_packets"]) > 0
    assert records.queues["wred_dropped_packets"].sum() == dropped
    assert "of them dropped early" in (records.directory / "report.html").read_text()
    assert any("not ECN-capable were dropped" in told for told in records.run["warnings"])
    assert records.collectives["complete"].all()
    assert records.collectives["retransmitted_packets"].sum() >= dropped
    sent, received = (records.collectives[name].sum() for name in ("bytes_sent", "bytes_received"))
    assert sent == received > 0


def test_a_profile_that_only_marks_leaves_them_alone(tmp_path: Path) -> None:
    records = incast(tmp_path / "left")
    ports = records.run["counters"]["switch_ports"]
    assert sum(ports["wred_dropped_packets"]) == sum(ports["marked_packets"]) == 0
    assert "of them dropped early" not in (records.directory / "report.html").read_text()


def test_namespaces_whose_program_only_marks_refuse() -> None:
    with pytest.raises(InputError, match="drops_not_ect: is true for priority 3"):
        load_lab("netns-clos", ["ecn.drops_not_ect=true"])
