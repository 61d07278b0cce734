"""eBPF without a compiler: an assembler and the bpf() system call. Knows nothing of labs."""

from nic_drivers.bpf.assembler import Assembler, Condition, Operation, Size
from nic_drivers.bpf.objects import (
    ArrayMap,
    BpfError,
    ProgramKind,
    load_program,
)

__all__ = [
    "ArrayMap",
    "Assembler",
    "BpfError",
    "Condition",
    "Operation",
    "ProgramKind",
    "Size",
    "load_program",
]
