"""The wire between our endpoint and the guest, and what can go wrong on it.

Frames that carry requests or READ responses are counted from 0 in each direction; faults are drawn
per frame from a seed, or asked for by number. Acknowledgements suffer the drawn ones only.
"""

from __future__ import annotations

import random
import select
import socket
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

import dataplane

ETHER_TYPE_IPV4 = b"\x08\x00"
OPCODE_OFFSET = 14 + 20 + 8
ACKNOWLEDGE = 0x11
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


@dataclass
class Direction:
    """Frames one way.

    `probabilities` hold for every frame, `chosen` for data frames by number: `{2: Fault.LOSE}`
    loses the third. An overtaken frame is held until three others have gone by.
    """

    seed: int = 0
    probabilities: Mapping[Fault, float] = field(default_factory=dict)
    chosen: Mapping[int, Fault] = field(default_factory=dict)
    data_frames: int = 0
    opcodes: Counter[int] = field(default_factory=Counter)
    faults: Counter[Fault] = field(default_factory=Counter)
    _held: list[tuple[int, int, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)  # noqa: S311 - faults, not secrets

    def carry(self, now_ps: int, frames: Sequence[bytes]) -> list[bytes]:
        """Return the frames that come out when `frames` go in, those held before included."""
        out: list[bytes] = []
        for frame in frames:
            out += self._suffer(now_ps, frame)
        return out + self._release(now_ps, len(frames))

    def _suffer(self, now_ps: int, frame: bytes) -> list[bytes]:
        """Return what becomes of one frame."""
        if frame[12:14] != ETHER_TYPE_IPV4:
            return [frame]
        fault = self._fault(frame[OPCODE_OFFSET])
        if fault is not None:
            self.faults[fault] += 1
        match fault:
            case Fault.LOSE:
                return []
            case Fault.DUPLICATE:
                return [frame, frame]
            case Fault.CORRUPT:
                return [frame[:-1] + bytes([frame[-1] ^ 0x10])]
            case Fault.OVERTAKE:
                self._held.append((3, now_ps + HOLD_PS, frame))
                return []
        return [frame]

    def _fault(self, opcode: int) -> Fault | None:
        """Draw or look up the fault of a frame with that opcode."""
        self.opcodes[opcode] += 1
        drawn = self._random.random()
        for fault, probability in self.probabilities.items():
            drawn -= probability
            if drawn < 0:
                return fault
        if opcode == ACKNOWLEDGE:
            return None
        self.data_frames += 1
        return self.chosen.get(self.data_frames - 1)

    def _release(self, now_ps: int, passed: int) -> list[bytes]:
        """Let go what was overtaken often or held for long."""
        held = [(left - passed, end_ps, frame) for left, end_ps, frame in self._held]
        self._held = [entry for entry in held if entry[0] > 0 and entry[1] > now_ps]
        return [frame for left, end_ps, frame in held if left <= 0 or end_ps <= now_ps]


@dataclass
class Wire:
    """The wire in real time, from UDP `socket` to the guest's `guest_port` on loopback."""

    socket: socket.socket
    guest_port: int
    endpoint: dataplane.Endpoint
    to_guest: Direction = field(default_factory=Direction)
    to_us: Direction = field(default_factory=Direction)
    _next_burst_ps: int = 0

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
