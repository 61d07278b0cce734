"""Congestion control in a lab file: a preset and what differs from it, in our names or mlx5's.

The values of the presets are in `emulator.presets`; here are the settings' ranges and the
resolution of preset and overrides into one value per parameter.
"""

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from emulator.lab.base import LabPart
from emulator.lab.mlx5_names import (
    CLAMP_NAMES,
    CNP_TAG_NAMES,
    NOTIFICATION_NAMES,
    REACTION_NAMES,
)
from emulator.presets import NOTIFICATION_PRESETS, Sourced, dcqcn_preset

__all__ = ["Algorithm", "CongestionControl", "Dcqcn", "FixedRate", "NotificationPoint", "Swift"]

_Ratio = Annotated[float, Field(ge=0, le=1)]
_PeriodNs = Annotated[int, Field(ge=1, le=10**12)]
_RateBps = Annotated[int, Field(ge=0, le=10**13)]
_LAB_FILE = "lab file"
_SWIFT_DEFAULT = "our choice; Swift, SIGCOMM 2020, names the parameter and states no value"

Preset = Literal["paper", "mlx5", "ns3-hpcc", "irdma"]


_TRANSLATIONS = {**REACTION_NAMES, **NOTIFICATION_NAMES, **CNP_TAG_NAMES}


def _with_mlx5_names(schema: dict[str, Any], names: Iterable[str]) -> None:
    """Let editors accept the names that are translated before validation."""
    for name in names:
        known = _TRANSLATIONS.get(name)
        description = f"mlx5's name of {known.key}, in {known.unit}" if known else "mlx5's name"
        schema["properties"][name] = {"type": "integer", "description": description}


class Dcqcn(LabPart):
    """DCQCN's reaction point; a key that is left out has the preset's value."""

    model_config = ConfigDict(
        json_schema_extra=lambda schema: _with_mlx5_names(schema, (*REACTION_NAMES, *CLAMP_NAMES))
    )

    algorithm: Literal["dcqcn"]
    """This algorithm."""
    preset: Preset = "mlx5"
    """Where the values come from; `rankwire lab show LAB` prints each with its source."""
    g: Annotated[float, Field(gt=0, le=1)] | None = None
    """Gain of the congestion estimate alpha."""
    initial_alpha: _Ratio | None = None
    """Estimate at the first notification."""
    alpha_fraction_bits: Annotated[int, Field(ge=0, le=30)] | None = None
    """Binary digits behind the point of the estimate, which every update rounds down: 10 is an
    integer in 1/1024, as mlx5's parameters suggest; 0 is a real number. With 10 and g = 5/1024 the
    estimate does not grow beyond 820/1024; 16 and more behave as real numbers do."""
    alpha_update_period_ns: _PeriodNs | None = None
    """Period of the estimate's decay (K)."""
    alpha_update: Literal["on_cnp", "periodic"] | None = None
    """The estimate rises on every notification, or once per period with one."""
    cut_uses_old_alpha: bool | None = None
    """A cut uses the estimate before the notification's own update."""
    rate_decrease_period_ns: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """At most one cut in this period; 0 cuts on every notification."""
    decrease_alpha_ratio: Annotated[float, Field(gt=0, le=1024)] | None = None
    """Share of the estimate by which a cut lowers the rate: 0.5 is the paper's alpha / 2."""
    min_decrease_ratio: _Ratio | None = None
    """Smallest new rate as a share of the old one at a cut."""
    rate_increase_period_ns: _PeriodNs | None = None
    """Period of the increase timer (T)."""
    rate_increase_bytes: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """Bytes of the increase byte counter (B); 0 is off."""
    fast_recovery_stages: Annotated[int, Field(ge=0, le=1000)] | None = None
    """Stages of fast recovery (F)."""
    stage_count: Literal["before_compare", "after_compare"] | None = None
    """An increase event is counted before or after it is compared with F."""
    additive_increase_bps: _RateBps | None = None
    """Step of additive increase (R_AI)."""
    hyper_increase_bps: _RateBps | None = None
    """Step of hyper increase (R_HAI)."""
    hyper_increase_multiplies: bool | None = None
    """The hyper step is multiplied by the number of hyper stages."""
    hyper_increase_speedup: Annotated[int, Field(ge=1, le=1000)] | None = None
    """In hyper increase, timer and byte counter run so many times as fast: 2 in the DCQCN authors'
    simulator ns3-rdma, 1 elsewhere."""
    hyper_increase_by_timer: bool | None = None
    """Without a byte counter the timer alone leads to hyper increase."""
    clamp_target_rate: Literal["always", "after_increase", "after_byte_increase"] | None = None
    """When a cut also lowers the target rate to the current rate."""
    high_target_divisor: Annotated[int, Field(ge=1, le=1000)] | None = None
    """At the first increase after a cut, a target rate above ten times the current rate is divided
    by this instead of raised: 8 in ns3-rdma, left over from QCN; 1 is off."""
    rate_on_first_cnp_bps: _RateBps | None = None
    """Rate set by the first notification; 0 leaves the rate as it is."""
    min_rate_bps: Annotated[int, Field(ge=1, le=10**13)] | None = None
    """Lower bound of the rate."""
    max_rate_bps: _RateBps | None = None
    """Upper bound of the rate, where a sender starts; 0 is the line rate."""
    rearms_pacer: bool | None = None
    """A packet that waits for its time takes a changed rate at once. Off, it keeps the time found
    when the one before it left, as HPCC's ns-3 does: many flows then share unfairly."""

    def resolve(self, line_rate_bps: int) -> dict[str, Sourced]:
        """One value per parameter for NICs of `line_rate_bps`, with its source."""
        return _override(dcqcn_preset(self.preset, line_rate_bps), self)


