"""`lab up` makes a lab that carries traffic; `lab down` removes it and nothing else."""

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dataplane.errors import InputError, RunError
from emulator.cli import main
from emulator.namespaces import bring_up, counters, is_up, lay_out, start_inside, take_down
from emulator.namespaces.kernel import NAMES, bind_name, prepare_names, remove_name, unshared
from emulator.namespaces.making import missing_disciplines
from emulator.namespaces.process import command_inside
from emulator.namespaces.state import DIRECTORY, read_state, write
from tests.emulator.namespaces.labs import (
    lab_name,
    lab_up,
    loaded_lab,
    needs_root,
    udp_socket,
)

pytestmark = [pytest.mark.privileged, needs_root]


def names_of(lab: str) -> set[str]:
    """Namespaces with the lab's prefix."""
    return {path.name for path in NAMES.glob(f"rw-{lab}-*")}


def test_every_host_reaches_every_other() -> None:
    with lab_up() as layout:
        sockets = {name: udp_socket(layout, name, 4791) for name in layout.hosts}
        for sender in sockets.values():
            for host in layout.hosts.values():
                sender.sendto(host.name.encode(), (host.address, 4791))
        for name, receiver in sockets.items():
            found = {receiver.recvfrom(100) for _ in layout.hosts}
            assert found == {(name.encode(), (h.address, 4791)) for h in layout.hosts.values()}
            receiver.close()


def test_a_full_packet_crosses_without_fragments() -> None:
    with lab_up() as layout:
        sender, receiver = udp_socket(layout, "host0"), udp_socket(layout, "host7", 4791)
        sender.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER, IP_PMTUDISC_DO
        sender.sendto(bytes(4200 - 28), (layout.hosts["host7"].address, 4791))
        assert len(receiver.recv(9000)) == 4200 - 28
        with pytest.raises(OSError, match="too long") as caught:
            sender.sendto(bytes(4200 - 27), (layout.hosts["host7"].address, 4791))
        assert caught.value.errno == errno.EMSGSIZE
        sender.close()
        receiver.close()


def test_down_removes_everything_that_up_made() -> None:
    layout = lay_out(loaded_lab())
    bring_up(layout)
    assert len(names_of(layout.lab)) == 12
    assert is_up(layout)
    removal = take_down(layout.lab)
    assert removal is not None
    assert (removal.namespaces, removal.foreign, removal.is_complete) == (12, (), True)
    assert names_of(layout.lab) == set()
    assert list(DIRECTORY.glob(f"{layout.lab}*")) == []
    assert take_down(layout.lab) is None


def test_a_second_up_finds_the_lab_up_and_a_different_one_is_refused() -> None:
    with lab_up() as layout:
        assert bring_up(layout) is False
        changed = lay_out(loaded_lab(f"name={layout.lab}", "ecn.kmin_bytes=1000"))
        with pytest.raises(InputError, match="is up with other settings"):
            bring_up(changed)


@pytest.fixture
def foreign_name() -> Iterator[str]:
    """A namespace of somebody else."""
    name = f"rw-{lab_name()}-host3"
    prepare_names()
    with unshared():
        bind_name(name)
    yield name
    remove_name(name)


def test_a_foreign_namespace_keeps_a_lab_from_its_name_and_stays(foreign_name: str) -> None:
    lab = foreign_name.removeprefix("rw-").removesuffix("-host3")
    layout = lay_out(loaded_lab(f"name={lab}"))
    with pytest.raises(InputError, match=foreign_name):
        bring_up(layout)
    assert names_of(lab) == {foreign_name}


@pytest.mark.parametrize("changes", [{}, {"boot": "an earlier one"}])
def test_a_name_that_somebody_else_has_now_is_left_alone(changes: dict[str, str]) -> None:
    """Also after the machine was started again, when the state is still on disk."""
    layout = lay_out(loaded_lab())
    bring_up(layout)
    current = read_state(layout.lab)
    assert current is not None
    write(current, **changes)
    name = layout.hosts["host2"].namespace
    remove_name(name)
    with unshared():
        bind_name(name)
    try:
        removal = take_down(layout.lab)
        assert removal is not None
        assert removal.foreign == (name,)
        assert names_of(layout.lab) == {name}
    finally:
        remove_name(name)


