"""The command as a user runs it: real processes, their output, and what they leave behind."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True)
class Ended:
    """A command that has ended."""

    status: int
    out: str
    err: str
    seconds: float


def environment(**more: str) -> dict[str, str]:
    """The environment in which this checkout is the `rankwire` that runs."""
    path = os.pathsep.join(filter(None, (str(REPOSITORY), os.environ.get("PYTHONPATH", ""))))
    return {**os.environ, "PYTHONPATH": path, **more}


def rankwire(*words: str, directory: Path, timeout_s: float = TIMEOUT_S, **env: str) -> Ended:
    """Run the command in a session of its own; it must end by itself and leave nobody behind."""
    started = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-m", "emulator", *words],
        cwd=directory,
        env=environment(**env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            out, err = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert_nobody_left(process.pid)
    return Ended(process.returncode, out, err, time.monotonic() - started)


def assert_nobody_left(session: int) -> None:
    """Nobody of a session is alive, but for a moment in which a process may still be ending."""
    deadline_s = time.monotonic() + 2
    while (left := living_in_session(session)) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    assert not left, f"left behind: {left}"


def living_in_session(session: int) -> list[str]:
    """Command lines of the processes of a session that still run."""
    living = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            words = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            living.append(os.fsdecode(words))
    return living
