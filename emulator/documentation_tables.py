"""Tables of keys and presets for the pages of docs/, from the models and the presets themselves."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from emulator.lab.mlx5_names import (
    CLAMP_NAMES,
    CNP_TAG_NAMES,
    NOTIFICATION_NAMES,
    REACTION_NAMES,
)
from emulator.lab.overrides import alternatives
from emulator.presets import DCQCN_PRESETS, NOTIFICATION_PRESETS, SWITCH_PRESETS, dcqcn_preset
from emulator.switch_presets import SWITCH_KINDS

__all__ = [
    "LINE_RATE_BPS",
    "dcqcn_tables",
    "ecn_table",
    "joined",
    "key_sections",
    "mlx5_table",
    "switch_tables",
    "table",
    "traps_table",
]

LINE_RATE_BPS = 400_000_000_000
"""The NIC that presets are written out for."""


def key_sections(model: type[BaseModel], path: tuple[str, ...]) -> Iterator[str]:
    """A table of the model's plain keys, then a section for each part."""
    plain: list[tuple[str, ...]] = []
    parts: list[tuple[str, type[BaseModel], FieldInfo]] = []
    for name, field in model.model_fields.items():
        models = [kind for kind in alternatives(field.annotation) if _is_model(kind)]
        models += [inner for kind in alternatives(field.annotation) for inner in _items(kind)]
        if path and name == "congestion_control":
            # The keys of a class's congestion control are those of the lab's.
            plain.append((f"`{name}`", "as `congestion_control`", "-", _text(field)))
            continue
        parts.extend((name, part, field) for part in models)
        if not models:
            plain.append((f"`{name}`", _kind(field), _default(field), _text(field)))
    if plain:
        yield table(("Key", "Value", "Default", "Meaning"), plain)
    for name, part, _ in parts:
        yield f"### `{'.'.join((*path, name))}`{_which(part)}"
        yield (part.__doc__ or "").strip()
        yield from key_sections(part, (*path, name))


def _items(kind: Any) -> list[type[BaseModel]]:
    """The model of a list's entries."""
    if get_origin(kind) is not list:
        return []
    return [inner for inner in alternatives(get_args(kind)[0]) if _is_model(inner)]


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def _which(part: type[BaseModel]) -> str:
    """The tag of one form of a part that has several."""
    for name in ("kind", "algorithm"):
        field = part.model_fields.get(name)
        if field is not None and get_origin(field.annotation) is Literal:
            return f" with `{name}: {get_args(field.annotation)[0]}`"
    return ""


def _kind(field: FieldInfo) -> str:
    kinds = [_kind_text(kind) for kind in alternatives(field.annotation)]
    bounds = [_bound(item) for item in field.metadata]
    return ", ".join([" or ".join(dict.fromkeys(kinds)), *filter(None, bounds)])