@pytest.mark.parametrize("after_steps", [1, 20, 39])
def test_what_a_killed_up_left_is_removed_by_down(after_steps: int) -> None:
    """SIGKILL at a step in the middle: nothing of the maker's own clean-up runs."""
    lab = lab_name()
    script = (
        "import os, signal, sys\n"
        "from emulator.lab import load\n"
        "from emulator.namespaces import bring_up, counters, lay_out\n"
        f"layout = lay_out(load('netns-clos', ['name={lab}']))\n"
        "def on_step(what, done, total):\n"
        f"    if done == {after_steps}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "bring_up(layout, on_step)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL
    assert names_of(lab)
    assert take_down(lab) is not None
    assert names_of(lab) == set()
    assert list(DIRECTORY.glob(f"{lab}*")) == []


def test_up_after_a_killed_up_begins_anew() -> None:
    lab = lab_name()
    script = (
        "import os, signal\n"
        "from emulator.lab import load\n"
        "from emulator.namespaces import bring_up, counters, lay_out\n"
        f"layout = lay_out(load('netns-clos', ['name={lab}']))\n"
        "bring_up(layout, lambda w, d, t: d == 20 and os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    subprocess.run([sys.executable, "-c", script], check=False, timeout=60)
    layout = lay_out(loaded_lab(f"name={lab}"))
    try:
        assert bring_up(layout) is True
        assert is_up(layout)
    finally:
        take_down(lab)


def test_down_refuses_while_a_process_is_inside() -> None:
    with lab_up() as layout:
        process = start_inside(layout.hosts["host1"].namespace, ["sleep", "60"])
        try:
            with pytest.raises(RunError, match=rf"in use by sleep \(process {process.pid}\)"):
                take_down(layout.lab)
            assert is_up(layout)
        finally:
            process.kill()
            process.wait()


def test_a_socket_inside_is_found_though_its_process_is_outside() -> None:
    """Agents are like this: one process with sockets in the namespaces of several hosts."""
    with lab_up() as layout:
        held = udp_socket(layout, "host1")
        with pytest.raises(RunError, match=rf"\(process {os.getpid()}\)"):
            take_down(layout.lab)
        held.close()


def test_a_process_is_inside_either_way_of_starting_it() -> None:
    with lab_up() as layout:
        namespace = layout.hosts["host4"].namespace
        expected = (NAMES / namespace).stat().st_ino
        look = [sys.executable, "-c", "import os; print(os.stat('/proc/self/ns/net').st_ino)"]
        with start_inside(namespace, look, stdout=subprocess.PIPE) as process:
            assert int(process.communicate()[0]) == expected
        wrapped = subprocess.run(command_inside(namespace, look), capture_output=True, check=True)
        assert int(wrapped.stdout) == expected
        assert Path("/proc/self/ns/net").stat().st_ino != expected


def test_a_namespace_that_is_not_there_is_an_error_that_says_what_to_do() -> None:
    with pytest.raises(RunError, match="needs `rankwire lab up`"):
        start_inside("rw-nothing-host0", ["true"])
    failed = subprocess.run(
        command_inside("rw-nothing-host0", ["true"]), capture_output=True, check=False
    )
    assert failed.returncode == 127
    assert b"rw-nothing-host0" in failed.stderr


def test_the_command_says_what_it_did(capsys: pytest.CaptureFixture[str]) -> None:
    lab = lab_name()

    def told(*words: str) -> str:
        assert main(["lab", *words]) == 0
        return capsys.readouterr().out

    try:
        up = ("up", "netns-clos", "--set", f"name={lab}")
        assert f"{lab} is up: 8 hosts, 4 switches, 16 links" in told(*up)
        assert f"{lab} is up already" in told(*up)
        assert lab in told("status")
        assert "leaf1" in told("status", "netns-clos", "--set", f"name={lab}")
    finally:
        down = told("down", lab)
    assert down == f"{lab} is down: 12 namespaces removed\n"


def test_without_permission_the_command_says_so_and_ends_with_2() -> None:
    """The child takes the two capabilities out of its bounding set, then becomes the command."""
    command = [sys.executable, "-m", "emulator", "lab", "up", "netns-clos"]
    script = (
        "import ctypes, os\n"
        "for capability in (12, 21):\n"
        "    assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0\n"
        f"os.execv({sys.executable!r}, {command!r})\n"
    )
    refused = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert refused.returncode == 2, refused.stderr
    assert "needs CAP_NET_ADMIN and CAP_SYS_ADMIN" in refused.stderr
    assert "run it as root" in refused.stderr


def test_two_ups_at_once_end_with_one_lab() -> None:
    lab = lab_name()
    command = [sys.executable, "-m", "emulator", "lab", "up", "netns-clos", "--set", f"name={lab}"]
    started = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(2)]
    deadline_s = time.monotonic() + 60
    errors = [process.communicate(timeout=deadline_s - time.monotonic())[1] for process in started]
    try:
        statuses = sorted(process.returncode for process in started)
        assert statuses in ([0, 0], [0, 2])
        assert all(b"by another process" in text for text in errors if text)
        assert len(names_of(lab)) == 12
    finally:
        take_down(lab)


def test_red_of_the_kernel_marks_where_the_kernel_has_it_and_is_asked_for_else() -> None:
    layout = lay_out(loaded_lab("namespaces.marking=sch_red"))
    if missing_disciplines(layout.options):
        with pytest.raises(InputError, match=r"needs sch_red.*modprobe sch_red"):
            bring_up(layout)
        assert names_of(layout.lab) == set()
        return
    try:
        bring_up(layout)
        assert all(port.marking is None for port in counters(layout))
    finally:
        take_down(layout.lab)
