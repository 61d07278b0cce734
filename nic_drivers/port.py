"""The drivers whose ports are native, on interfaces of the system: `udp`, `af_packet`, `af_xdp`.

A run uses the same ports inside of the engine (`dataplane.WallEmulation` with `ports_json`); these
classes give them to tools and tests in Python. Frames are RoCEv2: IPv4, UDP port 4791, an ICRC.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

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

__all__ = ["AfPacketDriver", "AfXdpDriver", "PortDriver", "PortOptions", "UdpDriver"]

_MAX_BATCH_FRAMES: Final = 64


@dataclass(frozen=True, slots=True)
class PortOptions:
    """Where a port is, and what must be reachable from it."""

    address: str
    """IPv4 address of this host that frames come from and go to."""
    interface: str | None = None
    """Interface of the operating system; None leaves the choice to the routes."""
    namespace: str | None = None
    """Network namespace by name, as `ip netns list` shows it; None is the process's."""
    source_ports: tuple[int, ...] = (0xC000,)
    """UDP source ports that sent frames may have. `udp` opens a socket for each."""
    destinations: tuple[str, ...] = ()
    """IPv4 addresses that must have a route."""
    ip_packet_bytes: int = 0
    """Longest IP packet that must pass to each of them."""
    max_burst_packets: int = 64
    """Packets that are given to the kernel as one, at most; a switch may mark or drop those
    together."""
    xdp_mode: Literal["any", "native", "generic"] = "any"
    """Where the program of `af_xdp` runs: natively if the interface's driver can, in that driver,
    or in the kernel's common receive path."""
    busy_poll_us: int = 0
    """Microseconds that `af_xdp` polls the adapter in a call; 0 waits for interrupts."""


class PortDriver(Driver):
    """An open port of a native driver."""

    _NAME: str
    _REACHES: str

    def __init__(self, options: PortOptions) -> None:
        try:
            self._port = dataplane.Port(json.dumps({"driver": self._NAME} | asdict(options)))
        except dataplane.PortError as error:
            raise DriverError(str(error)) from error
        can = self._port.capabilities()
        self._capabilities = Capabilities(
            max_frame_bytes=can["max_frame_bytes"],
            max_batch_frames=_MAX_BATCH_FRAMES,
            carries_ethernet_header=can["carries_ethernet_header"],
            carries_transport_header=True,
            carries_ecn=can["has_ecn"],
            invariant_crc=InvariantCrc(can["invariant_crc"]),
            pacing=Pacing.SENDER,
            timestamps=Timestamps(can["timestamps"]),
            is_lossless=False,
            reaches=self._REACHES,
        )
        self._rejected_frames = 0
        self._counted = Counters()
        self._last: dict[str, int] | None = None

    def capabilities(self) -> Capabilities:
        """See `Driver.capabilities`."""
        return self._capabilities

    def offloads(self) -> dict[str, Any]:
        """Return what the kernel does for the port: everything that was probed."""
        return self._port.capabilities()

    def send_batch(self, frames: Sequence[bytes]) -> int:
        """See `Driver.send_batch`."""
        limit = self._capabilities.max_frame_bytes
        if any(len(frame) > limit for frame in frames):
            raise ValueError(f"a frame is longer than {limit} bytes")
        accepted = self._port.send(frames[:_MAX_BATCH_FRAMES])
        self._rejected_frames += len(frames) - accepted
        self._counted = replace(
            self._counted,
            sent_frames=self._counted.sent_frames + accepted,
            sent_bytes=self._counted.sent_bytes + sum(map(len, frames[:accepted])),
        )
        return accepted

    def receive_batch(self, limit: int) -> list[bytes]:
        """See `Driver.receive_batch`."""
        return [frame for frame, _ in self.receive_timed(limit)]

    def receive_timed(self, limit: int) -> list[tuple[bytes, int | None]]:
        """Return frames as `receive_batch` does, each with the time of its arrival.

        CLOCK_MONOTONIC in nanoseconds, taken where `Capabilities.timestamps` says; None for a frame
        of which nobody took it.
        """
        frames = self._port.receive(limit)
        self._counted = replace(
            self._counted,
            received_frames=self._counted.received_frames + len(frames),
            received_bytes=self._counted.received_bytes + sum(len(frame) for frame, _ in frames),
        )
        return frames

    def counters(self) -> Counters:
        """See `Driver.counters`."""
        return replace(
            self._counted,
            rejected_frames=self._rejected_frames,
            dropped_frames=self.native_counters()["misaddressed"],
        )

    def native_counters(self) -> dict[str, int]:
        """Return what the port counted below: frames, bytes, bursts, errors, overflows."""
        if self._last is not None:
            return self._last
        return self._port.counters()

    def close(self) -> None:
        """See `Driver.close`; the counters stay."""
        if self._last is None:
            self._last = self._port.counters()
            self._port.close()


class UdpDriver(PortDriver):
    """`udp`: UDP sockets of the kernel, with segmentation offload and ECN.

    The kernel chooses the IP identification of a frame, so the ICRC is put right for it; MAC
    addresses, time to live and checksums are the kernel's own. Received frames have zeros for MAC
    addresses, and the identification is a guess.
    """

    _NAME = "udp"
    _REACHES = "every host that has a route"


class AfPacketDriver(PortDriver):
    """`af_packet`: whole frames on a packet socket of one interface, with segmentation offload.

    MAC addresses are those of the interface and of the route's next hop, the IP identification
    counts within a burst, and the ICRC is put right for it. Destinations have to be named.
    """

    _NAME = "af_packet"
    _REACHES = "every destination that was named, by one interface"


class AfXdpDriver(PortDriver):
    """`af_xdp`: whole frames in memory shared with the kernel, past most of its network stack.

    Headers as with `af_packet`; no segmentation offload. Every queue of the interface is served. A
    program on the interface picks the frames and takes the time; it goes when the driver is closed.
    """

    _NAME = "af_xdp"
    _REACHES = "every destination that was named, by one interface"
