"""The traffic classes of a lab file: how each kind of packet is tagged, queued and controlled.

Which messages a class carries is decided by `traffic_profiles.traffic_classes`; the resolution
of what is left out is in `emulator.lab.effective`.
"""

from typing import Annotated

from pydantic import Field

from emulator.lab.base import LabPart
from emulator.lab.congestion import CongestionControl

__all__ = [
    "AcknowledgementClass",
    "CnpClass",
    "DataClass",
    "FurtherClass",
    "TrafficClass",
    "TrafficClasses",
]

_Priority = Annotated[int, Field(ge=0, le=7)]
_Dscp = Annotated[int, Field(ge=0, le=63)]
_Bytes = Annotated[int, Field(ge=0)]


class TrafficClass(LabPart):
    """How one kind of packet is tagged and queued."""

    dscp: _Dscp
    """Differentiated services codepoint; the switches take the priority from it."""
    priority: _Priority
    """Priority in every queue."""


class DataClass(TrafficClass):
    """Data packets that no further class takes.

    Source: DSCP 26 and priority 3, the adapter vendors' RoCE defaults.
    """

    dscp: _Dscp = 26
    """Differentiated services codepoint."""
    priority: _Priority = 3
    """Priority in every queue."""
    congestion_control: CongestionControl | None = None
    """The senders' algorithm; left out, that of the lab."""


class AcknowledgementClass(TrafficClass):
    """ACK and NAK of the data class; those of a further class have its tags."""

    dscp: _Dscp = 26
    """Differentiated services codepoint."""
    priority: _Priority = 3
    """Priority in every queue."""
    ecn_capable: bool | None = None
    """They carry ECT(0), and are marked like data. Left out, only where the data packets do and
    their queue drops what is not ECN-capable (`drops_not_ect`): adapters have one traffic class for
    a connection, so theirs would not be lost there. Holds for the further classes as well."""


class CnpClass(TrafficClass):
    """Congestion notification packets. Source: mlx5 cnp_dscp 48, cnp_802p_prio 6."""

    dscp: _Dscp = 48
    """Differentiated services codepoint."""
    priority: _Priority = 6
    """Priority in every queue."""


class FurtherClass(TrafficClass):
    """One more class of data packets, for the messages that match; the first match decides.

    It has queue pairs of its own between the ranks that use it. A NIC serves its classes in turn, a
    packet each; a pause of one class's priority does not hold back the others.
    """

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$", max_length=63)]
    """Lower case letters, digits and dashes; `data` is the name of the data class."""
    ecn_capable: bool = True
    """Its data packets carry ECT(0); if not, no switch marks them, and one whose profile drops
    (`drops_not_ect`) does that instead."""
    congestion_control: CongestionControl | None = None
    """The senders' algorithm; left out, that of the lab."""
    collective: str = "*"
    """Only for collectives of this kind (all_reduce, all_to_all, send_recv, ...); a glob."""
    group: str = "*"
    """Only for process groups of this name; a glob."""
    node: str = "*"
    """Only for trace nodes of this name; a glob."""
    min_size_bytes: _Bytes = 0
    """Only for at least this size, as in nccl-tests, after scaling."""
    max_size_bytes: _Bytes | None = None
    """Only for at most this size."""


class TrafficClasses(LabPart):
    """Tags, queues and congestion control of every kind of packet."""

    data: DataClass = DataClass()
    """Data."""
    data_ecn_capable: bool = True
    """Data packets carry ECT(0): traffic class 106."""
    acknowledgement: AcknowledgementClass = AcknowledgementClass()
    """ACK and NAK. A reliable connection has one traffic class for all that it sends, so the
    default is the data's."""
    cnp: CnpClass = CnpClass()
    """Congestion notification."""
    further: Annotated[list[FurtherClass], Field(max_length=7)] = Field(default_factory=list)
    """More classes of data, each with its own tags and congestion control."""
