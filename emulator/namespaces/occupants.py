"""Which processes are inside a lab's namespaces, or have sockets there."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from emulator.namespaces import kernel
from emulator.namespaces.state import LabState

__all__ = ["occupants"]

_INODE_COLUMNS: Final = {"udp": 9, "tcp": 9, "raw": 9, "packet": 8}
"""Files under /proc/net that list sockets, and the column with the inode."""


def occupants(lab: LabState) -> list[tuple[int, str]]:
    """Id and name of each process, by id; without root, of one's own processes alone.

    A process is there by its own namespace, or by a socket that was opened in one. AF_XDP sockets
    are listed nowhere.
    """
    namespaces = set()
    sockets = set()
    for name in lab.namespaces:
        with contextlib.suppress(OSError):
            namespaces.add((kernel.NAMES / name).stat().st_ino)
            with kernel.inside(name):
                sockets |= set(_socket_inodes())
    found = []
    for process in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if process.name.isdigit() and _is_there(process, namespaces, sockets):
                found.append((int(process.name), (process / "comm").read_text().strip()))
    return sorted(found)


def _is_there(process: Path, namespaces: set[int], sockets: set[str]) -> bool:
    if (process / "ns/net").stat().st_ino in namespaces:
        return True
    if not sockets:
        return False
    return any(link in sockets for link in _open_files(process))


def _open_files(process: Path) -> Iterator[str]:
    for entry in (process / "fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            yield os.readlink(entry)


def _socket_inodes() -> Iterator[str]:
    """`socket:[N]` of every socket in the calling thread's namespace."""
    for name, column in _INODE_COLUMNS.items():
        lines = Path(f"/proc/thread-self/net/{name}").read_text(encoding="ascii").splitlines()
        for line in lines[1:]:
            yield f"socket:[{line.split()[column]}]"
