"""`wire`: one Ethernet frame, without FCS, in one UDP datagram on the loopback interface.

The form of QEMU's `-netdev dgram`, so that a virtual machine can be plugged into the virtual
fabric. No privileges. A run uses the native implementation inside of the engine (the wire ends of
`dataplane.WallEmulation`); this one gives the same wire to tools and tests in Python.
"""

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from nic_drivers.interface import (
    Capabilities,
    Counters,
    Driver,
    DriverError,
    InvariantCrc,
    Pacing,
    Timestamps,
)

__all__ = ["CAPABILITIES", "WireDriver", "WireOptions"]

_MAX_FRAME_BYTES: Final = 9216
"""The usual jumbo frame of switches; a datagram could hold 65,507 bytes."""
_MAX_BATCH_FRAMES: Final = 64
_BUFFER_BYTES: Final = 4 << 20

CAPABILITIES: Final = Capabilities(
    max_frame_bytes=_MAX_FRAME_BYTES,
    max_batch_frames=_MAX_BATCH_FRAMES,
    carries_ethernet_header=True,
    carries_transport_header=True,
    carries_ecn=True,
    invariant_crc=InvariantCrc.SENDER,
    pacing=Pacing.SENDER,
    timestamps=Timestamps.NONE,
    is_lossless=False,
    reaches="the other end of the wire, on this host",
)
"""The same on every host: nothing depends on hardware."""


@dataclass(frozen=True, slots=True)
class WireOptions:
    """Where the two ends of a wire are."""

    local: tuple[str, int]
    """Loopback address and UDP port of this end; port 0 lets the system choose."""
    remote: tuple[str, int] | None = None
    """The other end; may be named later with `connect`."""


class WireDriver(Driver):
    """One end of a wire. Frames from anywhere but the other end are dropped and counted."""

    def __init__(self, options: WireOptions) -> None:
        _check_loopback(options.local[0])
        self._remote: tuple[str, int] | None = None
        self._counters = Counters()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
            self._socket.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        try:
            self._socket.bind(options.local)
        except OSError as error:
            self._socket.close()
            host, port = options.local
            raise DriverError(
                f"the wire cannot be opened on {host}:{port}: {error.strerror}; "
                "choose a free port, or 0 to let the system choose"
            ) from error
        if options.remote is not None:
            self.connect(options.remote)

    @property
    def local(self) -> tuple[str, int]:
        """Address and port of this end."""
        host, port = self._socket.getsockname()
        return host, port

    def connect(self, remote: tuple[str, int]) -> None:
        """Name the other end; raises `DriverError` unless it is on loopback."""
        _check_loopback(remote[0])
        self._remote = remote

    def capabilities(self) -> Capabilities:
        """See `Driver.capabilities`."""
        return CAPABILITIES

    def send_batch(self, frames: Sequence[bytes]) -> int:
        """See `Driver.send_batch`."""
        if self._remote is None:
            raise DriverError("the wire has no other end; name one with connect")
        if any(len(frame) > _MAX_FRAME_BYTES for frame in frames):
            raise ValueError(f"a frame is longer than {_MAX_FRAME_BYTES} bytes")
        accepted = 0
        for frame in frames[:_MAX_BATCH_FRAMES]:
            if not self._send(frame, self._remote):
                break
            accepted += 1
        self._counters = replace(
            self._counters,
            sent_frames=self._counters.sent_frames + accepted,
            sent_bytes=self._counters.sent_bytes + sum(map(len, frames[:accepted])),
            rejected_frames=self._counters.rejected_frames + len(frames) - accepted,
        )
        return accepted

    def receive_batch(self, limit: int) -> list[bytes]:
        """See `Driver.receive_batch`."""
        frames: list[bytes] = []
        dropped = 0
        while len(frames) < limit:
            try:
                frame, sender = self._socket.recvfrom(_MAX_FRAME_BYTES + 1)
            except (BlockingIOError, ConnectionRefusedError):
                break
            if sender == self._remote and len(frame) <= _MAX_FRAME_BYTES:
                frames.append(frame)
            else:
                dropped += 1
        self._counters = replace(
            self._counters,
            received_frames=self._counters.received_frames + len(frames),
            received_bytes=self._counters.received_bytes + sum(map(len, frames)),
            dropped_frames=self._counters.dropped_frames + dropped,
        )
        return frames

    def counters(self) -> Counters:
        """See `Driver.counters`."""
        return self._counters

    def close(self) -> None:
        """See `Driver.close`."""
        self._socket.close()

    def _send(self, frame: bytes, remote: tuple[str, int]) -> bool:
        try:
            self._socket.sendto(frame, remote)
        except (BlockingIOError, ConnectionRefusedError):
            return False
        return True


def _check_loopback(host: str) -> None:
    try:
        is_loopback = ipaddress.IPv4Address(host).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback:
        raise DriverError(f"a wire stays on this host: {host!r} is not a loopback address")