def _kind_text(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " / ".join(f"`{value}`" for value in get_args(kind))
    if get_origin(kind) is list:
        inner = next(alternatives(get_args(kind)[0]))
        return f"list of {_kind_text(inner)}"
    names = {int: "whole number", float: "number", bool: "true / false", str: "text"}
    return names.get(kind, "mapping")


def _bound(item: Any) -> str:
    for name, sign in (("ge", ">="), ("gt", ">"), ("le", "<="), ("lt", "<")):
        if hasattr(item, name):
            return f"{sign} {getattr(item, name):,}"
    return ""


def _default(field: FieldInfo) -> str:
    if field.default_factory is not None:
        made = field.default_factory()  # type: ignore[call-arg]
        return f"`{made}`" if made else "empty"
    if field.default is PydanticUndefined:
        return "required"
    if field.default is None:
        return "-"
    return f"`{str(field.default).lower() if isinstance(field.default, bool) else field.default}`"


def _text(field: FieldInfo) -> str:
    return " ".join((field.description or "").split())


def dcqcn_tables() -> Iterator[str]:
    """Each preset of DCQCN with the source of every value, a section each."""
    for name in DCQCN_PRESETS:
        yield f"### `{name}`"
        values = dcqcn_preset(name, LINE_RATE_BPS) | dict(NOTIFICATION_PRESETS[name])
        rows = [(f"`{key}`", f"{item.value}", item.source) for key, item in values.items()]
        yield table(("Parameter", "Value", "Source"), rows)


TRAPS = (
    ("Estimate at the first notification", ("initial_alpha",)),
    ("Estimate in real numbers or integers", ("alpha_fraction_bits",)),
    ("Estimate rises on each notification or once per period", ("alpha_update",)),
    ("Period of the estimate", ("alpha_update_period_ns",)),
    ("Cut uses the estimate before or after its own update", ("cut_uses_old_alpha",)),
    ("Cuts on every notification or once per period", ("rate_decrease_period_ns",)),
    ("How deep a cut is", ("decrease_alpha_ratio", "min_decrease_ratio")),
    ("Target rate is lowered with the current rate", ("clamp_target_rate",)),
    ("Rate at the first notification", ("rate_on_first_cnp_bps",)),
    ("Number of steps of fast recovery", ("stage_count", "fast_recovery_stages")),
    ("Byte counter beside the timer", ("rate_increase_bytes",)),
    ("Hyper increase: step", ("hyper_increase_multiplies", "hyper_increase_bps")),
    ("Hyper increase: by which counters", ("hyper_increase_by_timer",)),
    ("Hyper increase: speed of the counters", ("hyper_increase_speedup",)),
    ("A target far above the rate is lowered (QCN)", ("high_target_divisor",)),
    ("Bounds of the rate", ("min_rate_bps", "max_rate_bps")),
    ("A waiting packet takes a changed rate", ("rearms_pacer",)),
    ("What one interval of notifications limits", ("scope", "cnp_interval_ns")),
    ("Marks inside an interval", ("mode",)),
    ("Notification with every NAK", ("cnp_on_nak",)),
)
"""Points on which implementations differ, and the keys that decide them."""


def traps_table() -> str:
    """What implementations disagree on, and what each preset has there."""
    presets = {
        name: dcqcn_preset(name, LINE_RATE_BPS) | dict(NOTIFICATION_PRESETS[name])
        for name in DCQCN_PRESETS
    }
    rows = [
        (
            topic,
            ", ".join(f"`{key}`" for key in keys),
            *(", ".join(str(values[key].value) for key in keys) for values in presets.values()),
        )
        for topic, keys in TRAPS
    ]
    return table(("Point", "Keys", *(f"`{name}`" for name in presets)), rows)


def mlx5_table() -> str:
    """mlx5's names of keys, with their units."""
    names = {**REACTION_NAMES, **NOTIFICATION_NAMES}
    rows = [(f"`{name}`", f"`{rule.key}`", rule.unit) for name, rule in names.items()]
    rows += [(f"`{name}`", "`clamp_target_rate`", "0 or 1") for name in CLAMP_NAMES]
    rows += [
        (f"`{name}`", f"`traffic_classes.cnp.{rule.key}`", rule.unit)
        for name, rule in CNP_TAG_NAMES.items()
    ]
    return table(("mlx5", "Key", "Unit"), rows)


def ecn_table() -> str:
    """Thresholds of the ECN presets in bytes, with their sources."""
    rows = []
    for name, profile in SWITCH_PRESETS.items():
        values = profile(LINE_RATE_BPS)
        numbers = [f"{values[key].value:,}" for key in ("kmin_bytes", "kmax_bytes", "pmax_ratio")]
        rows.append((f"`{name}`", *numbers, values["kmin_bytes"].source))
    return table(("Preset", "`kmin_bytes`", "`kmax_bytes`", "`pmax_ratio`", "Source"), rows)


def switch_tables() -> Iterator[str]:
    """Each kind of switch with the source of every value, a section each."""
    for name, kind in SWITCH_KINDS.items():
        yield f"### `{name}`"
        yield f"Modelled on {kind.modelled_on}."
        rows = [(f"`{key}`", f"`{item.value}`", item.source) for key, item in kind.values.items()]
        yield table(("Key below `switches`", "Value", "Source"), rows)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def joined(*blocks: str) -> str:
    """Blocks of Markdown with an empty line between them."""
    return "\n\n".join(block.strip() for block in blocks) + "\n"
