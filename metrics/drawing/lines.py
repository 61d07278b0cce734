"""The lines between boxes: straight between tiers, arcs over the boxes between within one."""

from metrics.drawing.elements import number
from metrics.drawing.layout import Bundle

__all__ = ["ends", "halves", "point", "xy"]


def ends(bundle: Bundle) -> tuple[tuple[float, float], tuple[float, float]]:
    """Both ends of a bundle's line."""
    a, b = bundle.a, bundle.b
    if a.tier != b.tier:
        return (a.middle, a.y), (b.middle, b.y + b.height)
    if bundle.bend:
        return (a.middle, a.y), (b.middle, b.y)
    right, left = a.x + a.width, b.x
    if a.x > b.x:
        right, left = a.x, b.x + b.width
    return (right, a.y + a.height / 2), (left, b.y + b.height / 2)


def point(bundle: Bundle, part: float) -> tuple[float, float]:
    """A point of the line, `part` of the way from the first box to the second."""
    (ax, ay), (bx, by) = ends(bundle)
    rise = 2 * bundle.bend * part * (1 - part)
    return ax + (bx - ax) * part, ay + (by - ay) * part - rise


def halves(bundle: Bundle) -> tuple[str, str]:
    """The line's half at the first box and the one at the second, as paths."""
    (ax, ay), (bx, by) = ends(bundle)
    mx, my = point(bundle, 0.5)
    start, middle, end = xy(ax, ay), xy(mx, my), xy(bx, by)
    if not bundle.bend:
        return f"M{start}L{middle}", f"M{end}L{middle}"
    # A parabola cut at its vertex: each half's control point is half-way to the whole one's.
    cy = (ay + by) / 2 - bundle.bend
    first = xy((ax + mx) / 2, (ay + cy) / 2)
    second = xy((bx + mx) / 2, (by + cy) / 2)
    return f"M{start}Q{first} {middle}", f"M{end}Q{second} {middle}"


def xy(x: float, y: float) -> str:
    """A point as paths have it."""
    return f"{number(x)},{number(y)}"
