"""What links do to frames on purpose, and the directions that a rule means."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Annotated, Literal

from pydantic import Field

from emulator.lab.base import LabPart
from emulator.lab.fabric import Fabric

__all__ = ["Impairment", "directions"]

_Ratio = Annotated[float, Field(ge=0, le=1)]
_Delay = Annotated[int, Field(ge=0, le=10**12)]
_Kind = Literal["send", "write", "read_request", "read_response", "acknowledge", "cnp", "pause"]
_OFFSETS = {"a_to_b": (0,), "b_to_a": (1,), "both": (0, 1)}


class Impairment(LabPart):
    """What some directions of links do to some frames by chance, seeded; off in every default.

    Ratios are of the frames that the rule applies to. Of the rules of a direction, the first that
    names a frame's kind holds.
    """

    links: str = "*"
    """Links of this name; a glob. `rankwire lab show` lists names and ends."""
    direction: Literal["a_to_b", "b_to_a", "both"] = "both"
    """Direction: from the end that is listed first, to it, or both."""
    packets: list[_Kind] = Field(default_factory=list)
    """Kinds of frames; where these and `opcodes` name none, all but pause frames."""
    opcodes: list[str] = Field(default_factory=list)
    """Opcodes beside them, as the specification names them: RC_RDMA_WRITE_LAST_WITH_IMMEDIATE."""
    loss_ratio: _Ratio = 0.0
    """Share that vanishes."""
    corruption_ratio: _Ratio = 0.0
    """Share of which one bit of payload, pad or ICRC is flipped: switches carry it on, the NIC that
    it reaches counts it in `rx_icrc_errors` and drops it. A damaged pause frame vanishes."""
    duplication_ratio: _Ratio = 0.0
    """Share that arrives twice."""
    reordering_ratio: _Ratio = 0.0
    """Share that arrives `reordering_ns` later, so that others overtake it."""
    reordering_ns: _Delay = 10_000
    """How much later a reordered frame arrives; our choice."""
    delay_ns: _Delay = 0
    """Delay of every frame, beside the link's own."""
    jitter_ns: _Delay = 0
    """Further delay, uniform from 0 to this; the order is kept."""


def directions(rule: Impairment, fabric: Fabric) -> Iterator[int]:
    """Directions that the rule means: twice the index of the link, plus one from its end b."""
    for index, link in enumerate(fabric.links):
        if fnmatchcase(link.name, rule.links):
            yield from (2 * index + offset for offset in _OFFSETS[rule.direction])
