"""Expands a Clos of two or three tiers into nodes and links.

Ports of a leaf: its hosts first, then the uplinks, spine by spine. Ports of a spine: the leaves of
its pod, then its cores. Every choice is by index, so that names and order are always the same.
"""

from collections.abc import Iterator

from emulator.lab.fabric import End, Fabric, FabricLink, Switch
from emulator.lab.nodes import Complaint, address_of, make_link, make_nic, make_switch
from emulator.lab.topology import Clos
from emulator.lab.topology import FabricLink as Tier

__all__ = ["expand_clos"]


def expand_clos(clos: Clos, complain: Complaint) -> Fabric:
    """The fabric of a Clos; what is missing is told to `complain`."""
    _check(clos, complain)
    shape = _Shape(clos)
    nics = [
        make_nic(shape.nic_name(rank), rank, address_of(rank), shape.host_name(rank))
        for rank in range(shape.nic_count)
    ]
    return Fabric(tuple(nics), tuple(shape.switches()), tuple(shape.links()))


def _check(clos: Clos, complain: Complaint) -> None:
    leaves = clos.leaves * clos.pods
    if clos.spines == 0 and leaves > 1:
        what = f"is 0 with {leaves} leaves, which leaves them unconnected"
        complain(("topology", "spines"), what, "give at least one spine, or one leaf")
    if clos.spines > 0 and clos.fabric_link is None:
        complain(("topology", "fabric_link"), "is missing", "add `fabric_link: {rate_gbps: ...}`")
    if clos.pods > 1 and clos.cores_per_spine == 0:
        what = f"is 0 with {clos.pods} pods, which leaves them unconnected"
        complain(("topology", "cores_per_spine"), what, "give at least 1, or one pod")
    if clos.cores_per_spine > 0 and clos.core_link is None:
        complain(("topology", "core_link"), "is missing", "add `core_link: {rate_gbps: ...}`")
    if clos.wiring == "rails" and clos.leaves % clos.nics_per_host:
        what = f"is {clos.leaves}, which {clos.nics_per_host} rails don't divide"
        complain(("topology", "leaves"), what, "give a multiple of nics_per_host")
    if clos.wiring == "leaf" and clos.hosts_per_leaf % clos.nics_per_host:
        what = f"is {clos.hosts_per_leaf} NICs of hosts with {clos.nics_per_host}"
        complain(("topology", "hosts_per_leaf"), what, "give a multiple of nics_per_host")


class _Shape:
    """Numbers and names that follow from a Clos."""

    def __init__(self, clos: Clos) -> None:
        self.clos = clos
        self.uplinks = clos.fabric_link.parallel if clos.fabric_link else 1
        self.core_links = clos.core_link.parallel if clos.core_link else 1
        self.leaf_count = clos.pods * clos.leaves
        self.spine_count = clos.pods * clos.spines
        self.core_count = clos.spines * clos.cores_per_spine
        self.nic_count = self.leaf_count * clos.hosts_per_leaf

    def nic_name(self, rank: int) -> str:
        per_host = self.clos.nics_per_host
        host, nic = divmod(rank, per_host)
        return f"host{rank}" if per_host == 1 else f"host{host}-nic{nic}"

    def host_name(self, rank: int) -> str:
        return f"host{rank // self.clos.nics_per_host}"

    def leaf_port(self, rank: int) -> tuple[int, int]:
        """Leaf and port that a NIC is on.

        `leaf`: NICs fill one leaf after the other. `rails`: NIC i of every host is on leaf i of its
        group, so that equal NICs reach each other over one switch.
        """
        per_leaf, per_host = self.clos.hosts_per_leaf, self.clos.nics_per_host
        if self.clos.wiring == "leaf":
            return divmod(rank, per_leaf)
        host, rail = divmod(rank, per_host)
        group, port = divmod(host, per_leaf)
        return group * per_host + rail, port

    def switches(self) -> Iterator[Switch]:
        """Leaves, then spines, then cores."""
        clos = self.clos
        spine_ports = clos.leaves * self.uplinks + clos.cores_per_spine * self.core_links
        tiers = (
            ("leaf", self.leaf_count, clos.hosts_per_leaf + clos.spines * self.uplinks),
            ("spine", self.spine_count, spine_ports),
            ("core", self.core_count, clos.pods * self.core_links),
        )
        index = 0
        for tier, count, ports in tiers:
            for number in range(count):
                yield make_switch(f"{tier}{number}", ports, index)
                index += 1

    def links(self) -> Iterator[FabricLink]:
        """NIC by NIC, then leaf by leaf, then spine by spine."""
        yield from self._host_links()
        if self.clos.fabric_link is not None:
            yield from self._leaf_links(self.clos.fabric_link)
        if self.clos.core_link is not None:
            yield from self._core_links(self.clos.core_link)

    def _host_links(self) -> Iterator[FabricLink]:
        for rank in range(self.nic_count):
            leaf, port = self.leaf_port(rank)
            name = f"{self.nic_name(rank)}-leaf{leaf}"
            ends = End(False, rank, 0), End(True, leaf, port)
            yield make_link(name, *ends, self.clos.host_link.rate_gbps, self.clos.host_link)

    def _leaf_links(self, tier: Tier) -> Iterator[FabricLink]:
        clos = self.clos
        for leaf in range(self.leaf_count):
            pod, place = divmod(leaf, clos.leaves)
            for number in range(clos.spines):
                spine = pod * clos.spines + number
                for lane in range(tier.parallel):
                    up = clos.hosts_per_leaf + number * tier.parallel + lane
                    down = place * tier.parallel + lane
                    yield make_link(
                        _name(f"leaf{leaf}-spine{spine}", lane, tier),
                        End(True, leaf, up),
                        End(True, self.leaf_count + spine, down),
                        tier.rate_gbps,
                        tier,
                    )

    def _core_links(self, tier: Tier) -> Iterator[FabricLink]:
        """Spine s of every pod is linked to the cores of plane s and to no others."""
        clos = self.clos
        first = clos.leaves * self.uplinks
        for spine in range(self.spine_count):
            pod, plane = divmod(spine, clos.spines)
            for number in range(clos.cores_per_spine):
                core = plane * clos.cores_per_spine + number
                for lane in range(tier.parallel):
                    up = first + number * tier.parallel + lane
                    down = pod * tier.parallel + lane
                    yield make_link(
                        _name(f"spine{spine}-core{core}", lane, tier),
                        End(True, self.leaf_count + spine, up),
                        End(True, self.leaf_count + self.spine_count + core, down),
                        tier.rate_gbps,
                        tier,
                    )


def _name(name: str, lane: int, tier: Tier) -> str:
    return f"{name}.{lane}" if tier.parallel > 1 else name