class FixedRate(LabPart):
    """A constant rate per queue pair; no reaction to congestion."""

    algorithm: Literal["fixed_rate"]
    """This algorithm."""
    rate_gbps: Annotated[float, Field(gt=0, le=3200)] | None = None
    """Rate of every queue pair, Gb/s; left out, the NIC's line rate."""

    def resolve(self, line_rate_bps: int) -> dict[str, Sourced]:
        """One value per parameter for NICs of `line_rate_bps`, with its source."""
        if self.rate_gbps is None:
            return {"rate_bps": Sourced(line_rate_bps, "line rate of the slowest NIC")}
        return {"rate_bps": Sourced(round(self.rate_gbps * 1e9), _LAB_FILE)}


class Swift(LabPart):
    """Swift: a window steered by the round-trip time. Source: Kumar et al., SIGCOMM 2020.

    The paper names the parameters and leaves most numbers open: the defaults are our choice, in the
    range of public simulators. The time for which a receiver holds an acknowledgement back counts
    as delay: set `transport.ack_every_packets` to 1.
    """

    algorithm: Literal["swift"]
    """This algorithm."""
    base_target_delay_ns: _PeriodNs = 25_000
    """Target of the round-trip time of a flow with a large window."""
    flow_scaling_range_ns: Annotated[int, Field(ge=0, le=10**12)] = 100_000
    """What flow scaling adds to the target at most; 0 is off."""
    flow_scaling_min_packets: Annotated[float, Field(gt=0)] = 0.1
    """Flow scaling adds its whole range at windows of this and less."""
    flow_scaling_max_packets: Annotated[float, Field(gt=0)] = 100.0
    """Flow scaling adds nothing at windows of this and more."""
    additive_increase_packets: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Growth of the window per round trip below the target."""
    beta: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Decrease per excess of the target."""
    max_decrease_ratio: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """Largest decrease per round trip, as a share of the window."""
    initial_window_packets: Annotated[float, Field(gt=0)] = 10.0
    """Window of a new flow."""
    min_window_packets: Annotated[float, Field(gt=0)] = 0.001
    """Smallest window."""
    max_window_packets: Annotated[float, Field(gt=0)] = 4096.0
    """Largest window."""
    timeouts_to_min_window: Annotated[int, Field(ge=1, le=1000)] = 5
    """Timeouts in a row after which the window is the smallest."""

    def resolve(self, _line_rate_bps: int) -> dict[str, Sourced]:
        """One value per parameter, with its source."""
        return {
            name: Sourced(value, _LAB_FILE if name in self.model_fields_set else _SWIFT_DEFAULT)
            for name, value in self.model_dump(exclude={"algorithm"}).items()
        }


Algorithm = Dcqcn | Swift | FixedRate
"""Any congestion control; each has `algorithm` and `resolve`."""

CongestionControl = Annotated[Algorithm, Field(discriminator="algorithm")]


class NotificationPoint(LabPart):
    """The receiver's answer to marked packets; a key that is left out has the preset's value."""

    model_config = ConfigDict(
        json_schema_extra=lambda schema: _with_mlx5_names(
            schema, (*NOTIFICATION_NAMES, *CNP_TAG_NAMES)
        )
    )

    enabled: bool = True
    """Off: marks are counted, no notification is sent."""
    preset: Preset | None = None
    """Left out: the preset of the congestion control, `mlx5` when that is not DCQCN."""
    cnp_interval_ns: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """Minimum time between two notifications of one scope."""
    scope: Literal["qp", "ip_pair", "destination_ip", "port"] | None = None
    """What one interval limits."""
    mode: Literal["immediate_and_trailing", "immediate", "periodic"] | None = None
    """What happens to marks inside an interval."""
    cnp_on_nak: bool | None = None
    """Also notify with every out-of-sequence NAK."""

    def resolve(self, fallback_preset: str) -> dict[str, Sourced]:
        """One value per parameter, with its source."""
        return _override(dict(NOTIFICATION_PRESETS[self.preset or fallback_preset]), self)


def _override(values: dict[str, Sourced], settings: LabPart) -> dict[str, Sourced]:
    given: dict[str, Any] = settings.model_dump(exclude_none=True)
    for key in values.keys() & given.keys():
        values[key] = Sourced(given[key], _LAB_FILE)
    return values
