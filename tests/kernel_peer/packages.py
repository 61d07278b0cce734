"""The guest's kernel and user space: Debian packages, unpacked into a cache folder.

Nothing is installed and nothing is committed. It must not know how the guest is run.
"""

from __future__ import annotations

import fcntl
import lzma
import os
import re
import shutil
import subprocess
from pathlib import Path

WANTED = ("busybox-static", "ibverbs-providers", "iproute2", "python3-pyverbs")
TOOLS = ("qemu-system-x86_64", "setpriv", "apt-get", "dpkg", "cpio")
REPOSITORY = Path(__file__).parents[2]


class UnavailableError(Exception):
    """The peer can't be had on this machine; the text says why."""


def cache_folder() -> Path:
    """Where unpacked packages are kept between runs: `RANKWIRE_CACHE`, or in the repository."""
    return Path(os.environ.get("RANKWIRE_CACHE", REPOSITORY / ".cache")) / "kernel-peer"


def prepare(cache: Path) -> Path:
    """Return the folder of the guest's root and kernel under `cache`; make it if it is not there.

    What is there is taken as it is, without a look at the network. Raises `UnavailableError` where
    a tool, a package or the network is missing.
    """
    for tool in TOOLS:
        if shutil.which(tool) is None:
            raise UnavailableError(f"{tool} is not installed: run make system-packages")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = sorted(cache.glob("*/done"))
        return made[-1].parent if made else _make(cache)


def _make(cache: Path) -> Path:
    """Make the folder; an unfinished one is made anew."""
    kernel = _kernel_package()
    folder = cache / kernel
    shutil.rmtree(folder, ignore_errors=True)
    _unpack([kernel, *_with_dependencies()], folder)
    _decompress_kernel(folder)
    (folder / "done").touch()
    return folder


def _run(*command: str, cwd: Path | None = None) -> str:
    """Run a command and return its output."""
    try:
        done = subprocess.run(
            command, cwd=cwd, check=False, capture_output=True, text=True, timeout=300
        )
    except subprocess.TimeoutExpired as expired:
        raise UnavailableError(f"{' '.join(command[:3])} ...: nothing for 300 s") from expired
    if done.returncode:
        raise UnavailableError(f"{' '.join(command[:3])} ...: {done.stderr.strip()[-300:]}")
    return done.stdout


def _kernel_package() -> str:
    """Name of the current kernel image package."""
    found = re.search(
        r"Depends: (linux-image-\S+)", _run("apt-cache", "depends", "linux-image-amd64")
    )
    if found is None:
        raise UnavailableError("apt knows no linux-image-amd64: run apt-get update on Debian")
    return found[1]


def _with_dependencies() -> list[str]:
    """Return the wanted packages and all that they need on a machine that has nothing."""
    text = _run(
        *("apt-get", "-o", "Dir::State::status=/dev/null", "install", "--print-uris", "--yes"),
        *("--no-install-recommends", *WANTED),
    )
    return re.findall(r"^'\S+' ([a-z0-9+.-]+)_\S+\.deb ", text, re.MULTILINE)


def _unpack(packages: list[str], folder: Path) -> None:
    """Download the packages and unpack them under `folder/root`."""
    downloads = folder / "packages"
    downloads.mkdir(parents=True)
    _run("apt-get", "download", "-q", *packages, cwd=downloads)
    for package in sorted(downloads.glob("*.deb")):
        _run("dpkg", "-x", str(package), str(folder / "root"))
    for name in ("proc", "sys", "dev", "tmp"):
        (folder / "root" / name).mkdir(exist_ok=True)
    shutil.rmtree(downloads)


def _decompress_kernel(folder: Path) -> None:
    """Write the uncompressed kernel: it boots twice as fast under emulation."""
    (image,) = (folder / "root/boot").glob("vmlinuz-*")
    data = image.read_bytes()
    start = data.find(b"\xfd7zXZ\x00")
    if start < 0:
        raise UnavailableError(f"{image.name} is not an xz-compressed kernel")
    (folder / "vmlinux").write_bytes(lzma.LZMADecompressor().decompress(data[start:]))
