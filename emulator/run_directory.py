"""Where the records of one run go: a directory of its own, made before anything is started."""

import contextlib
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from dataplane.errors import InputError, Problem, RunError

__all__ = ["make_run_directory", "writing"]

_LEAST_FREE_BYTES = 64 * 2**20


def make_run_directory(out: str | None, lab: str, command: str) -> Path:
    """Make the directory for a run; by default runs/TIME-LAB-COMMAND under the current one.

    Raises `InputError` when it exists with something in it, can't be made, or the disk is full.
    """
    path = Path(out) if out is not None else _default(lab, command)
    try:
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            remedy = "give another directory with --out, or remove this one"
            raise InputError(Problem(str(path), "exists and is not an empty directory", remedy))
        path.mkdir(parents=True, exist_ok=True)
        _probe(path)
        free = shutil.disk_usage(path).free
    except OSError as error:
        what = f"can't be written: {error.strerror or error}"
        remedy = "give a writable directory with --out"
        raise InputError(Problem(str(path), what, remedy)) from error
    if free < _LEAST_FREE_BYTES:
        what = f"is on a disk with {free // 2**20} MiB left"
        raise InputError(Problem(str(path), what, "free some space, or give another --out"))
    return path


@contextlib.contextmanager
def writing(directory: Path) -> Iterator[None]:
    """Turn a full disk or a lost permission while records are written into a `RunError`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise RunError(
            f"{directory}: records can't be written: {reason}; free some space"
        ) from error


def _default(lab: str, command: str) -> Path:
    stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    base = Path("runs") / f"{stamp}-{lab}-{command}"
    path, number = base, 1
    while path.exists():
        number += 1
        path = base.with_name(f"{base.name}-{number}")
    return path


def _probe(path: Path) -> None:
    """Write and remove a file: permission bits don't tell of a read-only mount."""
    probe = path / ".probe"
    probe.write_bytes(b"")
    probe.unlink()
