"""The topology part of a lab file: a Clos from a few numbers, or every node and link by hand.

Nothing here expands a Clos into links: that is `emulator.lab.fabric`.
"""

from typing import Annotated, Literal

from pydantic import Field

from emulator.lab.base import LabPart

__all__ = [
    "Clos",
    "Direct",
    "Explicit",
    "ExplicitLink",
    "ExplicitNic",
    "ExplicitSwitch",
    "FatTree",
    "Link",
    "Topology",
]

_RateGbps = Annotated[float, Field(gt=0, le=3200)]
_DelayNs = Annotated[int, Field(ge=0, le=1_000_000_000)]
_CableMetres = Annotated[float, Field(ge=0, le=200_000)]
_Label = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[^\s:]+$")]
_Host = Annotated[str, Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9_.:-]+$")]
_Name = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]


class Link(LabPart):
    """Rate and delay of the links of one tier; both directions are equal."""

    rate_gbps: _RateGbps
    """Line rate, Gb/s."""
    delay_ns: _DelayNs = 500
    """One way: propagation (5 ns per metre of cable) and the pipeline of the device at its
    end. The default is a short cable and a switch with forward error correction; our choice."""
    cable_metres: _CableMetres = 0.0
    """Length of a cable that `delay_ns` does not hold: 5 ns per metre are added to it. Source:
    light in fibre and signals in copper go at about two thirds of the speed of light."""


class FabricLink(Link):
    """Links between two tiers of switches."""

    parallel: Annotated[int, Field(ge=1, le=64)] = 1
    """Links between each pair of switches that the tier connects."""


class Clos(LabPart):
    """Two or three tiers of switches, from a few numbers.

    Every leaf is linked to every spine of its pod, and spine s of every pod to the same cores;
    without spines there is a single leaf.
    """

    kind: Literal["clos"]
    """This form of topology."""
    leaves: Annotated[int, Field(ge=1, le=256)]
    """Leaf switches in each pod."""
    spines: Annotated[int, Field(ge=0, le=256)]
    """Spine switches in each pod; 0 only with one leaf."""
    hosts_per_leaf: Annotated[int, Field(ge=1, le=254)]
    """Ports of a leaf that NICs are on; with one NIC per host, its hosts."""
    nics_per_host: Annotated[int, Field(ge=1, le=16)] = 1
    """NICs of one host, one rank each; consecutive ranks are on one host."""
    wiring: Literal["leaf", "rails"] = "leaf"
    """All NICs of a host on one leaf; or NIC i of every host on leaf i of a group of as many
    leaves as a host has NICs, so that equal NICs are one switch apart."""
    pods: Annotated[int, Field(ge=1, le=64)] = 1
    """Pods; more than one need cores."""
    cores_per_spine: Annotated[int, Field(ge=0, le=64)] = 0
    """Core switches above each spine; those of spine s are shared by all pods."""
    host_link: Link
    """Host to leaf."""
    fabric_link: FabricLink | None = None
    """Leaf to spine; not needed without spines."""
    core_link: FabricLink | None = None
    """Spine to core; not needed without cores."""


class FatTree(LabPart):
    """A Clos of equal switches, sized from the number of hosts and the ports of a switch.

    With as few tiers, leaves and spines as will do; `rankwire lab show` prints the Clos that it
    comes to. Only leaves are oversubscribed.
    """

    kind: Literal["fat_tree"]
    """This form of topology."""
    hosts: Annotated[int, Field(ge=1, le=4096)]
    """Hosts, spread evenly over the leaves, each at least half as full as it can be."""
    nics_per_host: Annotated[int, Field(ge=1, le=16)] = 1
    """NICs of one host, one rank each; consecutive ranks are on one host."""
    radix: Annotated[int, Field(ge=2, le=1024)]
    """Ports of every switch."""
    oversubscription: Annotated[float, Field(ge=1, le=64)] = 1.0
    """Bandwidth of a leaf's hosts over that of its uplinks, at most; 1 is non-blocking."""
    wiring: Literal["leaf", "rails"] = "leaf"
    """As in a Clos: a host on one leaf, or on as many as it has NICs."""
    host_link: Link
    """Host to leaf."""
    fabric_link: Link | None = None
    """Leaf to spine; left out, as `host_link`."""
    core_link: Link | None = None
    """Spine to core, if a third tier is needed; left out, as `fabric_link`."""


class Direct(LabPart):
    """Hosts linked to each other without switches between them.

    Each host forwards for others: a switch of its own, behind its NIC, stands for the NIC's
    embedded one. Its lines share the NIC's rate equally, so that hosts of any shape send as much.
    """

    kind: Literal["direct"]
    """This form of topology."""
    shape: Literal["ring", "full_mesh"]
    """Every host is linked to two others, or to all."""
    hosts: Annotated[int, Field(ge=3, le=256)]
    """Hosts with one NIC each."""
    host_link: Link
    """Rate of a NIC, shared out to its lines, and delay of each line; inside a host there is none.
    """


class ExplicitNic(LabPart):
    """One NIC of an explicit topology."""

    name: _Name
    """Unique among all nodes."""
    rank: Annotated[int, Field(ge=0)] | None = None
    """The rank that it carries; by default its place in the list."""
    address: str | None = None
    """IPv4 address inside 198.18.0.0/15 or 127.0.0.0/8; assigned when left out."""
    host: _Name | None = None
    """Host that the NIC is in; left out, one of its own with the NIC's name."""
    interface: _Label | None = None
    """Name of the interface on its host; for exports."""
    management_address: _Host | None = None
    """Management address of its host; for exports, nothing connects to it."""
    rate_gbps: _RateGbps | None = None
    """Rate of its port, Gb/s; a link must have the rate of both its ends."""


class ExplicitSwitch(LabPart):
    """One switch of an explicit topology."""

    name: _Name
    """Unique among all nodes."""
    ports: Annotated[int, Field(ge=1, le=1024)]
    """Number of ports; links use 0 to ports - 1."""
    port_names: Annotated[list[_Label], Field(max_length=1024)] = Field(default_factory=list)
    """Names of the ports from 0, as on the device; ends of links may use them."""
    management_address: _Host | None = None
    """Management address; for exports, nothing connects to it."""
    rate_gbps: _RateGbps | None = None
    """Rate of its ports, Gb/s; a link must have the rate of both its ends."""


class ExplicitLink(LabPart):
    """One full-duplex link of an explicit topology."""

    ends: Annotated[list[str], Field(min_length=2, max_length=2)]
    """Two ends, each `node:port`; a NIC has port 0 only, and `:0` may be left out. Two nodes may
    have several links, each with ports of its own; a node is never linked to itself."""
    rate_gbps: _RateGbps | None = None
    """Line rate, Gb/s; left out, that of its ends."""
    delay_ns: _DelayNs = 500
    """One way, as in `host_link.delay_ns`."""
    cable_metres: _CableMetres = 0.0
    """As in `host_link.cable_metres`."""


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


Topology = Annotated[Clos | FatTree | Direct | Explicit, Field(discriminator="kind")]
