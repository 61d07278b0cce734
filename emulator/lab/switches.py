"""The switches of a lab file: buffer, ECN profile, PFC and scheduling, the same on every switch."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from emulator.lab.base import LabPart
from emulator.switch_presets import SWITCH_KINDS, filled_in

__all__ = ["Ecn", "PathSelection", "Pfc", "PfcWatchdog", "QueueSettings", "Rerouting", "Switches"]

_Priority = Annotated[int, Field(ge=0, le=7)]
HashField = Literal[
    "source_address", "destination_address", "source_port", "destination_port", "protocol"
]
"""A header field that the hash of a flow can cover."""
_Bytes = Annotated[int, Field(ge=0, le=2**40)]


class Ecn(LabPart):
    """RED/ECN on the instantaneous egress queue, marked at dequeue; left out, as in the preset."""

    enabled: bool = True
    """Off: nothing is marked."""
    preset: Literal["simai", "hpcc", "sonic", "onyx", "paper"] = "simai"
    """Where the thresholds come from; `hpcc` scales them with the port's rate."""
    kmin_bytes: _Bytes | None = None
    """No mark at or below."""
    kmax_bytes: _Bytes | None = None
    """Every packet marked above."""
    pmax_ratio: Annotated[float, Field(ge=0, le=1)] | None = None
    """Probability of a mark at `kmax_bytes`."""
    drops_not_ect: bool = False
    """A packet that would be marked but is not ECN-capable is dropped, when it comes to the queue;
    off, it is left alone: a profile that only marks. `wred_dropped_packets` counts them. Source of
    off: RoCE profiles of switches mark and don't drop (Cumulus Linux, `red_enable = false`)."""
    priorities: list[_Priority] | None = None
    """Priorities that mark; left out, those of the data packets."""


class PfcWatchdog(LabPart):
    """What a switch does about a neighbour that pauses it for good, as SONiC's watchdog."""

    detection_ns: Annotated[int, Field(ge=1_000, le=10**12)] = 200_000_000
    """A queue that is paused and sends nothing for so long is in a storm. Source: SONiC, 200 ms."""
    restoration_ns: Annotated[int, Field(ge=1_000, le=10**12)] = 200_000_000
    """The storm is over when no pause has come for so long. Source: SONiC, 200 ms."""
    action: Literal["drop", "forward"] = "drop"
    """What happens to the packets in a storm. Source: SONiC's default."""


class Pfc(LabPart):
    """Priority flow control and its headroom."""

    enabled: bool = True
    """Off: every priority is lossy and drops at the tail."""
    priorities: list[_Priority] | None = None
    """Lossless priorities; left out, those of the data packets."""
    xoff_bytes: _Bytes | None = None
    """Pause when one ingress holds more; left out, the dynamic threshold."""
    xon_offset_bytes: _Bytes = 16_384
    """Resume when the ingress holds this much less than the pause threshold; at least 2 MTU."""
    reserved_bytes: _Bytes = 0
    """Kept for every port and lossless priority of arrival, and taken before its share of the
    buffer; the threshold counts what is held beyond. Default: our choice, as the model of a plain
    shared buffer. Source: SONiC, `BUFFER_PROFILE.size` of a lossless priority group."""
    headroom_bytes: _Bytes | None = None
    """Bytes per port and lossless priority above the pause threshold; left out, by formula:
    2 delay rate / 8 + 2 frames + 64 (pause frame) + response. Source: IEEE 802.1Q annex N."""
    response_bytes: _Bytes = 3_840
    """Bytes that the paused side may still send. Source: IEEE 802.1Qbb, bound in common use."""
    headroom_allowance_bytes: _Bytes = 0
    """Added to the formula; covers the lateness of a real-time run on a busy machine."""
    headroom_pool_bytes: _Bytes | None = None
    """Headroom of the whole switch, shared by all ports and lossless priorities; each may take as
    much of it as `headroom_bytes`. Left out, each has its own. Source: SONiC's shared headroom
    pool, `BUFFER_POOL.xoff`."""
    headroom_oversubscription: Annotated[float, Field(ge=1, le=100)] | None = None
    """Makes a pool of the sum of all headrooms over this ratio. Source: SONiC,
    `over_subscribe_ratio`, 2 where it is on."""
    watchdog: PfcWatchdog | None = None
    """Ends pause storms; left out, it is off."""


