"""A chart: title, note and a Plotly figure as plain JSON, with the look that all charts share.

Arrays are packed as base64 so that the page stays small. Nothing here knows records.
"""

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PALETTE", "Chart", "axis", "layout", "logarithmic", "packed"]

PALETTE = (
    "#2f6db5", "#e07b39", "#1b9e8a", "#8e6bbf", "#cf4a5c", "#7a9a01", "#63a7d8", "#b57aa5",
)  # fmt: skip
"""Colours of series that have no colour of their own."""
_INK, _MUTED, _GRID = "#22303c", "#5f6f7f", "#e8edf2"
_LOG_STEPS = ((3, 1), (0.5, "D2"), (0, "D1"))
"""Decades that an axis spans at least, and what its numbers are: powers of ten; 1, 2, 5; 1 to 9."""
_FONT = "Inter, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart of the page."""

    title: str
    note: str
    """What is shown, how it was chosen or capped, and what ratios are divided by."""
    data: list[dict[str, Any]]
    layout: dict[str, Any]
    width: str = "wide"
    """Of the page: `wide` is all of it, `half` or `third`."""

    def figure(self) -> dict[str, Any]:
        """What Plotly takes."""
        return {"data": self.data, "layout": self.layout}


def packed(values: NDArray[Any], dtype: str = "f8") -> dict[str, str]:
    """An array in Plotly's typed form; `dtype` is f4, f8, i4, u1, ..."""
    array = np.ascontiguousarray(values, dtype=np.dtype(f"<{dtype}"))
    packed_array = {"dtype": dtype, "bdata": base64.b64encode(array.tobytes()).decode("ascii")}
    if array.ndim > 1:
        packed_array["shape"] = ", ".join(str(length) for length in array.shape)
    return packed_array


def axis(title: str, **options: Any) -> dict[str, Any]:
    """An axis with its title (unit included) in the shared look."""
    return {
        "title": {"text": title, "font": {"size": 12, "color": _MUTED}, "standoff": 8},
        "gridcolor": _GRID,
        "zeroline": False,
        "linecolor": "#c9d2db",
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": "#c9d2db",
        "tickfont": {"size": 11, "color": _MUTED},
        "automargin": True,
        **options,
    }


def logarithmic(title: str, values: NDArray[Any]) -> dict[str, Any]:
    """A logarithmic axis for `values`, those above 0, with its numbers written in full."""
    shown = values[values > 0]
    decades = math.log10(shown.max() / shown.min()) if len(shown) else 0.0
    step = next(step for least, step in _LOG_STEPS if decades >= least)
    # A single value has no range of its own.
    place = math.log10(shown.max()) if len(shown) and decades == 0 else None
    around = {} if place is None else {"range": [place - 0.2, place + 0.2]}
    return axis(title, type="log", dtick=step, tickformat=".4~g", tickangle=0, **around)


def layout(height: int, axes: Mapping[str, Mapping[str, Any]], **options: Any) -> dict[str, Any]:
    """A layout of `height` pixels in the shared look."""
    return {
        "height": height,
        "autosize": True,
        "margin": {"l": 62, "r": 18, "t": 44, "b": 48},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "#ffffff",
        "font": {"family": _FONT, "size": 12, "color": _INK},
        "modebar": {"bgcolor": "rgba(0,0,0,0)", "color": "#b6c0ca", "activecolor": "#2f6db5"},
        "hoverlabel": {"font": {"family": _FONT, "size": 12}},
        "legend": {
            "orientation": "h", "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom",
            "font": {"size": 11.5},
        },
        **axes,
        **options,
    }  # fmt: skip
