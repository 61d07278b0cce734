"""The program at a port's egress that marks by the ECN profile, on a virtual queue of the port.

The virtual queue is one number: when the port, sending at its rate, would have sent everything that
was given to it. What is left until then is its backlog. Concurrent senders change it by
compare-and-exchange, so that there is no lock. Constants of the port are in its code.

A packet counts with the bytes that it takes on the line: with FCS, preamble and gap.
"""

import struct
from dataclasses import dataclass
from typing import Final

from emulator.lab.effective import EcnProfile
from emulator.namespaces.classifying import load_type_of_service, put_first
from emulator.namespaces.layout import Layout
from nic_drivers.bpf import Assembler, Condition, Operation, Size

__all__ = [
    "BUCKETS",
    "LINE_OVERHEAD_BYTES",
    "VALUE_BYTES",
    "MarkingCounters",
    "MarkingParameters",
    "marking_parameters",
    "marking_program",
    "read_counters",
]

LINE_OVERHEAD_BYTES: Final = 24
"""FCS, preamble, start delimiter and gap of an Ethernet frame. Source: IEEE 802.3."""
BUCKETS: Final = 32
"""Of the histogram of backlogs; the last holds everything beyond."""

_TICKS_PER_NS: Final = 64
"""The virtual queue counts in 1/64 ns: 9 years fit, and a byte at 400 Gb/s is 1.28 ticks."""
_SCALE_BITS: Final = 16
_RETRIES: Final = 8

# Layout of a port's entry: seven numbers, then packets and marks of each bucket.
_FREE_AT, _PACKETS, _CAPABLE, _MARKED, _ALREADY, _DROPPED, _CONTENDED = range(0, 56, 8)
_HISTOGRAM: Final = 64
VALUE_BYTES: Final = _HISTOGRAM + BUCKETS * 16
"""Size of a port's entry in the map."""

# Offsets in struct __sk_buff and numbers of helpers: include/uapi/linux/bpf.h
_WIRE_LENGTH, _SEGMENTS = 160, 164
_MAP_LOOKUP, _TIME_NS, _RANDOM, _SET_CE = 1, 5, 7, 97
_PASS, _DROP = 0, 2

_CONTEXT, _DURATION, _BACKLOG, _ENTRY, _STACK = 6, 7, 8, 9, 10
_TEMPORARY, _ECN = _BACKLOG, _DURATION
"""Second uses of registers, before and after the first."""
# Places on the stack; -8 is the classifier's.
_BUCKET, _IS_FIRST, _SERVICE = -16, -24, -32