class QueueSettings(LabPart):
    """One priority on every port, where it differs from what the switch has for all."""

    priority: _Priority
    """The priority; named once."""
    marks: bool | None = None
    """Its queue marks; left out, as `ecn.priorities` says."""
    kmin_bytes: _Bytes | None = None
    """No mark at or below."""
    kmax_bytes: _Bytes | None = None
    """Every packet marked above."""
    pmax_ratio: Annotated[float, Field(ge=0, le=1)] | None = None
    """Probability of a mark at `kmax_bytes`."""
    drops_not_ect: bool | None = None
    """What it would mark but can't, it drops."""
    lossless: bool | None = None
    """PFC is on; left out, as `pfc.priorities` says."""
    dynamic_threshold_alpha: Annotated[float, Field(gt=0, le=64)] | None = None
    """Share of the free shared buffer that its queue, or an ingress of it, may take."""
    xoff_bytes: _Bytes | None = None
    """Pause when one ingress holds more."""
    xon_offset_bytes: _Bytes | None = None
    """Resume when the ingress holds this much less."""
    headroom_bytes: _Bytes | None = None
    """Headroom of a port."""
    reserved_bytes: _Bytes | None = None
    """Kept for each of its queues, or of its ingresses if it is lossless."""
    watched: bool | None = None
    """The watchdog guards it; left out, it guards every lossless priority."""
    strict: bool | None = None
    """Served before the weighted ones; left out, as `strict_priorities` says."""
    weight: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Weight among the others; left out, as `weights` says."""


class PathSelection(LabPart):
    """What takes one of several equal-cost ports together; all but `flow` can reorder packets."""

    mode: Literal["flow", "flowlet", "packet", "shortest_queue"] = "flow"
    """All packets of a flow by its hash; flowlets or packets by chance; or the shortest queue."""
    gap_ns: Annotated[int, Field(ge=1, le=10**12)] = 50_000
    """Of `flowlet`: a longer gap between packets begins a new flowlet; our choice."""
    hash_fields: Annotated[list[HashField], Field(min_length=1)] | None = None
    """What the hash of a flow covers; left out, all: the five-tuple. Without `source_port` all
    queue pairs of two NICs take one way."""
    hash_seeds: dict[str, Annotated[int, Field(ge=0, le=2**63 - 1)]] = Field(default_factory=dict)
    """Switch (a glob) to the seed of its hash; the first that matches holds. Left out, each switch
    has its own, made from the seed of the job. One seed for two tiers polarises them."""
    weighting: Literal["equal", "rate"] = "equal"
    """Shares of equal-cost ports: one each, or in proportion to the rates of their links (weighted
    ECMP)."""
    link_weights: dict[str, Annotated[int, Field(ge=1, le=64)]] = Field(default_factory=dict)
    """Link (a glob) to its weight among equal-cost ports, whatever `weighting` says; the first that
    matches holds."""


class Rerouting(LabPart):
    """What switches do about links that go down or come up (`events`).

    Flows move to the equal-cost ports that are left; no switch takes a longer way. Where no port is
    left, packets go on to the failed link and are lost there.
    """

    detection_ns: Annotated[int, Field(ge=0, le=10**12)] = 1_000_000
    """From the change of a link until the switches at it stop or begin to use it; our choice: an
    interrupt and a write to the forwarding table."""
    convergence_ns: Annotated[int, Field(ge=0, le=10**12)] = 10_000_000
    """From then until the other switches have left the ways that lead to it; our choice: BGP
    updates over one or two hops."""
    hashing: Literal["modulo", "resilient"] = "modulo"
    """Of path selection by flow: the hash modulo the ports that are left, which moves most flows;
    or only the flows of the failed port move, as with resilient hashing in switches that have
    it."""


class Switches(LabPart):
    """Every switch of the lab."""

    preset: Literal["sonic-tomahawk5", "sonic-spectrum4", "cumulus-spectrum"] | None = None
    """Kind of switch that the settings below are taken from where they are left out; see the
    presets. Left out, the defaults below."""
    buffer_bytes: Annotated[int, Field(ge=10_000, le=2**40)] = 67_108_864
    """Packet buffer of one switch, headroom and reservations included. The default is 64 MiB, the
    buffer of Broadcom's Tomahawk 3 (12.8 Tb/s, 32 ports of 400 Gb/s)."""
    dynamic_threshold_alpha: Annotated[float, Field(gt=0, le=64)] = 0.125
    """Share of the free shared buffer that one queue (lossy) or one ingress (lossless) may take.
    Source: 1/8, a usual setting for lossless classes (HPCC ns-3: shift 3)."""
    queue_reserved_bytes: _Bytes = 0
    """Kept for every egress queue of a lossy priority, and taken before its share of the buffer.
    Default: our choice. Source: SONiC, `BUFFER_PROFILE.size` of an egress queue."""
    path_selection: PathSelection = PathSelection()
    """Load balancing over equal-cost ports."""
    rerouting: Rerouting = Rerouting()
    """Ways around failed links."""
    ecn: Ecn = Ecn()
    """Marking."""
    pfc: Pfc = Pfc()
    """Pausing."""
    strict_priorities: list[_Priority] | None = None
    """Priorities served before the weighted ones, the higher number first; left out, the one of
    the congestion notification packets."""
    weights: dict[_Priority, Annotated[int, Field(ge=1, le=1000)]] = Field(default_factory=dict)
    """Weights of the other priorities (deficit round robin); left out, 1 each."""
    queues: list[QueueSettings] = Field(default_factory=list)
    """Settings of single priorities; they come before all of the above."""

    @model_validator(mode="before")
    @classmethod
    def _of_kind(cls, data: Any) -> Any:
        """Fill in what the preset says and the lab file doesn't."""
        kind = SWITCH_KINDS.get(str(data.get("preset"))) if isinstance(data, Mapping) else None
        return data if kind is None else filled_in(kind, data)
