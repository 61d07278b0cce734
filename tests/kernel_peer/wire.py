"""The wire between our endpoint and the guest, and what can go wrong on it.

Faults are drawn for each frame from a seed, or asked for by number. Everything that went in and
came out is counted, so that both ends' counters can be held against it.
"""

from __future__ import annotations

import random
import select
import socket
import struct
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from pathlib import Path

import dataplane

ETHER_TYPE_IPV4 = b"\x08\x00"
IP = slice(14, 34)
IP_TRAFFIC_CLASS = 15
IP_CHECKSUM = slice(24, 26)
UDP_SOURCE_PORT = slice(34, 36)
UDP_CHECKSUM = slice(40, 42)
BTH_OPCODE = 42
BTH_ACK_REQUEST = 50
BTH_PSN = slice(51, 54)
AETH_SYNDROME = 54
ACKNOWLEDGE = 0x11
NAK_SEQUENCE_ERROR = 0x60
# A frame that is overtaken is let go at last after so long.
HOLD_PS = 20_000_000_000
# What leaves at once and how often: the buffer of the guest's socket holds some 24 long frames, and
# READ responses know no window.
BURST_FRAMES = 8
BURST_INTERVAL_PS = 1_000_000_000


class Fault(Enum):
    """What may happen to a frame."""

    LOSE = auto()
    DUPLICATE = auto()
    CORRUPT = auto()
    OVERTAKE = auto()
    MARK = auto()


def marked(frame: bytes) -> bytes:
    """Return the frame as a router passes it on that marks congestion."""
    out = bytearray(frame)
    out[IP_TRAFFIC_CLASS] |= 0b11
    out[IP_CHECKSUM] = bytes(2)
    total = sum(struct.unpack("!10H", out[IP]))
    total = (total & 0xFFFF) + (total >> 16)
    total = (total & 0xFFFF) + (total >> 16)
    out[IP_CHECKSUM] = struct.pack("!H", ~total & 0xFFFF)
    return bytes(out)


@dataclass
class Direction:
    """Frames one way.

    `probabilities` hold for every frame. `chosen` are faults of data frames (requests and READ
    responses) by number, `chosen_replies` of the others: `{2: Fault.LOSE}` loses the third. An
    overtaken frame is held until three others have gone by.
    """

    seed: int = 0
    probabilities: Mapping[Fault, float] = field(default_factory=dict)
    chosen: Mapping[int, Fault] = field(default_factory=dict)
    chosen_replies: Mapping[int, Fault] = field(default_factory=dict)
    # What went in: headers, opcodes, the packet sequence numbers of data frames, NAKs for sequence
    # errors.
    heads: list[bytes] = field(default_factory=list)
    opcodes: Counter[int] = field(default_factory=Counter)
    psns: list[int] = field(default_factory=list)
    naks: int = 0
    # What happened, and how many frames came out.
    faults: Counter[Fault] = field(default_factory=Counter)
    delivered: int = 0
    _held: list[tuple[int, int, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - faults, not secrets

    def carry(self, now_ps: int, frames: Sequence[bytes]) -> list[bytes]:
        """Return the frames that come out when `frames` go in, those held before included."""
        out: list[bytes] = []
        for frame in frames:
            if frame[12:14] == ETHER_TYPE_IPV4:
                self._held = [(left - 1, end_ps, held) for left, end_ps, held in self._held]
                out += self._suffer(now_ps, frame)
                out += self._released(now_ps)
        out += self._released(now_ps)
        self.delivered += len(out)
        return out

    def _suffer(self, now_ps: int, frame: bytes) -> list[bytes]:
        """Return what becomes of one frame."""
        fault = self._fault(frame)
        if fault is None:
            return [frame]
        self.faults[fault] += 1
        if fault is Fault.OVERTAKE:
            self._held.append((3, now_ps + HOLD_PS, frame))
        return {
            Fault.LOSE: [],
            Fault.DUPLICATE: [frame, frame],
            Fault.CORRUPT: [frame[:-1] + bytes([frame[-1] ^ 0x10])],
            Fault.OVERTAKE: [],
            Fault.MARK: [marked(frame)],
        }[fault]

    def _fault(self, frame: bytes) -> Fault | None:
        """Count a frame, and look up or draw its fault."""
        opcode = frame[BTH_OPCODE]
        self.heads.append(frame[: AETH_SYNDROME + 4])
        self.opcodes[opcode] += 1
        if opcode == ACKNOWLEDGE:
            self.naks += frame[AETH_SYNDROME] == NAK_SEQUENCE_ERROR
            chosen = self.chosen_replies.get(self.opcodes[opcode] - 1)
        else:
            self.psns.append(int.from_bytes(frame[BTH_PSN]))
            chosen = self.chosen.get(len(self.psns) - 1)
        return chosen or self._drawn()

    def _drawn(self) -> Fault | None:
        """Draw a fault."""
        drawn = self._random.random()
        for fault, probability in self.probabilities.items():
            drawn -= probability
            if drawn < 0:
                return fault
        return None

    def _released(self, now_ps: int) -> list[bytes]:
        """Let go what was overtaken often or held for long."""
        free = [entry for entry in self._held if entry[0] <= 0 or entry[1] <= now_ps]
        self._held = [entry for entry in self._held if entry not in free]
        return [frame for _, _, frame in free]


def socket_drops(port: int) -> int:
    """Datagrams that the kernel dropped because the socket at UDP `port` was full."""
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        fields = line.split()
        if int(fields[1].partition(":")[2], 16) == port:
            return int(fields[-1])
    return 0


@dataclass
class Wire:
    """The wire in real time, from UDP `socket` to the guest's `guest_port` on loopback."""

    socket: socket.socket
    guest_port: int
    endpoint: dataplane.Endpoint
    to_guest: Direction = field(default_factory=Direction)
    to_us: Direction = field(default_factory=Direction)
    _next_burst_ps: int = 0

    def drops(self) -> tuple[int, int]:
        """Frames lost beside the chosen faults so far: on the way to the guest, and to us."""
        return socket_drops(self.guest_port), socket_drops(self.socket.getsockname()[1])

    def turn(self, also_wait_on: int, wait_s: float = 0.001) -> None:
        """Carry what there is; wait a little for more, or for the descriptor `also_wait_on`."""
        now_ps = time.monotonic_ns() * 1000
        for frame in self.to_us.carry(now_ps, self._received()):
            self.endpoint.handle_frame(now_ps, frame)
        due_ps = self.endpoint.poll_timeout()
        if due_ps is not None and due_ps <= now_ps:
            self.endpoint.handle_timeout(now_ps)
        if not self._send(now_ps):
            select.select([self.socket, also_wait_on], [], [], wait_s)

    def _send(self, now_ps: int) -> bool:
        """Send what may leave now; return whether there was anything."""
        frames: list[bytes] = []
        if now_ps >= self._next_burst_ps:
            frames = self.endpoint.poll_frames(now_ps, BURST_FRAMES)
            self._next_burst_ps = now_ps + BURST_INTERVAL_PS if frames else 0
        frames = self.to_guest.carry(now_ps, frames)
        for frame in frames:
            self.socket.sendto(frame, ("127.0.0.1", self.guest_port))
        return bool(frames)

    def _received(self) -> list[bytes]:
        """Return the frames that have come from the guest."""
        frames = []
        while len(frames) < 64:
            try:
                frames.append(self.socket.recv(65536))
            except BlockingIOError:
                break
        return frames
