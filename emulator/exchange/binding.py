"""The binding file: what a topology file of another tool does not say.

Passive data with units in the key names, strict as a lab file.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from emulator.lab.base import LabPart

__all__ = ["Annotation", "Attribute", "Binding", "BoundNic", "BoundSwitch", "LinkRule", "RoleRule"]


class RoleRule(LabPart):
    """Nodes that are not what the file makes them look like; the first rule that fits holds."""

    nodes: str = "*"
    """Names in the file; a glob such as `frr*`."""
    kind: str = "*"
    """Kinds of node (containerlab) or device (InfraGraph); a glob."""
    group: str = "*"
    """Groups of nodes (containerlab); a glob."""
    role: Literal["host", "switch", "ignored"]
    """`host`: every link of it is on a NIC; `switch`; or `ignored`, with its links."""


class BoundNic(LabPart):
    """One NIC; those that are not named get the ranks that are left, in the order of the file."""

    at: str
    """Its end of a link, as the file has it: `h1:eth1` (containerlab), `host.0.nic.1`
    (InfraGraph)."""
    name: str | None = None
    """Name in the lab; left out, from its host and interface."""
    rank: Annotated[int, Field(ge=0)] | None = None
    """The rank that it carries."""
    address: str | None = None
    """IPv4 address; left out, assigned."""
    management_address: str | None = None
    """Management address of its host."""


class BoundSwitch(LabPart):
    """One switch."""

    at: str
    """Its name in the file: `leaf1` (containerlab), `leafsw.0` (InfraGraph)."""
    name: str | None = None
    """Name in the lab; left out, from the file."""
    ports: Annotated[int, Field(ge=1, le=1024)] | None = None
    """Number of ports; left out, as many as the file says or as links use."""
    port_names: list[str] = Field(default_factory=list)
    """The file's names of its ports, from port 0; left out, sorted by name."""
    management_address: str | None = None
    """Management address; left out, the file's."""


class LinkRule(LabPart):
    """Rate and delay of links; the first rule that fits holds, over what the file says."""

    between: Annotated[list[str], Field(min_length=2, max_length=2)] = Field(
        default_factory=lambda: ["*", "*"]
    )
    """Names of the two nodes in the file, in either order; globs such as `leaf*`."""
    link: str = "*"
    """Name of the link (InfraGraph); a glob."""
    rate_gbps: Annotated[float, Field(gt=0, le=3200)] | None = None
    """Line rate, Gb/s; left out, the file's."""
    delay_ns: Annotated[int, Field(ge=0, le=1_000_000_000)] | None = None
    """One way, ns; left out, the file's, else the lab's default."""
    cable_metres: Annotated[float, Field(ge=0, le=200_000)] | None = None
    """Length of the cable; adds 5 ns per metre to the delay."""


class Attribute(LabPart):
    """One attribute of an annotation."""

    attribute: str
    """`rank` of an accelerator or NIC, or `ipaddress` of a NIC; others are passed over."""
    value: str
    """As text, for InfraGraph's attributes are."""


class Annotation(LabPart):
    """What InfraGraph's annotations of nodes say, as they are; `nics` hold over them."""

    name: str
    """Nodes, for example `host[0]xpu[0:2]` or `host.0.nic.1`; accelerator k of a host is beside its
    k-th linked NIC."""
    attributes: list[Attribute]
    """What they have."""


class Binding(LabPart):
    """A binding file."""

    name: str | None = None
    """Name of the lab; left out, the file's."""
    description: str = ""
    """What the lab is for."""
    roles: list[RoleRule] = Field(default_factory=list)
    """What nodes are."""
    nics: list[BoundNic] = Field(default_factory=list)
    """Ranks and addresses."""
    annotations: list[Annotation] = Field(default_factory=list)
    """Ranks and addresses as InfraGraph has them."""
    switches: list[BoundSwitch] = Field(default_factory=list)
    """Ports and management addresses."""
    links: list[LinkRule] = Field(default_factory=list)
    """Rates and delays."""
    lab: dict[str, Any] = Field(default_factory=dict)
    """All other keys of the lab file, as they are: `switches`, `congestion_control`, ..."""
