"""Programs and maps in the kernel, by the bpf() system call.

Source of all numbers and layouts: include/uapi/linux/bpf.h. A program or map lives as long as
somebody refers to it: a descriptor of ours, or what the program is attached to.
"""

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Callable
from enum import IntEnum
from typing import Final, Self

from dataplane.errors import RunError

__all__ = ["ArrayMap", "BpfError", "ProgramKind", "load_program"]

_SYSTEM_CALLS: Final = {"x86_64": 321, "aarch64": 280, "riscv64": 280, "ppc64le": 361, "s390x": 351}
_MAP_CREATE, _MAP_LOOKUP, _MAP_UPDATE, _PROGRAM_LOAD = 0, 1, 2, 5
_MAP_BY_ID, _INFORMATION = 14, 15
_ARRAY: Final = 2
_LOG_BYTES: Final = 1 << 16
_LICENCE: Final = b"Apache-2.0"


class BpfError(RunError):
    """The kernel refused a program or map."""


class ProgramKind(IntEnum):
    """Where a program may be attached."""

    TRAFFIC_CLASSIFIER = 3
    XDP = 6


class ArrayMap:
    """An array of values of one size; closing it leaves it to the programs that use it."""

    def __init__(self, descriptor: int, value_bytes: int, entries: int) -> None:
        self.descriptor = descriptor
        self.value_bytes = value_bytes
        self.entries = entries

    @classmethod
    def create(cls, name: str, value_bytes: int, entries: int) -> Self:
        """Make one, filled with zeros; the name has up to 15 letters, digits and underlines."""
        attributes = struct.pack(
            "=IIIIIII16s", _ARRAY, 4, value_bytes, entries, 0, 0, 0, name.encode()[:15]
        )
        return cls(_bpf(_MAP_CREATE, attributes, "make a map"), value_bytes, entries)

    @classmethod
    def open(cls, number: int, value_bytes: int, entries: int) -> Self:
        """Open one by its id; raises `BpfError` when it is gone."""
        attributes = struct.pack("=III", number, 0, 0)
        return cls(_bpf(_MAP_BY_ID, attributes, f"open the map {number}"), value_bytes, entries)

    @property
    def number(self) -> int:
        """The kernel's id of the map."""
        information = ctypes.create_string_buffer(80)
        attributes = struct.pack(
            "=IIQ", self.descriptor, len(information), ctypes.addressof(information)
        )
        _bpf(_INFORMATION, attributes, "look at a map")
        number: int = struct.unpack_from("=II", information.raw)[1]
        return number

    def read(self, entry: int) -> bytes:
        """One value."""
        value = ctypes.create_string_buffer(self.value_bytes)
        self._element(_MAP_LOOKUP, entry, value, "read a map")
        return value.raw

    def write(self, entry: int, value: bytes) -> None:
        """Replace one value."""
        buffer = ctypes.create_string_buffer(value, self.value_bytes)
        self._element(_MAP_UPDATE, entry, buffer, "write a map")

    def close(self) -> None:
        """Let go of it; a second call has no effect."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def __enter__(self) -> Self:
        """Return the map."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        self.close()

    def _element(
        self, command: int, entry: int, value: "ctypes.Array[ctypes.c_char]", what: str
    ) -> None:
        key = ctypes.c_uint32(entry)
        attributes = struct.pack(
            "=IxxxxQQQ", self.descriptor, ctypes.addressof(key), ctypes.addressof(value), 0
        )
        _bpf(command, attributes, what)


def load_program(kind: ProgramKind, name: str, code: bytes) -> int:
    """Load bytecode and return its file descriptor; the verifier's words are in the error."""
    instructions = ctypes.create_string_buffer(code, len(code))
    licence = ctypes.create_string_buffer(_LICENCE)
    log = ctypes.create_string_buffer(_LOG_BYTES)

    def attributes(level: int) -> bytes:
        return struct.pack(
            "=IIQQIIQII16s",
            kind,
            len(code) // 8,
            ctypes.addressof(instructions),
            ctypes.addressof(licence),
            level,
            _LOG_BYTES if level else 0,
            ctypes.addressof(log) if level else 0,
            0,
            0,
            name.encode()[:15],
        )

    what = f"load the program {name}"
    try:
        return _bpf(_PROGRAM_LOAD, attributes(0), what)
    except BpfError:
        return _bpf(_PROGRAM_LOAD, attributes(1), what, lambda: _last_line(log.value))


def _last_line(log: bytes) -> str:
    lines = [line for line in log.decode(errors="replace").splitlines() if line]
    return (
        lines[-2]
        if len(lines) > 1 and lines[-1].startswith("processed ")
        else lines[-1]
        if lines
        else ""
    )


def _bpf(
    command: int, attributes: bytes, what: str, explain: Callable[[], str] | None = None
) -> int:
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None:
        raise BpfError(f"eBPF cannot be used on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, max(len(attributes), 128))
    result: int = libc.syscall(number, command, buffer, len(buffer))
    if result < 0:
        code = ctypes.get_errno()
        reason = os.strerror(code)
        if code in {errno.EPERM, errno.EACCES} and explain is None:
            reason += "; it needs root"
        words = explain() if explain is not None else ""
        raise BpfError(f"the kernel refused to {what}: {reason}{': ' if words else ''}{words}")
    return result
