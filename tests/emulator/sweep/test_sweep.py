"""A sweep runs every point once, goes on where it was, and survives a failed point."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from emulator.cli import main

ROOT = Path(__file__).parents[3]

SPEC = """\
name: little
lab: single-switch
profile: all-to-all
grid:
  ecn.kmin_bytes: [20_000, 800_000]
rank_by: all_to_all.p50_ns
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "little.yaml"
    path.write_text(SPEC)
    return path


def sweep(spec: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, object]]:
    out = str(spec.parent / "out")
    status = main(["sweep", str(spec), "--out", out, "--json", "--quiet", "--workers", "2"])
    return status, json.loads(capsys.readouterr().out)


def test_a_sweep_ranks_its_points_and_reuses_them(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, first = sweep(spec, capsys)
    assert status == 0
    assert (first["points"], first["reused"], first["failed"]) == (2, 0, 0)
    out = spec.parent / "out"
    frame = pl.read_parquet(out / "sweep.parquet")
    assert frame["all_to_all.p50_ns"].null_count() == 0
    assert (out / "sweep.html").stat().st_size > 1000
    status, second = sweep(spec, capsys)
    assert second["reused"] == 2
    assert second["table"] == first["table"]


def test_the_table_does_not_depend_on_the_number_of_jobs(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = []
    for jobs in ("1", "2"):
        out = str(spec.parent / f"jobs-{jobs}")
        assert main(["sweep", str(spec), "--out", out, "--json", "--quiet", "--jobs", jobs]) == 0
        tables.append(json.loads(capsys.readouterr().out)["table"])
    assert tables[0] == tables[1]


def test_a_new_value_runs_only_the_new_points(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep(spec, capsys)
    spec.write_text(SPEC.replace("800_000]", "800_000, 400_000]"))
    _, again = sweep(spec, capsys)
    assert (again["points"], again["reused"]) == (3, 2)


def test_a_failed_point_is_ranked_last_and_fails_the_sweep(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = "set: {transport.retry_count: 0}\ngrid:\n"
    failing += "  transport.retransmission_timeout_ns: [1000, 4000000]"
    spec.write_text(SPEC.replace("grid:\n  ecn.kmin_bytes: [20_000, 800_000]", failing))
    status, document = sweep(spec, capsys)
    assert status == 1
    assert document["failed"] == 1
    table = document["table"]
    assert isinstance(table, list)
    assert [row["failed"] for row in table] == [0, 1]


def test_another_sweep_s_directory_is_refused(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sweep(spec, capsys)
    spec.write_text(SPEC.replace("name: little", "name: other"))
    out = str(spec.parent / "out")
    assert main(["sweep", str(spec), "--out", out, "--quiet"]) == 2
    assert "holds something else" in capsys.readouterr().err


def test_ctrl_c_ends_the_workers_at_once_and_quietly(spec: Path) -> None:
    """The points would take minutes; the key reaches every process of the terminal's group."""
    spec.write_text(SPEC.replace("single-switch", "clos-64") + "iterations: 50\n")
    command = [
        sys.executable,
        "-m",
        "emulator",
        "sweep",
        str(spec),
        "--out",
        str(spec.parent / "o"),
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    time.sleep(4)
    os.killpg(process.pid, signal.SIGINT)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in told, told


@pytest.mark.slow
def test_a_sweep_of_real_runs_has_the_figures_of_predictions(
    spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = SPEC.replace("profile:", "mode: run\nsize_scale: 0.02\nprofile:")
    text = text.replace("[20_000, 800_000]", "[20_000]")
    spec.write_text(text + "set: {time_dilation: 30}\n")
    status, document = sweep(spec, capsys)
    assert (status, document["points"]) == (0, 1)
    assert "the machine was too slow" in str(document["warnings"])
    frame = pl.read_parquet(spec.parent / "out" / "sweep.parquet")
    assert frame["all_to_all.p50_ns"].null_count() == 0
