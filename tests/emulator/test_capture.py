"""A capture holds real frames at emulated times, and other programs read it."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from scapy.utils import PcapNgReader

from dataplane import decode_roce, roce_opcodes
from dataplane.errors import InputError
from emulator.cli import main
from emulator.job import JobRequest, build_job
from emulator.predict import predict

SMALL = ["single-switch", "--profile=all-to-all", "--size-scale=0.002", "--quiet"]
CNP = 0x81
"""tshark has no name for it in the column."""


def captured(tmp_path: Path, *more: str, command: str = "predict") -> tuple[Path, dict[str, Any]]:
    """Capture file and `run.json` of a small job."""
    out = tmp_path / command
    assert main([command, *SMALL, "--out", str(out), *more]) == 0
    facts: dict[str, Any] = json.loads((out / "run.json").read_text())
    return out / "capture.pcapng", facts


@pytest.mark.parametrize("command", ["predict", pytest.param("run", marks=pytest.mark.slow)])
def test_every_frame_of_a_capture_decodes_with_its_icrc(command: str, tmp_path: Path) -> None:
    path, facts = captured(tmp_path, "--capture=*", "--capture-packets=500", command=command)
    frames = [bytes(packet) for packet in PcapNgReader(str(path))]
    assert len(frames) == facts["capture"]["packets"] == 500
    opcodes = {decode_roce(frame)["opcode"] for frame in frames}
    assert len(opcodes) >= 2, "data and acknowledgements"


def test_the_last_data_frame_comes_when_the_record_says_that_its_message_arrived() -> None:
    request = JobRequest(
        lab="single-switch", profile="all-to-all", size_scale=0.002, capture=("*/1",)
    )
    job = build_job(request)
    engine = predict(job)
    ops, receive = engine["ops"], 1
    for program in job.programs:
        ends = ops["end_ps"][ops["rank"] == program.rank][program.kind == receive]
        assert len(ends)
        assert set(ends.tolist()) <= set(engine["capture"]["time_ps"].tolist())


def test_what_is_left_out_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, facts = captured(tmp_path, "--capture=*", "--capture-packets=7")
    assert facts["capture"]["packets"] == 7
    assert facts["capture"]["left_out"] > 0
    assert f"7 packets; {facts['capture']['left_out']} later ones are left out" in (
        capsys.readouterr().out
    )


def test_a_link_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match="trunk: no link has this name"):
        build_job(JobRequest(lab="single-switch", capture=("trunk",)))


def test_tshark_reads_a_capture_as_rocev2_with_names_times_and_opcodes(tmp_path: Path) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    path, facts = captured(tmp_path, "--capture=*")
    fields = ("frame.interface_name", "frame.time_epoch", "infiniband.bth.opcode", "_ws.col.Info")
    command = ["tshark", "-r", str(path), "-T", "fields"]
    output = subprocess.run(
        [*command, *(part for field in fields for part in ("-e", field))],
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout
    rows = [line.split("\t") for line in output.splitlines()]
    assert len(rows) == facts["capture"]["packets"]
    links = {link["name"] for link in facts["job"]["links"]}
    assert {row[0].rpartition("/")[0] for row in rows} <= links
    times = [float(row[1]) for row in rows]
    assert times == sorted(times)
    assert 0 < times[-1] * 1e9 <= facts["emulated_ns"] + 10_000
    names = roce_opcodes()
    for _, _, opcode, info in rows:
        if int(opcode) != CNP:
            expected = names[int(opcode)].replace("_WITH_", "_").replace("_", " ")
            assert info.partition(" QP=")[0].upper() == expected
