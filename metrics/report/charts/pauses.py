"""Pauses over time as a tree: a congested port, who was paused because of it, and so on."""

from collections.abc import Iterator, Sequence
from typing import Any

from metrics.analysis.pause_trees import PauseNode, PauseTree
from metrics.presentation import duration_unit
from metrics.report.figure import Chart, axis, layout

__all__ = ["indented", "pause_picture", "root_text"]

ROW_LIMIT = 48
"""Most rows: trees with most paused time first, each from its root on."""
_STEPS = 1200
"""Pauses closer than the emulated time over this are drawn as one."""
_COLOURS = ("#cf4a5c", "#e07b39", "#c2a300", "#8e6bbf", "#2f6db5")
_INDENT = "\u2003"


def pause_picture(trees: Sequence[PauseTree], end_ns: int) -> Chart | None:
    """One row per congested port and per paused one, indented by its distance; bars are pauses."""
    rows = list(_rows(trees))
    if not rows:
        return None
    shown = rows[:ROW_LIMIT]
    scale, unit = duration_unit(float(end_ns))
    data: list[dict[str, Any]] = []
    for number, (depth, _, node) in enumerate(shown):
        if node is not None:
            data.append(_bars(number, depth, node, end_ns, scale, unit))
    labels = [
        {
            "xref": "paper", "x": 0, "xshift": -300, "xanchor": "left", "align": "left",
            "yref": "y", "y": number, "showarrow": False, "text": text,
            "font": {"size": 11, "color": "#22303c" if depth else _COLOURS[0]},
        }
        for number, (depth, text, _) in enumerate(shown)
    ]  # fmt: skip
    axes = {
        "xaxis": axis(f"emulated time, {unit}", range=[0, end_ns / scale]),
        "yaxis": axis("", range=[len(shown) - 0.4, -0.6], showticklabels=False, showgrid=False,
                      ticks=""),
    }  # fmt: skip
    note = (
        "From a congested egress port to those that were paused because of it, back to the hosts; "
        f"a bar lasts from the pause's decision to the resumption's. {len(shown)} of {len(rows)} "
        f"rows (trees with most paused time first; cap {ROW_LIMIT})."
    )
    options = {
        "annotations": labels, "showlegend": False, "barmode": "overlay", "bargap": 0.35,
        "margin": {"l": 312, "r": 18, "t": 14, "b": 48},
    }  # fmt: skip
    return Chart("Spread of pauses", note, data, layout(90 + 19 * len(shown), axes, **options))


def root_text(tree: PauseTree) -> str:
    """The congested port."""
    return f"{tree.switch}:{tree.port} to {tree.towards} is congested (priority {tree.priority})"


def indented(depth: int, node: PauseNode) -> str:
    """Who paused whom, indented."""
    return f"{_INDENT * depth}{node.switch}:{node.port} paused {node.paused}"


def _rows(trees: Sequence[PauseTree]) -> Iterator[tuple[int, str, PauseNode | None]]:
    """Depth, text and node of every row; a root has no node."""
    for tree in trees:
        yield 0, root_text(tree), None
        for depth, node in tree.walk():
            yield depth, indented(depth, node), node


def _bars(
    row: int, depth: int, node: PauseNode, end_ns: int, scale: float, unit: str
) -> dict[str, Any]:
    """The pauses of one node."""
    spans = list(_merged(node.spans, end_ns // _STEPS))
    return {
        "type": "bar",
        "orientation": "h",
        "base": [begin / scale for begin, _ in spans],
        "x": [(end - begin) / scale for begin, end in spans],
        "y": [row] * len(spans),
        "marker": {"color": _COLOURS[min(depth, len(_COLOURS)) - 1], "line": {"width": 0}},
        "hovertemplate": f"from %{{base:.5g}} for %{{x:.4g}} {unit}<extra>"
        f"{node.switch}:{node.port} paused {node.paused}</extra>",
    }


def _merged(spans: Sequence[tuple[int, int]], gap_ns: int) -> Iterator[tuple[int, int]]:
    """Spans with those that are closer than `gap_ns` as one, none shorter than that."""
    begin, end = spans[0]
    for following, last in spans[1:]:
        if following - end > gap_ns:
            yield begin, max(end, begin + gap_ns)
            begin = following
        end = last
    yield begin, max(end, begin + gap_ns)
