"""The topology part of a lab file: a Clos from a few numbers, or every node and link by hand.

Nothing here expands a Clos into links: that is `emulator.lab.fabric`.
"""

from typing import Annotated, Literal

from pydantic import Field

from emulator.lab.base import LabPart

__all__ = ["Clos", "Explicit", "ExplicitLink", "ExplicitNic", "ExplicitSwitch", "Link", "Topology"]

_RateGbps = Annotated[float, Field(gt=0, le=3200)]
_DelayNs = Annotated[int, Field(ge=0, le=1_000_000_000)]
_Name = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]


class Link(LabPart):
    """Rate and delay of the links of one tier; both directions are equal."""

    rate_gbps: _RateGbps
    """Line rate, Gb/s."""
    delay_ns: _DelayNs = 500
    """One way: propagation (5 ns per metre of cable) and the pipeline of the device at its
    end. The default is a short cable and a switch with forward error correction; our choice."""


class FabricLink(Link):
    """Links between a leaf and a spine."""

    parallel: Annotated[int, Field(ge=1, le=64)] = 1
    """Links between each leaf and each spine."""


class Clos(LabPart):
    """Two tiers: every leaf is linked to every spine; without spines, a single leaf."""

    kind: Literal["clos"]
    """This form of topology."""
    leaves: Annotated[int, Field(ge=1, le=256)]
    """Leaf switches."""
    spines: Annotated[int, Field(ge=0, le=256)]
    """Spine switches; 0 only with one leaf."""
    hosts_per_leaf: Annotated[int, Field(ge=1, le=254)]
    """Hosts with one NIC each on every leaf."""
    host_link: Link
    """Host to leaf."""
    fabric_link: FabricLink | None = None
    """Leaf to spine; not needed without spines."""


class ExplicitNic(LabPart):
    """One NIC of an explicit topology."""

    name: _Name
    """Unique among all nodes."""
    rank: Annotated[int, Field(ge=0)] | None = None
    """The rank that it carries; by default its place in the list."""
    address: str | None = None
    """IPv4 address inside 198.18.0.0/15 or 127.0.0.0/8; assigned when left out."""


class ExplicitSwitch(LabPart):
    """One switch of an explicit topology."""

    name: _Name
    """Unique among all nodes."""
    ports: Annotated[int, Field(ge=1, le=1024)]
    """Number of ports; links use 0 to ports - 1."""


class ExplicitLink(LabPart):
    """One full-duplex link of an explicit topology."""

    ends: Annotated[list[str], Field(min_length=2, max_length=2)]
    """Two ends, each `node:port`; a NIC has port 0 only, and `:0` may be left out."""
    rate_gbps: _RateGbps
    """Line rate, Gb/s."""
    delay_ns: _DelayNs = 500
    """One way, as in `host_link.delay_ns`."""


class Explicit(LabPart):
    """Every node and link by hand; any graph."""

    kind: Literal["explicit"]
    """This form of topology."""
    nics: Annotated[list[ExplicitNic], Field(min_length=1, max_length=4096)]
    """NICs; one per rank."""
    switches: Annotated[list[ExplicitSwitch], Field(max_length=1024)]
    """Switches; may be empty when two NICs are linked back to back."""
    links: Annotated[list[ExplicitLink], Field(min_length=1)]
    """Links."""


Topology = Annotated[Clos | Explicit, Field(discriminator="kind")]
