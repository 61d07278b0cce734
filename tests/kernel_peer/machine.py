"""Boots Debian's kernel with rdma_rxe in QEMU (software emulation) and talks to its agent.

Packages come from apt and are unpacked into a cache folder, never installed and never committed.
The guest's only network is one Ethernet frame per UDP datagram on loopback: a wire of ours.
"""

from __future__ import annotations

import json
import lzma
import os
import re
import select
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PACKAGES = (
    "busybox-static ibverbs-providers iproute2 libbpf1 libbsd0 libbz2-1.0 libc6 libcap2 libcap2-bin "
    "libcrypt1 libelf1 libpython3.11 libexpat1 libffi8 libgcc-s1 libibverbs1 libkmod2 liblzma5 libmd0 libmnl0 "
    "libnl-3-200 libnl-route-3-200 libpython3-stdlib libpython3.11-minimal libpython3.11-stdlib "
    "librdmacm1 libselinux1 libpcre2-8-0 libssl3 libtirpc3 libgssapi-krb5-2 libkrb5-3 libk5crypto3 "
    "libcom-err2 libkrb5support0 libkeyutils1 libuuid1 libxtables12 libdb5.3 libzstd1 media-types "
    "python3-minimal python3-pyverbs python3.11-minimal python3.11 zlib1g"
).split()
MODULES = (
    "virtio_ring virtio virtio_mmio failover net_failover virtio_net netfs fscache 9pnet "
    "9pnet_virtio 9p crc32_generic crc32c_generic libcrc32c udp_tunnel ip6_udp_tunnel ib_core "
    "ib_uverbs rdma_rxe"
).split()
GUEST_MAC = "02:00:00:00:00:01"
HOST_MAC = "02:00:00:00:00:02"
GUEST_ADDRESS = "198.18.7.1"
HOST_ADDRESS = "198.18.7.2"


class Unavailable(Exception):
    """The peer can't be had on this machine; the text says why."""


def _run(*command: str, cwd: Path | None = None) -> str:
    """Run a command and return its output."""
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)
    if done.returncode:
        raise Unavailable(f"{' '.join(command[:3])} ...: {done.stderr.strip()[-300:]}")
    return done.stdout


def kernel_package() -> str:
    """Name of the current kernel image package."""
    text = _run("apt-cache", "depends", "linux-image-amd64")
    found = re.search(r"Depends: (linux-image-\S+)", text)
    if found is None:
        raise Unavailable("apt knows no linux-image-amd64: run apt-get update")
    return found[1]


