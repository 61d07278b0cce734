"""`verbs`: payloads by an RDMA device, through libibverbs.

An adapter makes its own packets, so a frame of this driver is what of a RoCEv2 packet the ends of a
connection see: WRITE ONLY with immediate data. Its payload and its immediate data travel, as one
WRITE of one packet; everything else of a received frame is made up. A run gives the adapter whole
messages instead (`dataplane.WallEmulation`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import dataplane
from nic_drivers.interface import (
    Capabilities,
    Counters,
    Driver,
    DriverError,
    InvariantCrc,
    Pacing,
    Timestamps,
)

__all__ = ["VerbsDriver", "VerbsEnd", "VerbsOptions"]

_WRITE_ONLY_IMMEDIATE: Final = 0x0B
"""*Source*: IBTA volume 1, table 38."""
_OVERHEAD_BYTES: Final = 14 + 20 + 8 + 12 + 16 + 4 + 4
"""Ethernet, IP, UDP, BTH, RETH, immediate data, ICRC."""
_MAX_BATCH_FRAMES: Final = 64


@dataclass(frozen=True, slots=True)
class VerbsOptions:
    """Which device is opened."""

    address: str
    """IPv4 address of this host that the device has a RoCE v2 GID for."""
    interface: str | None = None
    """Interface of the operating system that the device must be on."""
    mtu_bytes: int = 4096
    """Path MTU: longest payload."""


@dataclass(frozen=True, slots=True)
class VerbsEnd:
    """What the other end must know to connect."""

    address: str
    """IPv4 address."""
    qp: int
    """Queue pair number."""
    memory_address: int
    """Where its memory begins."""
    remote_key: int
    """Key of the memory."""


class VerbsDriver(Driver):
    """One reliable connection of an RDMA device; connect it before the first frame."""

    def __init__(self, options: VerbsOptions) -> None:
        try:
            self._courier = dataplane.Courier(
                options.address, options.interface, mtu_bytes=options.mtu_bytes
            )
        except dataplane.PortError as error:
            raise DriverError(str(error)) from error
        self._local = VerbsEnd(*self._courier.local())
        self._peer: VerbsEnd | None = None
        self._max_payload_bytes = self._courier.max_payload_bytes
        self._counted = Counters()

    @property
    def local(self) -> VerbsEnd:
        """What the other end must know."""
        return self._local

    def connect(self, peer: VerbsEnd) -> None:
        """Connect with the other end; both must before one sends."""
        try:
            self._courier.connect(peer.address, peer.qp, peer.memory_address, peer.remote_key)
        except dataplane.PortError as error:
            raise DriverError(str(error)) from error
        self._peer = peer

    def capabilities(self) -> Capabilities:
        """See `Driver.capabilities`."""
        return Capabilities(
            max_frame_bytes=_OVERHEAD_BYTES + self._max_payload_bytes,
            max_batch_frames=_MAX_BATCH_FRAMES,
            carries_ethernet_header=False,
            carries_transport_header=False,
            carries_ecn=False,
            invariant_crc=InvariantCrc.HARDWARE,
            pacing=Pacing.HARDWARE,
            timestamps=Timestamps.NONE,
            is_lossless=True,
            reaches="the end that it is connected with",
        )

    def send_batch(self, frames: Sequence[bytes]) -> int:
        """See `Driver.send_batch`; raises `ValueError` for what is no WRITE ONLY with immediate.

        Raises `DriverError` unless the connection lives.
        """
        if self._peer is None:
            raise DriverError("the connection has no other end; name one with connect")
        packets = [self._packet(frame) for frame in frames]
        self._check_connection()
        accepted = 0
        for packet in packets:
            if not self._courier.send(packet["payload"], packet["immediate"]):
                break
            accepted += 1
        counted = self._counted
        self._counted = replace(
            counted,
            sent_frames=counted.sent_frames + accepted,
            sent_bytes=counted.sent_bytes + sum(map(len, frames[:accepted])),
            rejected_frames=counted.rejected_frames + len(frames) - accepted,
        )
        return accepted

    def _check_connection(self) -> None:
        """Raise `DriverError` if the device has ended the connection."""
        if reason := self._courier.failure:
            raise DriverError(f"the connection has ended: {reason}; open both ends anew")

    def _packet(self, frame: bytes) -> dict[str, Any]:
        limit = _OVERHEAD_BYTES + self._max_payload_bytes
        if len(frame) > limit:
            raise ValueError(f"a frame is longer than {limit} bytes")
        packet = dataplane.decode_roce(frame)
        if packet.get("opcode") != _WRITE_ONLY_IMMEDIATE:
            raise ValueError("an adapter sends WRITE ONLY with immediate data alone")
        return packet

    def receive_batch(self, limit: int) -> list[bytes]:
        """See `Driver.receive_batch`; headers are made up.

        Raises `DriverError` if the connection has ended and everything that arrived was taken.
        """
        frames: list[bytes] = []
        while len(frames) < limit and (arrived := self._courier.receive()) is not None:
            frames.append(self._frame(*arrived))
        if not frames:
            self._check_connection()
        counted = self._counted
        self._counted = replace(
            counted,
            received_frames=counted.received_frames + len(frames),
            received_bytes=counted.received_bytes + sum(map(len, frames)),
        )
        return frames

    def _frame(self, payload: bytes, immediate: int) -> bytes:
        return dataplane.encode_roce(
            opcode=_WRITE_ONLY_IMMEDIATE,
            source_address=self._local.address if self._peer is None else self._peer.address,
            destination_address=self._local.address,
            length_bytes=len(payload),
            immediate=immediate,
            payload=payload,
        )

    def counters(self) -> Counters:
        """See `Driver.counters`."""
        return self._counted

    def close(self) -> None:
        """See `Driver.close`."""
        self._courier.close()
