"""Where each setting of the switches comes from: the lab file, the preset or a default."""

from typing import Any

from emulator.lab.model import Lab
from emulator.presets import Sourced
from emulator.switch_presets import SWITCH_KINDS

__all__ = ["preset_source", "sourced_switches"]

_DEFAULTS = {
    "buffer_bytes": "default: Broadcom Tomahawk 3, 64 MiB",
    "dynamic_threshold_alpha": "default: HPCC ns-3, shift 3",
    "strict_priorities": "default: the one of the congestion notification packets",
    "weights": "default: 1 each",
    "ecn.preset": "default: SimAI and astra-sim ns-3",
    "ecn.drops_not_ect": "default: profiles that only mark",
    "ecn.priorities": "default: those of the data packets",
    "pfc.priorities": "default: those of the data packets",
    "pfc.xoff_bytes": "default: the dynamic threshold",
    "pfc.xon_offset_bytes": "default: our choice, four packets of 4096 bytes",
    "pfc.reserved_bytes": "default: our choice, nothing is reserved",
    "queue_reserved_bytes": "default: our choice, nothing is reserved",
    "pfc.watchdog": "default: off",
}
"""Dotted key below `switches` -> source of its default."""


def sourced_switches(lab: Lab) -> dict[str, Sourced]:
    """Settings of the switches that stand in the lab, with their sources."""
    settings = {"preset": Sourced(str(lab.switches.preset or "none"), _kind(lab))}
    for path, default in _DEFAULTS.items():
        value = _value(lab, path)
        source = preset_source(lab, path) or (default if _is_default(lab, path) else "lab file")
        settings[path] = Sourced(value if isinstance(value, int | float) else _text(value), source)
    return settings


def preset_source(lab: Lab, path: str) -> str | None:
    """Source of a value that is the preset's; `None` if there is no preset, or it says another."""
    if lab.switches.preset is None:
        return None
    item = SWITCH_KINDS[lab.switches.preset].values.get(path)
    return item.source if item is not None and _plain(lab, path) == item.value else None


def _kind(lab: Lab) -> str:
    preset = lab.switches.preset
    return "default" if preset is None else f"modelled on {SWITCH_KINDS[preset].modelled_on}"


def _value(lab: Lab, path: str) -> Any:
    value: Any = lab.switches
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _plain(lab: Lab, path: str) -> Any:
    value = _value(lab, path)
    return value.model_dump() if hasattr(value, "model_dump") else value


def _is_default(lab: Lab, path: str) -> bool:
    *parts, key = path.split(".")
    holder: Any = lab.switches
    for part in parts:
        holder = getattr(holder, part)
    return key not in holder.model_fields_set


def _text(value: Any) -> str:
    if value is None:
        return "none"
    return str(value.model_dump() if hasattr(value, "model_dump") else value)
