"""The system calls of network namespaces: enter one, make one, name it, take its name away.

A namespace belongs to a thread. What this module does to the calling thread it undoes before it
returns. Names are files under /run/netns, as `ip netns` has them. Nothing here knows a lab.
"""

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

__all__ = ["NAMES", "bind_name", "inside", "is_bound", "prepare_names", "remove_name", "unshared"]

NAMES: Final = Path("/run/netns")
"""Where namespaces have names. Source: ip-netns(8)."""

# include/uapi/linux/sched.h, include/uapi/linux/mount.h
_CLONE_NEWNET: Final = 0x4000_0000
_MS_BIND: Final = 0x1000
_MS_REC: Final = 0x4000
_MS_SHARED: Final = 0x10_0000
_MNT_DETACH: Final = 2

_libc = ctypes.CDLL(None, use_errno=True)
_OWN: Final = "/proc/thread-self/ns/net"


@contextlib.contextmanager
def inside(name: str) -> Iterator[None]:
    """Run a block with the calling thread in the namespace of that name.

    Sockets opened and processes started in the block stay in it. Raises `OSError`.
    """
    target = os.open(NAMES / name, os.O_RDONLY | os.O_CLOEXEC)
    try:
        with _returning():
            _enter(target)
            yield
    finally:
        os.close(target)


@contextlib.contextmanager
def unshared() -> Iterator[None]:
    """Run a block with the calling thread in a new namespace, which ends unless it gets a name."""
    with _returning():
        _check(_libc.unshare(_CLONE_NEWNET), "unshare")
        yield


def bind_name(name: str) -> None:
    """Give the calling thread's namespace a name; raises `FileExistsError` if it is taken."""
    path = NAMES / name
    os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444))
    _mount(_OWN, path, _MS_BIND)


def remove_name(name: str) -> None:
    """Take a name away; its namespace ends as soon as nothing is in it any more."""
    path = NAMES / name
    if is_bound(name):
        _check(_libc.umount2(os.fsencode(path), _MNT_DETACH), f"umount {path}")
    path.unlink(missing_ok=True)


def is_bound(name: str) -> bool:
    """Whether a namespace is behind the name, not just an empty file or nothing."""
    try:
        status = os.stat(NAMES / name)
    except FileNotFoundError:
        return False
    return status.st_dev == os.stat(_OWN).st_dev and stat.S_ISREG(status.st_mode)


def prepare_names() -> None:
    """Make /run/netns as `ip netns` does: a mount of its own that other mount namespaces see."""
    NAMES.mkdir(mode=0o755, exist_ok=True)
    try:
        _mount("none", NAMES, _MS_SHARED | _MS_REC)
    except OSError:
        _mount(str(NAMES), NAMES, _MS_BIND | _MS_REC)
        _mount("none", NAMES, _MS_SHARED | _MS_REC)


@contextlib.contextmanager
def _returning() -> Iterator[None]:
    own = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        yield
    finally:
        _enter(own)
        os.close(own)


def _enter(descriptor: int) -> None:
    _check(_libc.setns(descriptor, _CLONE_NEWNET), "setns")


def _mount(source: str, target: Path, flags: int) -> None:
    arguments = (os.fsencode(source), os.fsencode(target), b"none", ctypes.c_ulong(flags), None)
    _check(_libc.mount(*arguments), f"mount {target}")


def _check(status: int, what: str) -> None:
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
