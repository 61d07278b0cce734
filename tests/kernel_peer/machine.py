"""Runs the guest in QEMU (software emulation) and talks to its agent over the serial console.

The guest's only network is one Ethernet frame per UDP datagram on loopback: a wire of ours.
"""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# In the order of loading: network cards and shared folders.
VIRTIO_MODULES = (
    *("virtio_ring", "virtio", "virtio_mmio", "failover", "net_failover", "virtio_net"),
    *("netfs", "fscache", "9pnet", "9pnet_virtio", "9p"),
)
# Nothing names crc32_generic as needed, yet rdma_rxe looks it up.
RDMA_MODULES = (
    *("crc32_generic", "crc32c_generic", "libcrc32c", "udp_tunnel", "ip6_udp_tunnel"),
    *("ib_core", "ib_uverbs", "rdma_rxe"),
)
GUEST_MAC = "02:00:00:00:00:01"
HOST_MAC = "02:00:00:00:00:02"
GUEST_ADDRESS = "198.18.7.1"
HOST_ADDRESS = "198.18.7.2"
# Room for a path MTU of 4096 bytes and its headers.
LINK_MTU_BYTES = 4500
# Booting takes 3 s, and a minute and more where others want the machine as well.
BOOT_TIMEOUT_S = 300


class GuestError(Exception):
    """The guest reported an error, or nothing at all."""


@dataclass
class KernelPeer:
    """A running guest. It ends with `close`, and also when this process dies."""

    process: subprocess.Popen[bytes]
    console: int
    release: str = ""
    _unread: bytes = b""
    _log: list[bytes] = field(default_factory=list)

    def ask(self, operation: str, **arguments: Any) -> None:
        """Tell the agent to do `operation`; `take_answer` has its answer later."""
        line = json.dumps({"operation": operation, **arguments}).encode() + b"\n"
        while line:
            line = line[os.write(self.console, line) :]

    def take_answer(self) -> dict[str, Any] | None:
        """Return the agent's answer if it is there; raises `GuestError` if it reports an error."""
        while select.select([self.console], [], [], 0)[0]:
            chunk = os.read(self.console, 65536)
            if not chunk:
                raise GuestError(f"the guest ended; it said:\n{self.said()}")
            self._unread += chunk
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            self._log.append(line)
            _, mark, text = line.partition(b"@@ ")
            if mark:
                answer: dict[str, Any] = json.loads(text)
                if "error" in answer:
                    raise GuestError(f"the guest: {answer['error']}; it said:\n{self.said()}")
                return answer
        return None

    def wait_answer(self, timeout_s: float) -> dict[str, Any]:
        """Wait for the agent's answer."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            answer = self.take_answer()
            if answer is not None:
                return answer
            select.select([self.console], [], [], 0.2)
        raise GuestError(f"no answer from the guest in {timeout_s} s; it said:\n{self.said()}")

    def wait_until_ready(self, timeout_s: float = BOOT_TIMEOUT_S) -> None:
        """Wait until the agent says that it is there; the guest is ended if it does not."""
        try:
            self.release = self.wait_answer(timeout_s)["ready"]
        except GuestError:
            self.close()
            raise

    def said(self) -> str:
        """Return the last lines of the console."""
        return b"\n".join([*self._log[-20:], self._unread]).decode(errors="replace")

    def close(self) -> None:
        """End the guest, unless that has been done."""
        if self.process.returncode is not None:
            return
        self.process.kill()
        self.process.wait(10)
        os.close(self.console)


def boot(
    folder: Path, work: Path, *, guest_port: int, host_port: int, pattern: bytes
) -> KernelPeer:
    """Start the guest of `folder`; its frames go from UDP `guest_port` to `host_port` on loopback.

    `work` is for files of this run; `pattern` is the sequence that the agent fills memory with.
    """
    archive = _initial_file_system(folder, work, pattern)
    card = Card(wire_between(guest_port, host_port), GUEST_MAC)
    return start([*command_without_network(folder, archive), *card.options(0)])


def start(command: list[str], timeout_s: float = BOOT_TIMEOUT_S) -> KernelPeer:
    """Start a guest by QEMU's command line and wait until its agent is ready."""
    peer = launch(command)
    peer.wait_until_ready(timeout_s)
    return peer


def launch(command: list[str], descriptors: Sequence[int] = ()) -> KernelPeer:
    """Start a guest by QEMU's command line, which may name some open descriptors."""
    console, far_end = socket.socketpair()
    process = subprocess.Popen(
        command,
        stdin=far_end,
        stdout=far_end,
        stderr=subprocess.STDOUT,
        pass_fds=descriptors,
    )
    far_end.close()
    return KernelPeer(process, console.detach())


