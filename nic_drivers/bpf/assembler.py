"""An assembler for eBPF: instructions with labels to bytecode.

Source of all numbers: RFC 9669, BPF Instruction Set Architecture. Registers are numbers: r0 takes
results, r1 to r5 arguments, r6 to r9 survive calls, r10 is the stack's end. All arithmetic is on
64 bits, and unsigned.
"""

import struct
from enum import IntEnum
from typing import Final

__all__ = ["Assembler", "Condition", "Operation", "Size"]


class Size(IntEnum):
    """Width of a load or store."""

    BYTE = 0x10
    HALF = 0x08
    WORD = 0x00
    DOUBLE = 0x18


class Operation(IntEnum):
    """Arithmetic on 64-bit registers, and conditions of jumps."""

    ADD = 0x07
    SUB = 0x17
    MUL = 0x27
    DIV = 0x37
    OR = 0x47
    AND = 0x57
    LSH = 0x67
    RSH = 0x77
    MOV = 0xB7


class Condition(IntEnum):
    """When a jump is taken; unsigned."""

    EQUAL = 0x15
    NOT_EQUAL = 0x55
    ABOVE = 0x25
    AT_LEAST = 0x35
    BELOW = 0xA5
    AT_MOST = 0xB5


_SOURCE_REGISTER: Final = 0x08
_LOAD, _STORE, _STORE_IMMEDIATE = 0x61, 0x63, 0x62
_ATOMIC_DOUBLE, _ATOMIC_ADD, _ATOMIC_COMPARE_EXCHANGE = 0xDB, 0x00, 0xF1
_LOAD_IMMEDIATE, _JUMP, _CALL, _EXIT = 0x18, 0x05, 0x85, 0x95
_MAP_DESCRIPTOR: Final = 1


class Assembler:
    """Collects instructions; `code` resolves the labels."""

    def __init__(self) -> None:
        self._instructions: list[tuple[int, int, int, int | str, int]] = []
        self._labels: dict[str, int] = {}

    def label(self, name: str) -> None:
        """Name the place of the next instruction; each name once."""
        if name in self._labels:
            raise ValueError(f"the label {name} is taken")
        self._labels[name] = len(self._instructions)

    def immediate(self, operation: Operation, register: int, value: int) -> None:
        """Operate on a register with a constant, which is sign-extended from 32 bits."""
        self._add(operation, register, 0, 0, value)

    def registers(self, operation: Operation, register: int, source: int) -> None:
        """Operate on a register with another."""
        self._add(operation | _SOURCE_REGISTER, register, source, 0, 0)

    def constant(self, register: int, value: int) -> None:
        """Set a register to any 64-bit constant."""
        self._wide(register, 0, value)

    def map(self, register: int, descriptor: int) -> None:
        """Set a register to a map, given by its file descriptor."""
        self._wide(register, _MAP_DESCRIPTOR, descriptor)

    def load(self, size: Size, register: int, base: int, offset: int) -> None:
        """Set a register to memory[base + offset]."""
        self._add(_LOAD & ~0x18 | size, register, base, offset, 0)

    def store(self, size: Size, base: int, offset: int, register: int) -> None:
        """Set memory[base + offset] to a register."""
        self._add(_STORE & ~0x18 | size, base, register, offset, 0)

    def store_immediate(self, size: Size, base: int, offset: int, value: int) -> None:
        """Set memory[base + offset] to a constant."""
        self._add(_STORE_IMMEDIATE & ~0x18 | size, base, 0, offset, value)

    def atomic_add(self, base: int, offset: int, register: int) -> None:
        """Add a register to memory[base + offset], 64 bits, as one step."""
        self._add(_ATOMIC_DOUBLE, base, register, offset, _ATOMIC_ADD)

    def compare_exchange(self, base: int, offset: int, register: int) -> None:
        """If memory[base + offset] is r0, make it register; r0 = what it was before."""
        self._add(_ATOMIC_DOUBLE, base, register, offset, _ATOMIC_COMPARE_EXCHANGE)

    def jump(self, label: str) -> None:
        """Go on at a label."""
        self._add(_JUMP, 0, 0, label, 0)

    def jump_immediate(self, condition: Condition, register: int, value: int, label: str) -> None:
        """Go on at a label if a register compares so with a constant."""
        self._add(condition, register, 0, label, value)

    def jump_registers(self, condition: Condition, register: int, other: int, label: str) -> None:
        """Go on at a label if a register compares so with another."""
        self._add(condition | _SOURCE_REGISTER, register, other, label, 0)

    def call(self, helper: int) -> None:
        """Call a function of the kernel; its number is in include/uapi/linux/bpf.h."""
        self._add(_CALL, 0, 0, 0, helper)

    def exit(self) -> None:
        """End with r0."""
        self._add(_EXIT, 0, 0, 0, 0)

    def code(self) -> bytes:
        """The bytecode; raises `KeyError` for a label that stands nowhere."""
        return b"".join(
            self._encoded(place, *instruction)
            for place, instruction in enumerate(self._instructions)
        )

    def _add(self, code: int, register: int, source: int, offset: int | str, value: int) -> None:
        self._instructions.append((code, register, source, offset, value))

    def _wide(self, register: int, source: int, value: int) -> None:
        self._add(_LOAD_IMMEDIATE, register, source, 0, _signed(value & 0xFFFF_FFFF))
        self._add(0, 0, 0, 0, _signed(value >> 32 & 0xFFFF_FFFF))

    def _encoded(
        self, place: int, code: int, register: int, source: int, offset: int | str, value: int
    ) -> bytes:
        if isinstance(offset, str):
            offset = self._labels[offset] - place - 1
        return struct.pack("<BBhi", code, source << 4 | register, offset, value)


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word
