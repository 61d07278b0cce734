"""A sweep that was killed goes on where it was: what is whole stays, what is half is done again."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.emulator.control.processes import until
from tests.end_to_end.commands import TIMEOUT_S, environment, living_in_session, rankwire

SPEC = """\
name: killed
lab: single-switch
profile: moe-training
size_scale: 0.1
iterations: {iterations}
grid:
  ecn.kmin_bytes: [100_000, 200_000, 400_000, 800_000]
rank_by: all_reduce.p99_ns
"""


def finished_points(out: Path) -> dict[str, int]:
    """Directory of each whole point -> when its result was written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in out.glob("*/point.json")}


@pytest.mark.slow
def test_a_killed_sweep_runs_only_what_is_missing(tmp_path: Path) -> None:
    spec = tmp_path / "sweep.yaml"
    spec.write_text(SPEC.format(iterations=3))
    words = ["sweep", str(spec), "--out=out", "--workers=1", "--quiet"]
    with subprocess.Popen(
        [sys.executable, "-m", "emulator", *words],
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as process:
        try:
            until(lambda: finished_points(tmp_path / "out"), timeout_s=TIMEOUT_S)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait(timeout=TIMEOUT_S)
    try:
        until(lambda: not living_in_session(process.pid), timeout_s=10)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    before = finished_points(tmp_path / "out")
    ended = rankwire(*words, "--json", directory=tmp_path)
    assert ended.status == 0, ended.err
    after = finished_points(tmp_path / "out")
    assert len(after) == 4
    whole = [name for name in before if after[name] == before[name]]
    assert whole
    assert set(before) <= set(after)
    told = json.loads(ended.out)
    assert (told["points"], told["reused"], told["failed"]) == (4, len(whole), 0)
