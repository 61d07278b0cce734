"""Arrays on the way between controller and agents: a nested dict of numpy columns as one npz.

No pickle, neither written nor read; sizes are checked before anything is unpacked. Scalars and
strings travel as zero-dimensional arrays; keys of nested dicts are joined with a slash.
"""

import io
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from emulator.control.messages import MalformedMessage

__all__ = ["MAX_RECORDS_BYTES", "decode", "encode"]

MAX_RECORDS_BYTES: Final = 4 << 30
"""Largest unpacked size of a job or of one agent's records."""

_MAX_COLUMNS: Final = 100_000

_DAMAGE: Final = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    tokenize.TokenError,
    zipfile.BadZipFile,
    zlib.error,
)
"""What the readers of zip and npy raise for bytes that are neither."""


def encode(tree: Mapping[str, Any], *, compress: bool = False) -> bytes:
    """Return a nested dict of arrays, numbers and strings as npz bytes.

    Raises `ValueError` for anything that would need a pickle.
    """
    buffer = io.BytesIO()
    flat: dict[str, Any] = dict(_flatten(tree, ""))
    save = np.savez_compressed if compress else np.savez
    save(buffer, allow_pickle=False, **flat)
    return buffer.getvalue()


def decode(data: bytes, *, limit_bytes: int = MAX_RECORDS_BYTES) -> dict[str, Any]:
    """Return the nested dict; raises `MalformedMessage` for anything that is not one."""
    try:
        _check_size(data, limit_bytes)
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return _nest({name: archive[name] for name in archive.files})
    except _DAMAGE as error:
        raise MalformedMessage(f"not a set of columns: {error}") from error


def _check_size(data: bytes, limit_bytes: int) -> None:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
    if len(entries) > _MAX_COLUMNS or sum(entry.file_size for entry in entries) > limit_bytes:
        raise MalformedMessage(f"more than {limit_bytes} bytes or {_MAX_COLUMNS} columns")


def _flatten(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _flatten(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", np.asarray(value)


def _nest(flat: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, array in flat.items():
        *parents, leaf = name.split("/")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
            if not isinstance(node, dict):
                raise MalformedMessage(f"{name}: a column and a group of the same name")
        node[leaf] = array.item() if array.ndim == 0 else array
    return tree
