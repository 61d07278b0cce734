"""The names and units that mlx5 gives to DCQCN's parameters, accepted in a lab file as they are.

So a setting can be copied from `/sys/class/net/IF/ecn/roce_rp`, debugfs `cc_params` or mlxconfig.
Translation only; nothing here knows how a lab file is read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

__all__ = [
    "CLAMP_NAMES",
    "CNP_TAG_NAMES",
    "NOTIFICATION_NAMES",
    "REACTION_NAMES",
    "Translation",
    "clamp_mode",
    "mlx5_name",
]


@dataclass(frozen=True, slots=True)
class Translation:
    """One mlx5 parameter: our key and the conversion of its value."""

    key: str
    convert: Callable[[int], int | float]
    unit: str
    low: int
    high: int


_MBPS = 1_000_000
_LINE = 3_200_000

REACTION_NAMES: Mapping[str, Translation] = {
    "rpg_ai_rate": Translation("additive_increase_bps", lambda v: v * _MBPS, "Mb/s", 1, _LINE),
    "rpg_hai_rate": Translation("hyper_increase_bps", lambda v: v * _MBPS, "Mb/s", 1, _LINE),
    "rpg_time_reset": Translation("rate_increase_period_ns", lambda v: v * 1000, "us", 1, 131_071),
    "rpg_byte_reset": Translation("rate_increase_bytes", lambda v: v * 64, "64 B", 0, 32_767),
    "rpg_threshold": Translation("fast_recovery_stages", lambda v: v, "events", 0, 31),
    "rpg_gd": Translation(
        "decrease_alpha_ratio", lambda v: 1024 / 2**v, "cut by alpha R_C / 2^gd", 0, 15
    ),
    "rpg_min_dec_fac": Translation("min_decrease_ratio", lambda v: v / 100, "%", 0, 100),
    "rpg_min_rate": Translation("min_rate_bps", lambda v: v * _MBPS, "Mb/s", 1, _LINE),
    "rpg_max_rate": Translation(
        "max_rate_bps", lambda v: v * _MBPS, "Mb/s, 0 = line rate", 0, _LINE
    ),
    "dce_tcp_g": Translation("g", lambda v: 1 - v / 1024, "1/1024, g = 1 - G/1024", 0, 1023),
    "dce_tcp_rtt": Translation("alpha_update_period_ns", lambda v: v * 1000, "us", 1, 131_071),
    "initial_alpha_value": Translation("initial_alpha", lambda v: v / 1024, "1/1024", 0, 1023),
    "rate_reduce_monitor_period": Translation(
        "rate_decrease_period_ns", lambda v: v * 1000, "us", 1, 131_071
    ),
    "rate_to_set_on_first_cnp": Translation(
        "rate_on_first_cnp_bps", lambda v: v * _MBPS, "Mb/s", 0, _LINE
    ),
}
"""Reaction point. Source: NVIDIA 'DCQCN CC Parameters'; mlx5 `cc_params`."""

NOTIFICATION_NAMES: Mapping[str, Translation] = {
    "min_time_between_cnps": Translation("cnp_interval_ns", lambda v: v * 1000, "us", 0, 131_071),
}
"""Notification point."""

CNP_TAG_NAMES: Mapping[str, Translation] = {
    "cnp_dscp": Translation("dscp", lambda v: v, "codepoint", 0, 63),
    "cnp_802p_prio": Translation("priority", lambda v: v, "priority", 0, 7),
}
"""Notification point: tags of its packets, which are `traffic_classes.cnp` here."""

CLAMP_NAMES = ("clamp_tgt_rate", "clamp_tgt_rate_after_time_inc")
"""Two switches that together are `clamp_target_rate`."""


def clamp_mode(clamp_tgt_rate: int, after_time_inc: int) -> str:
    """Our `clamp_target_rate` for mlx5's two switches, each 0 or 1."""
    if clamp_tgt_rate:
        return "always"
    return "after_increase" if after_time_inc else "after_byte_increase"


def mlx5_name(key: str) -> str:
    """The name that mlx5 gives to one of our parameters; empty where it has none."""
    if key == "clamp_target_rate":
        return " + ".join(CLAMP_NAMES)
    names: dict[str, str] = {
        item.key: name for name, item in {**REACTION_NAMES, **NOTIFICATION_NAMES}.items()
    }
    return names.get(key, "")
