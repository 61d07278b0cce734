"""The contract of every driver: open, capabilities, send a batch, receive a batch, counters.

The field documentation of `Capabilities` defines the terms; every driver and every user of one
means the same by them. Calls never block and never raise for a full queue: the accepted count says
how far a batch got.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self

from dataplane.errors import RunError

__all__ = [
    "Capabilities",
    "Counters",
    "Driver",
    "DriverError",
    "InvariantCrc",
    "Pacing",
    "Timestamps",
]


class DriverError(RunError):
    """A driver cannot do what is asked; the message says what to load, grant or install."""


class InvariantCrc(StrEnum):
    """Who computes the RoCEv2 ICRC of a sent frame."""

    SENDER = "sender"
    """The frame arrives as it was given: the caller computes it."""
    HARDWARE = "hardware"
    """The adapter computes it; the caller's value is ignored."""


class Pacing(StrEnum):
    """Who spaces frames in time."""

    SENDER = "sender"
    """A frame leaves when it is given: the caller waits."""
    HARDWARE = "hardware"
    """The adapter spaces them by its own congestion control."""


class Timestamps(StrEnum):
    """Where the time of an arrival is taken."""

    NONE = "none"
    """Nowhere: the caller knows when it asked."""
    KERNEL = "kernel"
    """In the kernel's receive path."""
    HARDWARE = "hardware"
    """In the adapter."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an open driver can do; probed when it is opened, never guessed."""

    max_frame_bytes: int
    """Largest frame that can be sent or received: from the destination MAC address to the end of
    the payload, without FCS, preamble and gap. Not the IP MTU (14 or 18 bytes less) and not the
    RoCEv2 path MTU (payload of one packet)."""
    max_batch_frames: int
    """Largest batch that is worth giving in one call; longer ones are legal and cut."""
    carries_ethernet_header: bool
    """The receiver sees the Ethernet header as it was sent. False where a router or the kernel
    builds its own."""
    carries_transport_header: bool
    """The receiver sees the packet as it was sent, but for what routers and the kernel change.
    False where an adapter makes its own packets: payload and immediate data alone arrive."""
    carries_ecn: bool
    """The ECN codepoint of a sent IP header reaches the receiver, unless the network marks it."""
    invariant_crc: InvariantCrc
    """Who computes the ICRC."""
    pacing: Pacing
    """Who spaces frames."""
    timestamps: Timestamps
    """Kind of arrival times."""
    is_lossless: bool
    """A frame that was accepted can only be lost in the network, never between the driver and it.
    False where a receive buffer may overflow unseen by the sender."""
    reaches: str
    """Which destinations can be reached, in words."""


@dataclass(frozen=True, slots=True)
class Counters:
    """Totals of one open driver since it was opened."""

    sent_frames: int = 0
    """Frames that were accepted."""
    sent_bytes: int = 0
    """Their bytes, counted as in `Capabilities.max_frame_bytes`."""
    rejected_frames: int = 0
    """Frames that were given and not accepted, each time that they were given."""
    received_frames: int = 0
    """Frames that were handed out."""
    received_bytes: int = 0
    """Their bytes."""
    dropped_frames: int = 0
    """Frames that arrived and were not handed out: too long, or from somewhere else."""


class Driver(Protocol):
    """An open driver; a context manager that closes it."""

    def capabilities(self) -> Capabilities:
        """Return what it can do; constant while it is open."""

    def send_batch(self, frames: Sequence[bytes]) -> int:
        """Send frames in order and return how many were accepted: a prefix of the batch.

        Never blocks. Raises `ValueError` for a frame above `max_frame_bytes`, with nothing sent.
        """

    def receive_batch(self, limit: int) -> list[bytes]:
        """Return up to `limit` frames that have arrived, in order of arrival; never blocks."""

    def counters(self) -> Counters:
        """Return the totals so far."""

    def close(self) -> None:
        """Give back what was opened; a second call has no effect."""

    def __enter__(self) -> Self:
        """Return the driver."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close it."""
        self.close()