def prepare(cache: Path) -> Path:
    """Make the guest's root, kernel and initial file system in `cache`, once."""
    for tool in ("qemu-system-x86_64", "apt-get", "dpkg", "cpio"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not installed")
    kernel = kernel_package()
    done = cache / kernel / "done"
    if not done.exists():
        shutil.rmtree(done.parent, ignore_errors=True)
        (done.parent / "packages").mkdir(parents=True)
        _unpack(done.parent, kernel)
        _decompress_kernel(done.parent)
        done.touch()
    return done.parent


def _unpack(folder: Path, kernel: str) -> None:
    """Download the packages and unpack them under `folder/root`."""
    _run("apt-get", "download", "-q", kernel, *PACKAGES, cwd=folder / "packages")
    for package in sorted((folder / "packages").glob("*.deb")):
        _run("dpkg", "-x", str(package), str(folder / "root"))
    for name in ("proc", "sys", "dev", "tmp"):
        (folder / "root" / name).mkdir(exist_ok=True)
    shutil.rmtree(folder / "packages")


def _decompress_kernel(folder: Path) -> None:
    """Write the uncompressed kernel: it boots twice as fast under emulation."""
    (image,) = (folder / "root/boot").glob("vmlinuz-*")
    data = image.read_bytes()
    start = data.find(b"\xfd7zXZ\x00")
    if start < 0:
        raise Unavailable(f"{image.name} is not an xz-compressed kernel")
    (folder / "vmlinux").write_bytes(lzma.LZMADecompressor().decompress(data[start:]))


def _initial_file_system(folder: Path, work: Path, mtu_bytes: int) -> Path:
    """An initramfs with busybox, the modules and the agent."""
    tree = work / "initramfs"
    for name in ("bin", "modules"):
        (tree / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / "root/bin/busybox", tree / "bin/busybox")
    for name in MODULES:
        (path,) = (folder / "root/lib/modules").rglob(f"{name}.ko")
        shutil.copy(path, tree / "modules" / path.name)
    (tree / "modules/order").write_text("".join(f"{name}.ko\n" for name in MODULES))
    shutil.copy(HERE / "guest_agent.py", tree / "guest_agent.py")
    shutil.copy(HERE / "guest_init.sh", tree / "init")
    (tree / "init").chmod(0o755)
    (tree / "network").write_text(
        f"MTU={mtu_bytes}\nADDRESS={GUEST_ADDRESS}\nPEER_ADDRESS={HOST_ADDRESS}\nPEER_MAC={HOST_MAC}\n"
    )
    archive = work / "initramfs.cpio"
    with archive.open("wb") as output:
        names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
        subprocess.run(
            ["cpio", "--quiet", "-o", "-H", "newc"],
            cwd=tree,
            input=names.encode(),
            stdout=output,
            check=True,
        )
    return archive


@dataclass
class KernelPeer:
    """A running guest."""

    process: subprocess.Popen[bytes]
    release: str = ""
    _rest: bytes = b""

    def call(self, operation: str, timeout_s: float = 30.0, **arguments: Any) -> dict[str, Any]:
        """Let the agent do `operation` and return its answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"operation": operation, **arguments}).encode() + b"\n")
        self.process.stdin.flush()
        return self.answer(timeout_s)

    def answer(self, timeout_s: float) -> dict[str, Any]:
        """The next answer; raises if the agent reports an error or says nothing."""
        end = time.monotonic() + timeout_s
        log = b""
        while time.monotonic() < end:
            line, separator, rest = self._rest.partition(b"\n")
            if separator:
                self._rest = rest
                log += line + b"\n"
                if b"@@ " in line:
                    answer: dict[str, Any] = json.loads(line.split(b"@@ ", 1)[1])
                    if "error" in answer:
                        raise AssertionError(f"the guest: {answer['error']}")
                    return answer
                continue
            assert self.process.stdout is not None
            ready, _, _ = select.select([self.process.stdout], [], [], 0.5)
            if ready:
                chunk = os.read(self.process.stdout.fileno(), 65536)
                if not chunk:
                    break
                self._rest += chunk
        raise AssertionError(
            f"no answer from the guest; it said:\n{log.decode(errors='replace')[-2000:]}"
        )

    def close(self) -> None:
        """End the guest."""
        self.process.kill()
        self.process.wait(10)


def boot(
    folder: Path, work: Path, *, guest_port: int, host_port: int, mtu_bytes: int = 4500
) -> KernelPeer:
    """Start the guest; its frames go from UDP `guest_port` to `host_port` on loopback."""
    archive = _initial_file_system(folder, work, mtu_bytes)
    wire = (
        f"dgram,id=n0,local.type=inet,local.host=127.0.0.1,local.port={guest_port},"
        f"remote.type=inet,remote.host=127.0.0.1,remote.port={host_port}"
    )
    card = (
        f"virtio-net-device,netdev=n0,csum=off,guest_csum=off,host_mtu={mtu_bytes},mac={GUEST_MAC}"
    )
    share = f"local,id=peer,path={folder / 'root'},security_model=none,readonly=on,multidevs=remap"
    command = [
        *("qemu-system-x86_64", "-machine", "microvm,rtc=on", "-accel", "tcg", "-cpu", "max"),
        *("-m", "768", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-serial", "stdio", "-kernel", str(folder / "vmlinux"), "-initrd", str(archive)),
        *("-append", "console=ttyS0 quiet panic=-1 rdinit=/init"),
        *("-netdev", wire, "-device", card),
        *("-fsdev", share, "-device", "virtio-9p-device,fsdev=peer,mount_tag=peer"),
    ]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    peer = KernelPeer(process)
    peer.release = peer.answer(120)["ready"]
    return peer
