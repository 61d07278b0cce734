"""How figures are written for people: durations, sizes, shares, counts, colours of collectives."""

import math
from collections.abc import Mapping

__all__ = [
    "KIND_COLOURS", "MISSING", "bandwidth_text", "colour_of", "count_text", "duration_text",
    "duration_unit", "kind_text", "rate_text", "share_text", "size_text",
]  # fmt: skip

MISSING = "n/a"
"""Shown where there is no figure, or too few samples for it."""

KIND_COLOURS: Mapping[str, str] = {
    "compute": "#c3ccd6",
    "all_reduce": "#2f6db5",
    "reduce_scatter": "#63a7d8",
    "all_gather": "#1b9e8a",
    "all_to_all": "#e07b39",
    "broadcast": "#8e6bbf",
    "reduce": "#b57aa5",
    "gather": "#7a9a01",
    "scatter": "#c2a300",
    "barrier": "#45525f",
    "send_recv": "#cf4a5c",
}
"""One colour for each kind of span, the same in every chart."""

_DURATIONS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
_SIZES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def colour_of(kind: str) -> str:
    """Colour of a kind; a neutral one for a kind that isn't known."""
    return KIND_COLOURS.get(kind, "#6b7a89")


def kind_text(kind: str) -> str:
    """`all_reduce` as `all-reduce`."""
    return kind.replace("_", "-").replace("send-recv", "send/recv")


def duration_unit(largest_ns: float) -> tuple[float, str]:
    """Nanoseconds per unit, and the unit in which values up to `largest_ns` read well."""
    for scale, unit in _DURATIONS:
        if largest_ns >= scale:
            return scale, unit
    return 1.0, "ns"


def duration_text(ns: float | None) -> str:
    """Nanoseconds with three or four significant digits: `3.421 ms`."""
    if ns is None:
        return MISSING
    scale, unit = duration_unit(abs(ns))
    return f"{_digits(ns / scale)} {unit}"


def size_text(size_bytes: float | None) -> str:
    """Bytes in binary units: `7.63 MiB`; whole numbers without decimals."""
    if size_bytes is None:
        return MISSING
    for scale, unit in _SIZES:
        if size_bytes >= scale:
            value = size_bytes / scale
            return f"{value:.0f} {unit}" if value == int(value) else f"{_digits(value)} {unit}"
    return f"{size_bytes:.0f} B"


def rate_text(bps: float | None) -> str:
    """Bits per second as `400 Gb/s`."""
    if bps is None:
        return MISSING
    for scale, unit in ((1e12, "Tb/s"), (1e9, "Gb/s"), (1e6, "Mb/s"), (1e3, "kb/s")):
        if bps >= scale:
            return f"{bps / scale:.4g} {unit}"
    return f"{bps:.4g} b/s"


def bandwidth_text(gigabytes: float | None) -> str:
    """GB/s (10^9 bytes a second), as nccl-tests prints them."""
    return MISSING if gigabytes is None else f"{gigabytes:.2f}"


def share_text(ratio: float | None) -> str:
    """A ratio as per cent with one decimal."""
    return MISSING if ratio is None or not math.isfinite(ratio) else f"{100 * ratio:.1f} %"


def count_text(number: float | None) -> str:
    """A whole number with thin groups of thousands."""
    return MISSING if number is None else f"{int(number):,}".replace(",", "\u202f")


def _digits(value: float) -> str:
    """About four significant digits, never an exponent."""
    if value == 0:
        return "0"
    decimals = max(0, 3 - math.floor(math.log10(abs(value))))
    return f"{value:.{min(decimals, 3)}f}"