@dataclass(frozen=True, slots=True)
class MarkingParameters:
    """A port's constants."""

    slot: int
    """Its entry in the map."""
    rate_bps: int
    buffer_bytes: int
    """A packet that finds more in the virtual queue is dropped."""
    profile: EcnProfile | None
    """`None`: nothing is marked."""
    strict_dscps: tuple[int, ...] = ()
    """DSCPs of packets that wait for no others."""

    def ticks(self, size_bytes: int) -> int:
        """How long the port sends so many bytes."""
        return size_bytes * 8 * 10**9 * _TICKS_PER_NS // self.rate_bps

    @property
    def bucket_bytes(self) -> int:
        """Width of a bucket of backlogs: Kmax, or the buffer, is at four fifths of them."""
        top = self.profile.kmax_bytes if self.profile is not None else self.buffer_bytes
        return max(1, top * 5 // (4 * BUCKETS))


@dataclass(frozen=True, slots=True)
class MarkingCounters:
    """What the program of a port has counted."""

    packets: int
    """Packets that came; a packet that is cut later counts once."""
    capable_packets: int
    """Those that say they can be marked: ECT(0), ECT(1) or CE."""
    marked_packets: int
    """Those that were marked here."""
    marked_before_packets: int
    """Those that would have been marked and were marked before they came."""
    dropped_packets: int
    """Those that found the port's buffer full."""
    contended_packets: int
    """Those that the virtual queue let by uncounted, because others were too fast."""
    bucket_bytes: int
    """Width of one bucket of the histograms."""
    histogram: tuple[int, ...]
    """Capable packets by the backlog that they found."""
    marked_histogram: tuple[int, ...]
    """Those of them that the profile chose, also if they were marked before."""


def marking_parameters(layout: Layout) -> dict[str, MarkingParameters]:
    """`NamespacePort.place` -> parameters of its program, for the ports that have one."""
    if layout.options.marking != "ebpf":
        return {}
    ports = [port for port in layout.ports if port.is_switch]
    return {
        port.place: MarkingParameters(
            slot, port.rate_bps, port.buffer_bytes, port.marking, layout.strict_dscps
        )
        for slot, port in enumerate(ports)
    }


def read_counters(entry: bytes, parameters: MarkingParameters) -> MarkingCounters:
    """The counters in a port's entry of the map."""
    _, packets, capable, marked, already, dropped, contended = struct.unpack_from("=7Q", entry)
    histogram = struct.unpack_from(f"={2 * BUCKETS}Q", entry, _HISTOGRAM)
    return MarkingCounters(
        packets=packets,
        capable_packets=capable,
        marked_packets=marked,
        marked_before_packets=already,
        dropped_packets=dropped,
        contended_packets=contended,
        bucket_bytes=parameters.bucket_bytes,
        histogram=histogram[0::2],
        marked_histogram=histogram[1::2],
    )


def marking_program(parameters: MarkingParameters, map_descriptor: int) -> bytes:
    """The bytecode for one port, to be attached at the egress of clsact in direct-action mode."""
    code = Assembler()
    code.registers(Operation.MOV, _CONTEXT, 1)
    _look_up(code, parameters.slot, map_descriptor)
    _measure(code, parameters)
    _classify(code, parameters)
    _enqueue(code, parameters)
    _choose_bucket(code, parameters)
    _decide(code, parameters)
    _mark(code)
    code.label("pass")
    _return(code, _PASS)
    code.label("drop")
    _count(code, _ENTRY, _DROPPED)
    _return(code, _DROP)
    return code.code()


def _look_up(code: Assembler, slot: int, map_descriptor: int) -> None:
    """r9 = the port's entry."""
    code.store_immediate(Size.WORD, _STACK, -4, slot)
    code.map(1, map_descriptor)
    code.registers(Operation.MOV, 2, _STACK)
    code.immediate(Operation.ADD, 2, -4)
    code.call(_MAP_LOOKUP)
    code.jump_immediate(Condition.EQUAL, 0, 0, "pass")
    code.registers(Operation.MOV, _ENTRY, 0)
    _count(code, _ENTRY, _PACKETS)


def _measure(code: Assembler, parameters: MarkingParameters) -> None:
    """r7 = ticks that the packet takes on the line; one that will be cut, all its parts."""
    code.load(Size.WORD, 7, _CONTEXT, _SEGMENTS)
    code.jump_immediate(Condition.NOT_EQUAL, 7, 0, "cut")
    code.immediate(Operation.MOV, 7, 1)
    code.label("cut")
    code.immediate(Operation.MUL, 7, LINE_OVERHEAD_BYTES)
    code.load(Size.WORD, 1, _CONTEXT, _WIRE_LENGTH)
    code.registers(Operation.ADD, 7, 1)
    code.constant(1, (8 * 10**9 * _TICKS_PER_NS << _SCALE_BITS) // parameters.rate_bps)
    code.registers(Operation.MUL, 7, 1)
    code.immediate(Operation.RSH, 7, _SCALE_BITS)


def _classify(code: Assembler, parameters: MarkingParameters) -> None:
    """On the stack: DSCP and ECN, 0 if it is not IPv4; and whether the packet goes first."""
    code.store_immediate(Size.DOUBLE, _STACK, _IS_FIRST, 0)
    code.immediate(Operation.MOV, _TEMPORARY, 0)
    load_type_of_service(code, _TEMPORARY, context=_CONTEXT, otherwise="classified")
    if parameters.strict_dscps:
        put_first(
            code,
            parameters.strict_dscps,
            type_of_service=_TEMPORARY,
            context=_CONTEXT,
            otherwise="classified",
        )
        code.store_immediate(Size.DOUBLE, _STACK, _IS_FIRST, 1)
    code.label("classified")
    code.store(Size.DOUBLE, _STACK, _SERVICE, _TEMPORARY)


def _enqueue(code: Assembler, parameters: MarkingParameters) -> None:
    """r8 = ticks of backlog that the packet found; it is added, or dropped.

    What goes first takes its time on the line as well, and finds no queue.
    """
    for attempt in range(_RETRIES):
        code.call(_TIME_NS)
        code.registers(Operation.MOV, 1, 0)
        code.immediate(Operation.MUL, 1, _TICKS_PER_NS)
        code.load(Size.DOUBLE, 0, _ENTRY, _FREE_AT)
        code.registers(Operation.MOV, 2, 0)
        code.jump_registers(Condition.AT_LEAST, 2, 1, f"busy{attempt}")
        code.registers(Operation.MOV, 2, 1)
        code.label(f"busy{attempt}")
        code.registers(Operation.MOV, _BACKLOG, 2)
        code.registers(Operation.SUB, _BACKLOG, 1)
        code.load(Size.DOUBLE, 4, _STACK, _IS_FIRST)
        code.jump_immediate(Condition.NOT_EQUAL, 4, 0, f"room{attempt}")
        code.constant(3, parameters.ticks(parameters.buffer_bytes))
        code.jump_registers(Condition.ABOVE, _BACKLOG, 3, "drop")
        code.label(f"room{attempt}")
        code.registers(Operation.ADD, 2, _DURATION)
        code.registers(Operation.MOV, 3, 0)
        code.compare_exchange(_ENTRY, _FREE_AT, 2)
        code.jump_registers(Condition.EQUAL, 0, 3, "queued")
    _count(code, _ENTRY, _CONTENDED)
    code.label("queued")
    code.load(Size.DOUBLE, 1, _STACK, _IS_FIRST)
    code.jump_immediate(Condition.NOT_EQUAL, 1, 0, "pass")
    # From here on r7 is the ECN field.
    code.load(Size.DOUBLE, _ECN, _STACK, _SERVICE)
    code.immediate(Operation.AND, _ECN, 3)
    code.jump_immediate(Condition.EQUAL, _ECN, 0, "pass")
    _count(code, _ENTRY, _CAPABLE)


def _choose_bucket(code: Assembler, parameters: MarkingParameters) -> None:
    """The bucket's address goes to the stack; its packets are counted."""
    code.registers(Operation.MOV, 1, _BACKLOG)
    code.constant(2, max(1, parameters.ticks(parameters.bucket_bytes)))
    code.registers(Operation.DIV, 1, 2)
    code.jump_immediate(Condition.BELOW, 1, BUCKETS, "bucket")
    code.immediate(Operation.MOV, 1, BUCKETS - 1)
    code.label("bucket")
    code.immediate(Operation.MUL, 1, 16)
    code.registers(Operation.MOV, 2, _ENTRY)
    code.registers(Operation.ADD, 2, 1)
    code.store(Size.DOUBLE, _STACK, _BUCKET, 2)
    _count(code, 2, _HISTOGRAM)


def _decide(code: Assembler, parameters: MarkingParameters) -> None:
    """Go on to mark above Kmax, and between Kmin and Kmax by chance; else pass."""
    profile = parameters.profile
    if profile is None:
        code.jump("pass")
        return
    kmin, kmax = parameters.ticks(profile.kmin_bytes), parameters.ticks(profile.kmax_bytes)
    code.constant(1, kmin)
    code.jump_registers(Condition.AT_MOST, _BACKLOG, 1, "pass")
    code.constant(2, kmax)
    code.jump_registers(Condition.ABOVE, _BACKLOG, 2, "mark")
    if kmax == kmin:
        return
    # probability * 2^32 = (backlog - kmin) * (pmax * 2^31) / ((kmax - kmin) / 2), in 64 bits.
    shift = max(0, (kmax - kmin).bit_length() - 32)
    code.registers(Operation.SUB, _BACKLOG, 1)
    code.immediate(Operation.RSH, _BACKLOG, shift)
    code.constant(1, round(profile.pmax_ratio * 2**32) >> 1)
    code.registers(Operation.MUL, _BACKLOG, 1)
    code.constant(1, max(1, (kmax - kmin) >> shift))
    code.registers(Operation.DIV, _BACKLOG, 1)
    code.immediate(Operation.LSH, _BACKLOG, 1)
    code.call(_RANDOM)
    code.jump_registers(Condition.AT_LEAST, 0, _BACKLOG, "pass")


def _mark(code: Assembler) -> None:
    """Set CE, the IP checksum with it; what is CE already is counted apart."""
    code.label("mark")
    code.load(Size.DOUBLE, 2, _STACK, _BUCKET)
    _count(code, 2, _HISTOGRAM + 8)
    code.jump_immediate(Condition.EQUAL, _ECN, 3, "already")
    code.registers(Operation.MOV, 1, _CONTEXT)
    code.call(_SET_CE)
    code.jump_immediate(Condition.EQUAL, 0, 0, "pass")
    _count(code, _ENTRY, _MARKED)
    code.jump("pass")
    code.label("already")
    _count(code, _ENTRY, _ALREADY)


def _count(code: Assembler, base: int, offset: int) -> None:
    code.immediate(Operation.MOV, 1, 1)
    code.atomic_add(base, offset, 1)


def _return(code: Assembler, verdict: int) -> None:
    code.immediate(Operation.MOV, 0, verdict)
    code.exit()