@dataclass(frozen=True)
class Card:
    """A network card of a guest: what it is plugged into, and its MAC address."""

    netdev: str
    """Value of QEMU's option `-netdev`, without an id."""
    mac: str

    def options(self, number: int) -> list[str]:
        """QEMU's options for the guest's card `number`. Checksums are the guest's own."""
        kind, _, rest = self.netdev.partition(",")
        device = (
            f"virtio-net-device,netdev=net{number},csum=off,guest_csum=off,"
            f"host_mtu={LINK_MTU_BYTES},mac={self.mac}"
        )
        return ["-netdev", f"{kind},id=net{number},{rest}", "-device", device]


def wire_between(local_port: int, remote_port: int) -> str:
    """A netdev: one Ethernet frame per datagram, from one UDP port of loopback to another."""
    return (
        f"dgram,local.type=inet,local.host=127.0.0.1,local.port={local_port},"
        f"remote.type=inet,remote.host=127.0.0.1,remote.port={remote_port}"
    )


def command_without_network(folder: Path, archive: Path, memory_mib: int = 768) -> list[str]:
    """QEMU's command line for a guest that talks over its console alone."""
    return [
        *("setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"),
        *("-machine", "microvm,rtc=on", "-accel", "tcg", "-cpu", "max", "-m", str(memory_mib)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-serial", "stdio", "-kernel", str(folder / "vmlinux"), "-initrd", str(archive)),
        *("-append", f"console=ttyS0 quiet panic=-1 rdinit=/init tsc_early_khz={_clock_khz()}"),
        *shared_folder("peer", folder / "root"),
    ]


def shared_folder(tag: str, path: Path) -> list[str]:
    """QEMU's options for a folder that the guest can mount over 9p, read-only."""
    share = f"local,id={tag},path={path},security_model=none,readonly=on,multidevs=remap"
    return ["-fsdev", share, "-device", f"virtio-9p-device,fsdev={tag},mount_tag={tag}"]


def _clock_khz() -> int:
    """Rate of the time stamp counter that the guest sees: the host's.

    The guest's kernel measures it when it is not told, and on a busy machine it hangs over that.
    """
    found = re.search(r"^cpu MHz\s*: (\d+)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return int(found[1]) * 1000 if found else 1_000_000


def _initial_file_system(folder: Path, work: Path, pattern: bytes) -> Path:
    """Make an initramfs of busybox, the modules and the agent."""
    tree = initial_tree(folder, work, (*VIRTIO_MODULES, *RDMA_MODULES), HERE / "guest_init.sh")
    put_script(HERE / "guest_agent.py", tree)
    (tree / "pattern").write_bytes(pattern)
    (tree / "network").write_text(
        f"MTU={LINK_MTU_BYTES}\nADDRESS={GUEST_ADDRESS}\n"
        f"PEER_ADDRESS={HOST_ADDRESS}\nPEER_MAC={HOST_MAC}\n"
    )
    return packed(tree, work / "initramfs.cpio")


def initial_tree(folder: Path, work: Path, modules: Sequence[str], init: Path) -> Path:
    """Make a folder below `work` with busybox, modules of the kernel and the first process."""
    tree = work / "initramfs"
    (tree / "bin").mkdir(parents=True)
    shutil.copy(folder / "root/bin/busybox", tree / "bin/busybox")
    put_modules(folder, modules, tree / "modules")
    shutil.copy(init, tree / "init")
    (tree / "init").chmod(0o755)
    return tree


def put_script(script: Path, tree: Path) -> None:
    """Copy a script that is asked over the console, and the console's side of the guest."""
    shutil.copy(script, tree)
    shutil.copy(HERE / "guest_console.py", tree)


def put_modules(folder: Path, modules: Sequence[str], target: Path) -> None:
    """Copy modules of the kernel, and their order of loading."""
    target.mkdir()
    for name in modules:
        (path,) = (folder / "root/lib/modules").rglob(f"{name}.ko")
        shutil.copy(path, target)
    (target / "order").write_text("".join(f"{name}.ko\n" for name in modules))


def packed(tree: Path, archive: Path) -> Path:
    """Pack a tree as an initramfs."""
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    command = ["cpio", "--quiet", "-o", "-H", "newc", "-O", str(archive)]
    subprocess.run(command, cwd=tree, input=names.encode(), check=True)
    return archive
