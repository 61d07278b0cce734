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
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# In the order of loading. Nothing names crc32_generic as needed, yet rdma_rxe looks it up.
MODULES = (
    *("virtio_ring", "virtio", "virtio_mmio", "failover", "net_failover", "virtio_net"),
    *("netfs", "fscache", "9pnet", "9pnet_virtio", "9p"),
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
                raise GuestError(f"the guest ended; it said:\n{self._said()}")
            self._unread += chunk
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            self._log.append(line)
            _, mark, text = line.partition(b"@@ ")
            if mark:
                answer: dict[str, Any] = json.loads(text)
                if "error" in answer:
                    raise GuestError(f"the guest: {answer['error']}; it said:\n{self._said()}")
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
        raise GuestError(f"no answer from the guest in {timeout_s} s; it said:\n{self._said()}")

    def _said(self) -> str:
        """Return the last lines of the console."""
        return b"\n".join([*self._log[-20:], self._unread]).decode(errors="replace")

    def close(self) -> None:
        """End the guest."""
        self.process.kill()
        self.process.wait(10)
        os.close(self.console)


def boot(
    folder: Path, work: Path, *, guest_port: int, host_port: int, pattern: bytes
) -> KernelPeer:
    """Start the guest of `folder`; its frames go from UDP `guest_port` to `host_port` on loopback.

    `work` is for files of this run; `pattern` is the sequence that the agent fills memory with.
    """
    console, far_end = socket.socketpair()
    process = subprocess.Popen(
        _command(folder, _initial_file_system(folder, work, pattern), guest_port, host_port),
        stdin=far_end,
        stdout=far_end,
        stderr=subprocess.STDOUT,
    )
    far_end.close()
    peer = KernelPeer(process, console.detach())
    try:
        peer.release = peer.wait_answer(BOOT_TIMEOUT_S)["ready"]
    except GuestError:
        peer.close()
        raise
    return peer


def _command(folder: Path, archive: Path, guest_port: int, host_port: int) -> list[str]:
    """QEMU's command line: the kernel runs 2 s after it."""
    wire = (
        f"dgram,id=wire,local.type=inet,local.host=127.0.0.1,local.port={guest_port},"
        f"remote.type=inet,remote.host=127.0.0.1,remote.port={host_port}"
    )
    card = (
        f"virtio-net-device,netdev=wire,csum=off,guest_csum=off,host_mtu={LINK_MTU_BYTES},"
        f"mac={GUEST_MAC}"
    )
    return [*command_without_network(folder, archive), "-netdev", wire, "-device", card]


def command_without_network(folder: Path, archive: Path) -> list[str]:
    """QEMU's command line for a guest that talks over its console alone."""
    share = f"local,id=peer,path={folder / 'root'},security_model=none,readonly=on,multidevs=remap"
    return [
        *("setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64"),
        *("-machine", "microvm,rtc=on", "-accel", "tcg", "-cpu", "max", "-m", "768"),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-serial", "stdio", "-kernel", str(folder / "vmlinux"), "-initrd", str(archive)),
        *("-append", f"console=ttyS0 quiet panic=-1 rdinit=/init tsc_early_khz={_clock_khz()}"),
        *("-fsdev", share, "-device", "virtio-9p-device,fsdev=peer,mount_tag=peer"),
    ]


def _clock_khz() -> int:
    """Rate of the time stamp counter that the guest sees: the host's.

    The guest's kernel measures it when it is not told, and on a busy machine it hangs over that.
    """
    found = re.search(r"^cpu MHz\s*: (\d+)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return int(found[1]) * 1000 if found else 1_000_000


def _initial_file_system(folder: Path, work: Path, pattern: bytes) -> Path:
    """Make an initramfs of busybox, the modules and the agent."""
    tree = work / "initramfs"
    for name in ("bin", "modules"):
        (tree / name).mkdir(parents=True)
    shutil.copy(folder / "root/bin/busybox", tree / "bin/busybox")
    for name in MODULES:
        (path,) = (folder / "root/lib/modules").rglob(f"{name}.ko")
        shutil.copy(path, tree / "modules")
    (tree / "modules/order").write_text("".join(f"{name}.ko\n" for name in MODULES))
    shutil.copy(HERE / "guest_agent.py", tree)
    shutil.copy(HERE / "guest_init.sh", tree / "init")
    (tree / "init").chmod(0o755)
    (tree / "pattern").write_bytes(pattern)
    (tree / "network").write_text(
        f"MTU={LINK_MTU_BYTES}\nADDRESS={GUEST_ADDRESS}\n"
        f"PEER_ADDRESS={HOST_ADDRESS}\nPEER_MAC={HOST_MAC}\n"
    )
    return packed(tree, work / "initramfs.cpio")


def packed(tree: Path, archive: Path) -> Path:
    """Pack a tree as an initramfs."""
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    command = ["cpio", "--quiet", "-o", "-H", "newc", "-O", str(archive)]
    subprocess.run(command, cwd=tree, input=names.encode(), check=True)
    return archive
