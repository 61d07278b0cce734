"""Vertical lines in charts over time: what happened to links on purpose."""

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["MARKER_LIMIT", "markers"]

MARKER_LIMIT = 40
"""Most lines of a chart, the first ones."""
_COLOURS = {"down": "#b3243c", "up": "#1b9e8a", "rate": "#8e6bbf"}


def markers(events: Sequence[Mapping[str, Any]], scale: float) -> dict[str, Any]:
    """Layout options with a line for each event; `scale` is nanoseconds per unit of the axis.

    Several links that change at one instant share a line.
    """
    at_instant: dict[tuple[float, str], list[str]] = {}
    for event in events:
        if event["happened"] in _COLOURS:
            at_instant.setdefault((event["time_ns"], event["happened"]), []).append(event["link"])
    shapes, annotations = [], []
    for (time_ns, happened), links in list(at_instant.items())[:MARKER_LIMIT]:
        colour, place = _COLOURS[happened], time_ns / scale
        shapes.append(
            {
                "type": "line", "xref": "x", "yref": "paper", "x0": place, "x1": place, "y0": 0,
                "y1": 1, "line": {"color": colour, "width": 1, "dash": "dot"},
            }
        )  # fmt: skip
        others = f" and {len(links) - 1} more" if len(links) > 1 else ""
        annotations.append(
            {
                "xref": "x", "yref": "paper", "x": place, "y": 1, "xanchor": "left",
                "yanchor": "top", "showarrow": False, "textangle": 90,
                "text": f"{links[0]}{others} {happened}",
                "font": {"size": 10, "color": colour},
            }
        )  # fmt: skip
    return {"shapes": shapes, "annotations": annotations} if shapes else {}
