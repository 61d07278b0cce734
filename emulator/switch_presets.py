"""Named kinds of switch: what a lab's `switches` part is on each, every value with its source.

Only data: `emulator.lab.switches` fills in what a lab file leaves out. What the model doesn't have
(cells, egress pools, minima of whole ports) is left out here as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["SWITCH_KINDS", "PresetValue", "SwitchKind", "filled_in"]


@dataclass(frozen=True, slots=True)
class PresetValue:
    """One value and where it comes from."""

    value: Any
    """As a lab file has it."""
    source: str
    """File or document of the switch's system."""


@dataclass(frozen=True, slots=True)
class SwitchKind:
    """One kind of switch."""

    modelled_on: str
    """Device and system."""
    values: Mapping[str, PresetValue]
    """Dotted key below `switches` -> value."""


_SONIC = "SONiC"
_QOS = f"{_SONIC}, qos_config.j2"
_ARISTA = f"{_SONIC}, device/arista/x86_64-arista_7060x6_64pe_b/Arista-7060X6-64PE-B-O128"
_NVIDIA = f"{_SONIC}, device/mellanox/x86_64-nvidia_sn5610n-r0/Mellanox-SN5610N-C224O8"
_POOL_DESIGN = f"{_SONIC}, Shared headroom pool design: over-subscribe ratio"
_PFCWD = f"{_SONIC}, pfcwd start_default"
_ROCE = "Onyx and Cumulus Linux, roce lossless"
_CUMULUS_RED = "Cumulus Linux, qos_features.conf: default_ecn_red_conf, red_enable = false"
_BROADCOM_ECN = "Edgecore, Enterprise SONiC on Broadcom, ECN: packets that are not ECT are sent"
_NVIDIA_RED = "SONiC, qos_config.j2: wred_green_enable; mlnx_sai_wred.c: RED on beside ECN"

_SONIC_QUEUES: Mapping[str, PresetValue] = {
    "strict_priorities": PresetValue([], f"{_QOS}: every queue DWRR"),
    "weights": PresetValue(
        {0: 14, 1: 14, 2: 14, 3: 15, 4: 15, 5: 14, 6: 14, 7: 14},
        f"{_QOS}: scheduler.1 (15) for the lossless queues, scheduler.0 (14) for the others",
    ),
    "ecn.preset": PresetValue("sonic", f"{_QOS}: AZURE_LOSSLESS"),
    "ecn.priorities": PresetValue([3, 4], f"{_QOS}: queues 3 and 4"),
    "pfc.priorities": PresetValue([3, 4], f"{_QOS}: pfc_enable 3,4"),
    "pfc.watchdog": PresetValue(
        {"detection_ns": 200_000_000, "restoration_ns": 200_000_000, "action": "drop"},
        f"{_PFCWD}: 200 ms, drop",
    ),
}

