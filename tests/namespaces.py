"""Network namespaces that tests make for themselves, with nothing but each other to reach."""

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

MTU_BYTES = 9000


@dataclass(frozen=True)
class Host:
    """One namespace with one interface."""

    namespace: str
    interface: str
    address: str


def need_namespaces() -> None:
    """Skip where namespaces cannot be made."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    if shutil.which("ip") is None:
        pytest.skip("there is no ip command (iproute2)")


def ip(*words: str) -> None:
    """Call `ip`."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")


@contextmanager
def hosts(count: int, *, mtu_bytes: int = MTU_BYTES, queues: int = 1) -> Iterator[Sequence[Host]]:
    """Make hosts 198.18.200.1, .2, ...: two with a cable between them, more at a bridge.

    Interfaces have `queues` queues for what they send, and as many for what they receive.
    """
    need_namespaces()
    mark = f"rw{os.getpid():x}{secrets.token_hex(2)}"
    made = [Host(f"{mark}-{n}", "eth0", f"198.18.200.{n + 1}") for n in range(count)]
    names = [host.namespace for host in made]
    if count > 2:
        names.append(f"{mark}-bridge")
    try:
        for name in names:
            ip("netns", "add", name)
            ip("-n", name, "link", "set", "lo", "up")
        _cable(made, names[-1], mtu_bytes, queues)
        for host in made:
            ip("-n", host.namespace, "addr", "add", f"{host.address}/24", "dev", host.interface)
            ip("-n", host.namespace, "link", "set", host.interface, "up")
        yield made
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)


def _cable(made: Sequence[Host], last: str, mtu_bytes: int, queues: int) -> None:
    if len(made) == 2:
        _veth(made[0].namespace, "eth0", last, "eth0", mtu_bytes, queues)
        return
    ip("-n", last, "link", "add", "bridge", "type", "bridge")
    for number, host in enumerate(made):
        _veth(host.namespace, host.interface, last, f"port{number}", mtu_bytes, queues)
        ip("-n", last, "link", "set", f"port{number}", "up", "master", "bridge")
    ip("-n", last, "link", "set", "bridge", "up")


def _veth(
    left: str, left_name: str, right: str, right_name: str, mtu_bytes: int, queues: int
) -> None:
    like = ("mtu", str(mtu_bytes), "numtxqueues", str(queues), "numrxqueues", str(queues))
    peer = ("peer", "name", right_name, *like, "netns", right)
    ip("link", "add", left_name, *like, "netns", left, "type", "veth", *peer)
