"""Real processes: the command as a user starts it, its agents, and a Mosquitto if installed."""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

TIMEOUT_S = 30.0
REPOSITORY = Path(__file__).parents[3]


def until(condition: Callable[[], object], timeout_s: float = TIMEOUT_S) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.01)


def agents_of(pid: int) -> dict[str, int]:
    """Return the living agent processes that a process has started: name -> process id."""
    agents = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (entry / "cmdline").read_bytes().split(b"\0")
            if parent == pid and b"agent" in words:
                agents[Path(os.fsdecode(words[words.index(b"--config") + 1])).stem] = int(
                    entry.name
                )
    return agents


def is_alive(pid: int) -> bool:
    """Return whether a process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def is_running(pid: int) -> bool:
    """Return whether the engine of an agent has started: it has a thread of its own then."""
    with contextlib.suppress(OSError):
        threads = Path(f"/proc/{pid}/task").glob("*/comm")
        return any(thread.read_text().startswith("rankwire-engine") for thread in threads)
    return False


@contextlib.contextmanager
def command(*words: str, directory: Path) -> Iterator[subprocess.Popen[str]]:
    """Start `rankwire` with some words; it is ended with the block at the latest."""
    process = subprocess.Popen(
        [sys.executable, "-m", "emulator", *words],
        cwd=directory,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join((str(REPOSITORY), os.environ.get("PYTHONPATH", ""))),
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.terminate()
        process.communicate(timeout=TIMEOUT_S)


def until_agents(process: subprocess.Popen[str], count: int) -> dict[str, int]:
    """Wait until the agents of a command have started their engines; returns process ids."""

    def are_running() -> bool:
        agents = agents_of(process.pid)
        return len(agents) == count and all(map(is_running, agents.values()))

    until(lambda: process.poll() is not None or are_running())
    assert process.poll() is None, process.communicate()
    return agents_of(process.pid)


@contextlib.contextmanager
def mosquitto(
    directory: Path, options: Sequence[str] = (), port: int = 0
) -> Iterator[tuple[str, int]]:
    """Run a Mosquitto, on a free port unless one is given; yields its URL and its process id."""
    program = shutil.which("mosquitto") or shutil.which("/usr/sbin/mosquitto")
    if program is None:
        pytest.skip("mosquitto is not installed: apt-get install mosquitto")
    with socket.create_server(("127.0.0.1", port)) as probe:
        port = probe.getsockname()[1]
    lines = [
        f"user {getpass.getuser()}",
        f"listener {port} 127.0.0.1",
        *(options or ["allow_anonymous true"]),
    ]
    config = directory / "mosquitto.conf"
    config.write_text("\n".join(lines) + "\n")
    process = subprocess.Popen([program, "-c", config], stderr=subprocess.DEVNULL)
    try:
        until(lambda: _is_open(port))
        yield f"mqtt://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait()


def _is_open(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False
