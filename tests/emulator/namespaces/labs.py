"""Small labs of namespaces for tests: a name of their own each, removed whatever happens."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emulator.lab import LoadedLab, load
from emulator.lab.namespaces import Namespaces
from emulator.namespaces import Layout, bring_up, lay_out, take_down
from emulator.namespaces.kernel import inside, unshared
from emulator.namespaces.making import missing_disciplines
from emulator.namespaces.settings import write_settings
from nic_drivers.bpf import ArrayMap, BpfError

NEEDED_CAPABILITIES = 1 << 12 | 1 << 21


def missing() -> str | None:
    """What keeps this machine from making labs of namespaces; `None` when nothing does."""
    status = Path("/proc/self/status").read_text()
    held = int(next(x for x in status.splitlines() if x.startswith("CapEff:")).split()[1], 16)
    if held & NEEDED_CAPABILITIES != NEEDED_CAPABILITIES:
        return "network namespaces need CAP_NET_ADMIN and CAP_SYS_ADMIN"
    try:
        with unshared():
            write_settings(is_switch=True, seed=1)
        ArrayMap.create("probe", 8, 1).close()
        lacking = missing_disciplines(Namespaces()) + missing_disciplines(Namespaces(shaper="tbf"))
    except (OSError, BpfError) as error:
        return f"this machine makes no labs of namespaces: {error}"
    return f"this kernel lacks {', '.join(lacking)}" if lacking else None


needs_root = pytest.mark.skipif(bool(missing()), reason=str(missing()))


def lab_name() -> str:
    """A name that no other test has."""
    return f"test-{os.getpid()}-{secrets.token_hex(3)}"


def loaded_lab(*overrides: str, lab: str = "netns-clos") -> LoadedLab:
    """The lab, under a name of its own."""
    return load(lab, [f"name={lab_name()}", *overrides])


@contextmanager
def lab_up(*overrides: str, lab: str = "netns-clos") -> Iterator[Layout]:
    """A lab that is up for as long as the block lasts."""
    layout = lay_out(loaded_lab(*overrides, lab=lab))
    bring_up(layout)
    try:
        yield layout
    finally:
        take_down(layout.lab)


def udp_socket(layout: Layout, host: str, port: int = 0) -> socket.socket:
    """A UDP socket on a host, bound to its address."""
    with inside(layout.hosts[host].namespace):
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    made.bind((layout.hosts[host].address, port))
    made.settimeout(5)
    return made