SWITCH_KINDS: Mapping[str, SwitchKind] = {
    "sonic-tomahawk5": SwitchKind(
        "Arista 7060X6-64PE-B (Broadcom Tomahawk 5, ports of 400 Gb/s) with SONiC",
        {
            "buffer_bytes": PresetValue(
                164_505_640, f"{_ARISTA}: ingress_lossless_pool.size, taken to include its xoff"
            ),
            "dynamic_threshold_alpha": PresetValue(
                1.0, f"{_ARISTA}: pg_profile_lookup.ini, threshold 0: alpha = 2^0"
            ),
            "pfc.headroom_bytes": PresetValue(
                445_770, f"{_ARISTA}: pg_profile_lookup.ini, xoff at 400 Gb/s, 5 m and 40 m"
            ),
            "pfc.headroom_pool_bytes": PresetValue(
                22_010_624, f"{_ARISTA}: ingress_lossless_pool.xoff"
            ),
            "pfc.xon_offset_bytes": PresetValue(
                3_556, f"{_ARISTA}: pg_profile_lookup.ini, xon_offset"
            ),
            "pfc.reserved_bytes": PresetValue(
                18_796, f"{_ARISTA}: pg_profile_lookup.ini, size at 400 Gb/s, 5 m and 40 m"
            ),
            "queue_reserved_bytes": PresetValue(
                1_778, f"{_ARISTA}: buffers_defaults_t0.j2, egress_lossy_profile.size"
            ),
            "ecn.drops_not_ect": PresetValue(False, _BROADCOM_ECN),
            **_SONIC_QUEUES,
        },
    ),
    "sonic-spectrum4": SwitchKind(
        "NVIDIA SN5610N (Spectrum-4, ports of 400 Gb/s) with SONiC",
        {
            "buffer_bytes": PresetValue(158_229_504, f"{_NVIDIA}: egress_lossless_pool.size, all"),
            "dynamic_threshold_alpha": PresetValue(
                1.0, f"{_NVIDIA}: pg_profile_lookup.ini, threshold 0: alpha = 2^0"
            ),
            "pfc.headroom_bytes": PresetValue(
                104_448, f"{_NVIDIA}: pg_profile_lookup.ini, xoff at 400 Gb/s, 40 m"
            ),
            "pfc.headroom_oversubscription": PresetValue(2.0, f"{_POOL_DESIGN}, 2"),
            "pfc.xon_offset_bytes": PresetValue(
                19_456, f"{_NVIDIA}: pg_profile_lookup.ini, xon, taken as the offset"
            ),
            "pfc.reserved_bytes": PresetValue(
                19_456, f"{_NVIDIA}: pg_profile_lookup.ini, size at 400 Gb/s"
            ),
            "queue_reserved_bytes": PresetValue(
                0, f"{_NVIDIA}: buffers_defaults_objects.j2, q_lossy_profile.size"
            ),
            "ecn.drops_not_ect": PresetValue(True, _NVIDIA_RED),
            **_SONIC_QUEUES,
        },
    ),
    "cumulus-spectrum": SwitchKind(
        "NVIDIA SN2700 (Spectrum, ports of 100 Gb/s) with Cumulus Linux or Onyx",
        {
            "buffer_bytes": PresetValue(16_777_216, "SN2700 data sheet: 16 MB packet buffer"),
            "dynamic_threshold_alpha": PresetValue(1.0, "assumed: no public source states it"),
            "strict_priorities": PresetValue([6], f"{_ROCE}: traffic class 6 (CNP) strict"),
            "weights": PresetValue({0: 50, 3: 50}, f"{_ROCE}: traffic classes 0 and 3, 50 % each"),
            "ecn.preset": PresetValue("onyx", f"{_ROCE}: ECN absolute 150 / 1500 KB"),
            "ecn.priorities": PresetValue([3], f"{_ROCE}: traffic class 3"),
            "ecn.drops_not_ect": PresetValue(False, _CUMULUS_RED),
            "pfc.priorities": PresetValue([3], f"{_ROCE}: switch priority 3"),
            "pfc.reserved_bytes": PresetValue(0, "assumed: no public source states it"),
            "queue_reserved_bytes": PresetValue(0, "assumed: no public source states it"),
            "pfc.headroom_bytes": PresetValue(
                102_528, "Linux mlxsw driver: 100 Gb/s port with a cable of 100 m"
            ),
        },
    ),
}
"""Kinds by the name that `switches.preset` takes."""

_EITHER = {
    "pfc.headroom_pool_bytes": "headroom_oversubscription",
    "pfc.headroom_oversubscription": "headroom_pool_bytes",
}
"""Key -> its alternative: a lab file that gives one means neither of the preset's."""


def filled_in(kind: SwitchKind, given: Mapping[str, Any]) -> dict[str, Any]:
    """The `switches` part of a lab file with what it leaves out taken from `kind`.

    A part that isn't a mapping stays as it is, for validation to complain about.
    """
    filled: dict[str, Any] = dict(given)
    for path, item in kind.values.items():
        part, _, key = path.rpartition(".")
        if not part:
            filled.setdefault(key, item.value)
            continue
        inner = filled.setdefault(part, {})
        if not isinstance(inner, Mapping) or _EITHER.get(path) in _given(given, part):
            continue
        filled[part] = {key: item.value, **inner}
    return filled


def _given(given: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    inner = given.get(part)
    return inner if isinstance(inner, Mapping) else {}
