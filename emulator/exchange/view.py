"""A checked lab as exports see it: hosts with interfaces, switches with ports, links between them.

What an explicit topology says about names on the devices is kept; other labs get plain ones.
"""

from dataclasses import dataclass, field
from typing import Any

from emulator.lab import LoadedLab
from emulator.lab.fabric import End
from emulator.lab.topology import Explicit, ExplicitNic, ExplicitSwitch

__all__ = ["LabView", "LinkView", "view_of"]


@dataclass(frozen=True, slots=True)
class LinkView:
    """One link; ends are NICs or switch ports by index."""

    ends: tuple[End, End]
    rate_gbps: float
    delay_ns: float


@dataclass(frozen=True, slots=True)
class LabView:
    """What exports are made from."""

    loaded: LoadedLab
    hosts: dict[str, list[int]]
    """Host -> its NICs (indices), in the order of their ranks."""
    links: list[LinkView]
    nics: dict[str, ExplicitNic] = field(default_factory=dict)
    """NIC -> what an explicit topology says of it."""
    switches: dict[str, ExplicitSwitch] = field(default_factory=dict)

    def interface(self, nic: int) -> str | None:
        """Name of a NIC's interface, if the lab says."""
        given = self.nics.get(self.loaded.fabric.nics[nic].name)
        return given.interface if given else None

    def port_name(self, end: End) -> str | None:
        """Name of a switch's port, if the lab says."""
        given = self.switches.get(self.loaded.fabric.switches[end.index].name)
        names = given.port_names if given else []
        return names[end.port] if end.port < len(names) else None

    def host_management(self, host: str) -> str | None:
        """Management address of a host, if the lab says."""
        names = [self.loaded.fabric.nics[nic].name for nic in self.hosts[host]]
        found = [self.nics[name].management_address for name in names if name in self.nics]
        return next((address for address in found if address), None)

    def switch_management(self, switch: str) -> str | None:
        """Management address of a switch, if the lab says."""
        given = self.switches.get(switch)
        return given.management_address if given else None

    def binding_head(self) -> dict[str, Any]:
        """Name and description, as a binding has them."""
        lab = self.loaded.lab
        head = {"name": lab.name}
        return head | ({"description": lab.description} if lab.description else {})

    def binding_rest(self) -> dict[str, Any]:
        """All settings but the topology, as a binding has them."""
        rest = self.loaded.lab.model_dump(
            mode="json", exclude={"name", "description", "topology"}, exclude_unset=True
        )
        return {"lab": rest} if rest else {}


def view_of(loaded: LoadedLab) -> LabView:
    """The lab as exports see it."""
    hosts: dict[str, list[int]] = {}
    for index, nic in enumerate(loaded.fabric.nics):
        hosts.setdefault(nic.host, []).append(index)
    links = [
        LinkView((link.a, link.b), _whole(link.rate_bps / 1e9), _whole(link.delay_ps / 1e3))
        for link in loaded.fabric.links
    ]
    topology = loaded.lab.topology
    if not isinstance(topology, Explicit):
        return LabView(loaded, hosts, links)
    nics = {nic.name: nic for nic in topology.nics}
    return LabView(loaded, hosts, links, nics, {item.name: item for item in topology.switches})


def _whole(value: float) -> float:
    """400 rather than 400.0."""
    return int(value) if value == int(value) else value
