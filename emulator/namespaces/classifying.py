"""The part of a port's program that puts packets into the band that is served first.

Source of offsets and numbers: struct __sk_buff and the helpers in include/uapi/linux/bpf.h.
"""

from collections.abc import Sequence
from typing import Final

from nic_drivers.bpf import Assembler, Condition, Operation, Size

__all__ = ["STRICT_CLASS", "classifier_program", "load_type_of_service", "put_first"]

STRICT_CLASS: Final = 0x1_0020
"""Class of the packets that are served first: 1:20."""

_PROTOCOL, _PRIORITY = 16, 32
_LOAD_BYTES: Final = 26
_IPV4_IN_NETWORK_ORDER: Final = 0x0008
_TYPE_OF_SERVICE_OFFSET: Final = 15
_STACK: Final = 10
_SCRATCH: Final = -8


def classifier_program(strict_dscps: Sequence[int]) -> bytes:
    """Bytecode for a port that only classifies, to be attached in direct-action mode."""
    code = Assembler()
    code.registers(Operation.MOV, 6, 1)
    load_type_of_service(code, 7, context=6, otherwise="end")
    put_first(code, strict_dscps, type_of_service=7, context=6, otherwise="end")
    code.label("end")
    code.immediate(Operation.MOV, 0, 0)
    code.exit()
    return code.code()


def load_type_of_service(code: Assembler, register: int, *, context: int, otherwise: str) -> None:
    """Set a register to the IPv4 header's DSCP and ECN; go on at `otherwise` if there is none."""
    code.load(Size.WORD, 1, context, _PROTOCOL)
    code.jump_immediate(Condition.NOT_EQUAL, 1, _IPV4_IN_NETWORK_ORDER, otherwise)
    code.registers(Operation.MOV, 1, context)
    code.immediate(Operation.MOV, 2, _TYPE_OF_SERVICE_OFFSET)
    code.registers(Operation.MOV, 3, _STACK)
    code.immediate(Operation.ADD, 3, _SCRATCH)
    code.immediate(Operation.MOV, 4, 1)
    code.call(_LOAD_BYTES)
    code.jump_immediate(Condition.NOT_EQUAL, 0, 0, otherwise)
    code.load(Size.BYTE, register, _STACK, _SCRATCH)


def put_first(
    code: Assembler,
    strict_dscps: Sequence[int],
    *,
    type_of_service: int,
    context: int,
    otherwise: str,
) -> None:
    """Give packets of these DSCPs the first class; go on at `otherwise` with the others."""
    code.registers(Operation.MOV, 1, type_of_service)
    code.immediate(Operation.RSH, 1, 2)
    for dscp in strict_dscps:
        code.jump_immediate(Condition.EQUAL, 1, dscp, "first")
    code.jump(otherwise)
    code.label("first")
    code.immediate(Operation.MOV, 1, STRICT_CLASS)
    code.store(Size.WORD, context, _PRIORITY, 1)
