"""A lab's network as an SVG drawing: tiers of switches, NICs below them, links with their rates.

`draw_network` is the way in. It takes the job configuration that records keep, so that a lab and
the report of a run show the same picture. Nothing here knows lab files or HTML.
"""

from metrics.drawing.picture import draw_network

__all__ = ["draw_network"]
