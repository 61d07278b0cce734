"""What this machine knows of its labs of namespaces: one file per lab, written before each change.

The file says what may exist and by which token it is known to be ours, so that it can be removed
after any end of the process that made it. The token is the alias of each namespace's loopback
interface, set before the namespace gets its name.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from dataplane.errors import InputError, Problem, RunError
from emulator.namespaces.layout import Layout

__all__ = [
    "LabState",
    "Phase",
    "check_up",
    "digest_of",
    "forget",
    "is_up",
    "locked",
    "new_state",
    "read_all",
    "read_state",
    "write",
]

DIRECTORY: Final = Path("/run/rankwire/labs")
"""State of the machine, by the Filesystem Hierarchy Standard."""
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")

Phase = str
"""`making`, `up` or `removing`."""


@dataclass(frozen=True, slots=True)
class LabState:
    """One lab that is up, or was begun."""

    lab: str
    """Its name."""
    digest: str
    """Of the layout: tells whether a lab file means what is up."""
    token: str
    """Alias of the loopback interface of every namespace of ours."""
    boot: str
    """The kernel's boot id: namespaces do not outlive it."""
    phase: Phase
    namespaces: tuple[str, ...]
    """Names that may exist under /run/netns."""
    map_number: int | None = None
    """Id of the map with the ports' counters."""

    @property
    def is_of_this_boot(self) -> bool:
        """Whether the machine has not been started again since."""
        return self.boot == _boot()


def new_state(layout: Layout) -> LabState:
    """State of a lab about to be made."""
    return LabState(
        lab=layout.lab,
        digest=digest_of(layout),
        token=f"rankwire {layout.lab} {secrets.token_hex(8)}",
        boot=_boot(),
        phase="making",
        namespaces=tuple(node.namespace for node in layout.nodes),
    )


def digest_of(layout: Layout) -> str:
    """Digest of everything that decides what is made."""
    return hashlib.sha256(repr(layout).encode()).hexdigest()


def write(state: LabState, **changes: Any) -> LabState:
    """Write a lab's state, with changes, so that it is on disk whole or not at all."""
    state = replace(state, **changes)
    path = _path(state.lab)
    temporary = path.with_suffix(".new")
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(asdict(state), file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    return state


def forget(lab: str) -> None:
    """Remove a lab's state."""
    _path(lab).unlink(missing_ok=True)


def read_state(lab: str) -> LabState | None:
    """The state of a lab, `None` when there is none; raises `RunError` for a damaged file."""
    path = _path(lab)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        document["namespaces"] = tuple(document["namespaces"])
        return LabState(**document)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise RunError(f"{path} cannot be read: {error}") from error


def is_up(layout: Layout) -> bool:
    """Whether the lab is up, exactly as it is laid out."""
    current = read_state(layout.lab)
    return (
        current is not None
        and current.is_of_this_boot
        and current.phase == "up"
        and current.digest == digest_of(layout)
    )


def check_up(layout: Layout) -> LabState:
    """The state of a lab that is up; raises `InputError` unless it is, as it is laid out."""
    current = read_state(layout.lab)
    if current is None or not is_up(layout):
        remedy = f"bring it up first: rankwire lab up {layout.lab}"
        raise InputError(Problem(f"lab {layout.lab}", "is not up with these settings", remedy))
    return current


def read_all() -> list[LabState]:
    """Every lab that is up or was begun, by name."""
    names = sorted(path.stem for path in DIRECTORY.glob("*.json")) if DIRECTORY.is_dir() else []
    return [state for name in names if (state := read_state(name)) is not None]


@contextlib.contextmanager
def locked(lab: str) -> Iterator[None]:
    """Hold the lab for ourselves; raises `InputError` while another process holds it."""
    try:
        DIRECTORY.mkdir(parents=True, exist_ok=True)
        descriptor = _lock(_lock_path(lab))
    except BlockingIOError:
        what = "is being made or removed by another process"
        raise InputError(Problem(f"lab {lab}", what, "wait until it has ended")) from None
    except OSError as error:
        raise RunError(f"{DIRECTORY} cannot be written: {error.strerror}") from error
    try:
        yield
    finally:
        if not _path(lab).exists():
            _lock_path(lab).unlink(missing_ok=True)
        os.close(descriptor)


def _lock(path: Path) -> int:
    """Lock the file of that name; one that its holder has removed meanwhile is none."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_ino == os.fstat(descriptor).st_ino:
                    return descriptor
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock_path(lab: str) -> Path:
    return _path(lab).with_suffix(".lock")


def _path(lab: str) -> Path:
    return DIRECTORY / f"{lab}.json"


def _boot() -> str:
    return _BOOT_ID.read_text(encoding="ascii").strip()
