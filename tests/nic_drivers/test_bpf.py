"""The assembler writes RFC 9669's bytes, and the kernel takes them or says why not."""

import os
import struct
from pathlib import Path

import pytest

from nic_drivers.bpf import (
    ArrayMap,
    Assembler,
    BpfError,
    Condition,
    Operation,
    ProgramKind,
    Size,
    load_program,
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="loading eBPF programs needs root")


def assembled(*lines: str) -> bytes:
    """Bytes of instructions written as `opcode registers offset immediate`."""
    return b"".join(bytes.fromhex(line) for line in lines)


def test_instructions_are_the_standards_bytes() -> None:
    """Opcode, source and destination, offset, immediate: written out by hand from the RFC."""
    code = Assembler()
    code.immediate(Operation.MOV, 0, 2)
    code.registers(Operation.MOV, 6, 1)
    code.load(Size.WORD, 7, 6, 160)
    code.store_immediate(Size.WORD, 10, -4, 3)
    code.store(Size.DOUBLE, 10, -16, 2)
    code.atomic_add(9, 8, 1)
    code.compare_exchange(9, 0, 2)
    code.constant(1, 0x1_8000_0000)
    code.call(5)
    code.exit()
    assert code.code() == assembled(
        "b700000002000000",
        "bf16000000000000",
        "6167a00000000000",
        "620afcff03000000",
        "7b2af0ff00000000",
        "db19080000000000",
        "db290000f1000000",
        "1801000000000080",
        "0000000001000000",
        "8500000005000000",
        "9500000000000000",
    )


def test_a_jump_counts_from_the_next_instruction() -> None:
    code = Assembler()
    code.jump_immediate(Condition.EQUAL, 0, 0, "end")
    code.jump_registers(Condition.ABOVE, 1, 2, "end")
    code.label("end")
    code.jump("end")
    offsets = [struct.unpack_from("<h", code.code(), 8 * place + 2)[0] for place in range(3)]
    assert offsets == [1, 0, -1]


def test_a_label_stands_once() -> None:
    code = Assembler()
    code.label("here")
    with pytest.raises(ValueError, match="here is taken"):
        code.label("here")
    code.jump("nowhere")
    with pytest.raises(KeyError):
        code.code()


@needs_root
@pytest.mark.privileged
def test_a_program_that_the_kernel_refuses_is_an_error_with_the_verifiers_words() -> None:
    code = Assembler()
    code.exit()
    with pytest.raises(BpfError, match="R0 !read_ok"):
        load_program(ProgramKind.TRAFFIC_CLASSIFIER, "nothing", code.code())


@needs_root
@pytest.mark.privileged
def test_a_map_keeps_values_and_is_found_by_its_number() -> None:
    with ArrayMap.create("test", 16, 4) as first:
        first.write(3, b"0123456789abcdef")
        with ArrayMap.open(first.number, 16, 4) as second:
            assert second.read(3) == b"0123456789abcdef"
            assert second.read(0) == bytes(16)
        number = first.number
    with pytest.raises(BpfError, match=f"open the map {number}"):
        ArrayMap.open(number, 16, 4)


@needs_root
@pytest.mark.privileged
def test_nothing_is_left_open() -> None:
    before = len(list(Path("/proc/self/fd").iterdir()))
    code = Assembler()
    code.immediate(Operation.MOV, 0, 0)
    code.exit()
    os.close(load_program(ProgramKind.XDP, "drop", code.code()))
    ArrayMap.create("test", 8, 1).close()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
