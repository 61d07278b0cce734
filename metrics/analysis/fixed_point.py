"""Where DCQCN settles: the fixed point of its fluid model for N equal flows in one queue.

*Source*: Zhu, Ghobadi, Misra, Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and
TIMELY", CoNEXT 2016, equations of section 3 (hyper increase left out, target rate lowered at every
cut). Rates are in packets per second here, times in seconds, byte counters in packets.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from metrics.analysis.bandwidth import PACKET_OVERHEAD_BYTES, PREAMBLE_AND_GAP_BYTES

__all__ = [
    "FixedPoint",
    "FluidParameters",
    "approximate_mark_ratio",
    "approximate_queue_bytes",
    "fixed_point",
    "fluid_parameters",
]

_BISECTIONS = 200


@dataclass(frozen=True, slots=True)
class FluidParameters:
    """What the fluid model knows of a bottleneck and its senders."""

    capacity_pps: float
    """Line rate C in packets per second."""
    flows: int
    """Number N of equal flows."""
    additive_increase_pps: float
    """Additive increase step R_AI."""
    rate_increase_period_s: float
    """Increase timer T."""
    rate_increase_packets: float
    """Increase byte counter B."""
    fast_recovery_stages: int
    """Stages F of fast recovery."""
    cnp_interval_s: float
    """Least time tau between two notifications."""
    alpha_update_period_s: float
    """Period tau' of the congestion estimate."""
    kmin_bytes: float
    """Queue above which marking begins."""
    kmax_bytes: float
    """Queue above which every packet is marked."""
    pmax_ratio: float
    """Marking probability at `kmax_bytes`."""


@dataclass(frozen=True, slots=True)
class FixedPoint:
    """The state in which all derivatives of the fluid model are zero."""

    mark_ratio: float
    """Share p* of packets marked."""
    queue_bytes: float
    """Queue q* that marks this share; `kmax_bytes` where the slope ends below it."""
    alpha: float
    """Congestion estimate."""
    cnps_per_second: float
    """Notifications per second and flow."""

    @property
    def is_pinned(self) -> bool:
        """Whether the slope has no such point and the queue stays at its upper threshold."""
        return math.isnan(self.mark_ratio)


def fluid_parameters(config: Mapping[str, Any], flows: int) -> FluidParameters:
    """What the model knows of `flows` flows of full packets into a port of the first switch.

    `config` is a job configuration as the dataplane takes it, with DCQCN at its senders; all its
    links are taken to have the rate of the first.
    """
    sender, notifications = config["congestion_control"], config["notification_point"]
    ecn = config["switches"][0]["priorities"][config["classes"]["data_priority"]]["ecn"]
    wire_bytes = config["transport"]["mtu_bytes"] + PACKET_OVERHEAD_BYTES
    return FluidParameters(
        capacity_pps=config["links"][0]["rate_bps"] / 8 / wire_bytes,
        flows=flows,
        additive_increase_pps=sender["additive_increase_bps"] / 8 / wire_bytes,
        rate_increase_period_s=sender["rate_increase_period_ps"] / 1e12,
        # The byte counter counts frames, not what separates them on the line.
        rate_increase_packets=sender["rate_increase_bytes"] / (wire_bytes - PREAMBLE_AND_GAP_BYTES),
        fast_recovery_stages=sender["fast_recovery_stages"],
        cnp_interval_s=notifications["cnp_interval_ps"] / 1e12,
        alpha_update_period_s=sender["alpha_update_period_ps"] / 1e12,
        kmin_bytes=ecn["kmin_bytes"],
        kmax_bytes=ecn["kmax_bytes"],
        pmax_ratio=ecn["pmax_ratio"],
    )


def fixed_point(parameters: FluidParameters) -> FixedPoint:
    """Solve the fixed point by bisection on p; it is unique.

    Where p* exceeds `pmax_ratio` the linear slope has no fixed point: `mark_ratio` is NaN and the
    queue is `kmax_bytes`.
    """
    low, high = 1e-9, 0.999
    for _ in range(_BISECTIONS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _excess(parameters, middle) < 0 else (low, middle)
    rate = parameters.capacity_pps / parameters.flows
    alpha = -math.expm1(parameters.alpha_update_period_s * rate * math.log1p(-low))
    cut = -math.expm1(parameters.cnp_interval_s * rate * math.log1p(-low))
    pinned = low > parameters.pmax_ratio
    return FixedPoint(
        mark_ratio=math.nan if pinned else low,
        queue_bytes=parameters.kmax_bytes if pinned else _queue_bytes(parameters, low),
        alpha=alpha,
        cnps_per_second=cut / parameters.cnp_interval_s,
    )


def approximate_mark_ratio(parameters: FluidParameters) -> float:
    """The paper's closed form for small p: its equation for p* below the fixed point."""
    events = 1 / parameters.rate_increase_packets + parameters.flows / (
        parameters.rate_increase_period_s * parameters.capacity_pps
    )
    numerator = parameters.additive_increase_pps * (parameters.flows * events) ** 2
    denominator = parameters.alpha_update_period_s * parameters.capacity_pps**2
    return math.cbrt(numerator / denominator)


def approximate_queue_bytes(parameters: FluidParameters) -> float:
    """Queue that marks the share of the closed form; `kmax_bytes` where the slope ends below it."""
    queue_bytes = _queue_bytes(parameters, approximate_mark_ratio(parameters))
    return min(queue_bytes, parameters.kmax_bytes)


def _queue_bytes(parameters: FluidParameters, mark_ratio: float) -> float:
    slope = (parameters.kmax_bytes - parameters.kmin_bytes) / parameters.pmax_ratio
    return parameters.kmin_bytes + mark_ratio * slope


def _excess(parameters: FluidParameters, mark_ratio: float) -> float:
    """A^2 alpha / ((b + d)(c + e)) less tau^2 R_AI R_C, which grows with p."""
    rate = parameters.capacity_pps / parameters.flows
    stages = parameters.fast_recovery_stages

    def increases(packets: float) -> tuple[float, float]:
        """Share of packets that end in an increase event every `packets`; in an additive one."""
        log_unmarked = packets * math.log1p(-mark_ratio)
        events = mark_ratio * math.exp(log_unmarked) / -math.expm1(log_unmarked)
        return events, events * math.exp(stages * log_unmarked)

    by_bytes = increases(parameters.rate_increase_packets)
    by_timer = increases(parameters.rate_increase_period_s * rate)
    alpha = -math.expm1(parameters.alpha_update_period_s * rate * math.log1p(-mark_ratio))
    cut = -math.expm1(parameters.cnp_interval_s * rate * math.log1p(-mark_ratio))
    recovery = (by_bytes[0] + by_timer[0]) * (by_bytes[1] + by_timer[1])
    right = parameters.cnp_interval_s**2 * parameters.additive_increase_pps * rate
    return cut**2 * alpha / recovery - right
