"""Two network namespaces with a cable between them, and peers compiled to run inside."""

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = [
    "AbsentError",
    "End",
    "Sides",
    "cable",
    "compiled",
    "on_processor",
    "processors",
    "side_by_side",
]

PEERS = Path(__file__).parent / "peers"
MTU_BYTES = 9000
INTERFACE = "eth0"


class AbsentError(Exception):
    """Something that is needed is not there."""


@dataclass(frozen=True)
class End:
    """One namespace."""

    namespace: str
    address: str
    mac: str

    def command(self, *words: str) -> list[str]:
        """A command line inside."""
        return ["ip", "netns", "exec", self.namespace, *words]


@dataclass(frozen=True)
class Sides:
    """What a sender and a receiver say of themselves."""

    sent: dict[str, Any]
    received: dict[str, Any]


@contextmanager
def cable() -> Iterator[tuple[End, End]]:
    """Make the namespaces, and remove them; raises `AbsentError` where that is impossible."""
    if os.geteuid() != 0:
        raise AbsentError("network namespaces need root")
    if shutil.which("ip") is None:
        raise AbsentError("there is no ip command (iproute2)")
    names = [f"rwbench-{os.getpid():x}{secrets.token_hex(2)}-{side}" for side in "ab"]
    try:
        yield _made(names)
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _made(names: Sequence[str]) -> tuple[End, End]:
    for name in names:
        _ip("netns", "add", name)
    mtu = ("mtu", str(MTU_BYTES))
    peer = ("peer", "name", INTERFACE, *mtu, "netns", names[1])
    _ip("link", "add", INTERFACE, *mtu, "netns", names[0], "type", "veth", *peer)
    ends = []
    for number, name in enumerate(names, 1):
        address = f"198.18.201.{number}"
        _ip("-n", name, "addr", "add", f"{address}/24", "dev", INTERFACE)
        _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", name, "link", "set", INTERFACE, "up")
        shown = json.loads(_ip("-n", name, "-j", "link", "show", INTERFACE))
        ends.append(End(name, address, shown[0]["address"]))
    return ends[0], ends[1]


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise AbsentError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def compiled(name: str, directory: Path) -> str:
    """A peer in C, compiled; raises `AbsentError`."""
    compiler = shutil.which("cc")
    if compiler is None:
        raise AbsentError("there is no C compiler")
    program = directory / name
    source = PEERS / f"{name}.c"
    command = [compiler, "-O2", "-o", str(program), str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise AbsentError(f"{name} does not compile: {done.stderr.strip().splitlines()[-1]}")
    return str(program)


def processors() -> tuple[int, int]:
    """Return the processors of a sender and of a receiver: the first two that may be used."""
    allowed = sorted(os.sched_getaffinity(0))
    return allowed[0], allowed[min(1, len(allowed) - 1)]


@contextmanager
def on_processor(processor: int) -> Iterator[None]:
    """Processes that begin inside the block stay on one processor."""
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def side_by_side(receive: Sequence[str], send: Sequence[str], timeout_s: float) -> Sides:
    """Run a receiver, and a sender as soon as it is ready, on a processor each.

    Both end by themselves.
    """
    senders, receivers = processors()
    with on_processor(receivers):
        receiver = subprocess.Popen(receive, stdout=subprocess.PIPE, text=True)
    try:
        if receiver.stdout is None or "ready" not in receiver.stdout.readline():
            raise RuntimeError(f"{receive[-4:]} did not begin")
        with on_processor(senders):
            sender = subprocess.run(
                send, capture_output=True, text=True, check=True, timeout=timeout_s
            )
        received, _ = receiver.communicate(timeout=timeout_s)
    finally:
        receiver.kill()
        receiver.wait()
    return Sides(json.loads(sender.stdout), json.loads(received))
