"""Expands a topology without a network of switches: hosts linked to each other.

A host has one NIC, and what forwards for others inside a host, a NIC's embedded switch, is a
switch of its own: the NIC's line to it has the NIC's whole rate, its lines to other hosts an equal
share each.
"""

from collections.abc import Iterator

from emulator.lab.fabric import End, Fabric
from emulator.lab.nodes import address_of, make_link, make_nic, make_switch
from emulator.lab.topology import Direct

__all__ = ["expand_direct"]


def expand_direct(topology: Direct) -> Fabric:
    """The fabric of hosts in a ring or in a full mesh."""
    pairs = list(_pairs(topology))
    degree = 2 * len(pairs) // topology.hosts
    names = [f"host{host}" for host in range(topology.hosts)]
    nics = tuple(make_nic(name, host, address_of(host)) for host, name in enumerate(names))
    switches = tuple(
        make_switch(f"{name}-switch", degree + 1, host) for host, name in enumerate(names)
    )
    inside = topology.host_link.model_copy(update={"delay_ns": 0, "cable_metres": 0.0})
    links = [
        make_link(
            f"{name}-{name}-switch",
            End(False, host, 0),
            End(True, host, 0),
            topology.host_link.rate_gbps,
            inside,
        )
        for host, name in enumerate(names)
    ]
    share_gbps = topology.host_link.rate_gbps / degree
    used = [1] * topology.hosts
    for first, second in pairs:
        a, b = End(True, first, used[first]), End(True, second, used[second])
        name = f"{names[first]}-{names[second]}"
        links.append(make_link(name, a, b, share_gbps, topology.host_link))
        used[first] += 1
        used[second] += 1
    return Fabric(nics, switches, tuple(links))


def _pairs(topology: Direct) -> Iterator[tuple[int, int]]:
    """Hosts that a line connects."""
    hosts = topology.hosts
    if topology.shape == "full_mesh":
        yield from ((a, b) for a in range(hosts) for b in range(a + 1, hosts))
    else:
        yield from ((host, (host + 1) % hosts) for host in range(hosts))
