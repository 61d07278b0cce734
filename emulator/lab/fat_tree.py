"""Sizes a Clos of equal switches from the number of hosts and the ports of a switch.

Arithmetic only: the Clos that it comes to is expanded by `emulator.lab.clos`.
"""

import math
from collections.abc import Iterator

from emulator.lab.nodes import Complaint
from emulator.lab.topology import Clos, FabricLink, FatTree, Link

__all__ = ["shape_text", "size_fat_tree"]


def size_fat_tree(tree: FatTree, complain: Complaint) -> Clos | None:
    """The Clos with the fewest tiers, leaves and spines; `None` when there is none, told why."""
    found = _smallest(tree)
    if found is None:
        _refuse(tree, complain)
    return found


def shape_text(tree: FatTree) -> str:
    """The Clos that a tree comes to, as the keys of `kind: clos`."""
    clos = size_fat_tree(tree, lambda _path, _what, _remedy: None)
    if clos is None:
        return ""
    keys = {
        "pods": clos.pods,
        "leaves": clos.leaves,
        "spines": clos.spines,
        "hosts_per_leaf": clos.hosts_per_leaf,
        "cores_per_spine": clos.cores_per_spine,
        "fabric_link.parallel": clos.fabric_link.parallel if clos.fabric_link else 0,
        "core_link.parallel": clos.core_link.parallel if clos.core_link else 0,
    }
    return "clos: " + ", ".join(f"{key} {value}" for key, value in keys.items() if value)


def _smallest(tree: FatTree) -> Clos | None:
    nics = tree.hosts * tree.nics_per_host
    if nics <= tree.radix and not (tree.wiring == "rails" and tree.nics_per_host > 1):
        return _clos(tree, leaves=1, spines=0, hosts_per_leaf=nics)
    for share in _even_shares(tree, nics):
        found = _two_tiers(tree, nics, share) or _three_tiers(tree, nics, share)
        if found is not None:
            return found
    return None


def _even_shares(tree: FatTree, nics: int) -> Iterator[int]:
    """NICs per leaf that divide the hosts evenly and leave ports for uplinks, most first.

    No less than half of what a leaf could have: a fabric of nearly empty leaves is not meant.
    """
    step = 1 if tree.wiring == "rails" else tree.nics_per_host
    ways = tree.nics_per_host if tree.wiring == "rails" else 1
    fitting = [
        share
        for share in range(min(tree.radix - 1, nics // ways), 0, -1)
        if share % step == 0 and share + _uplinks(tree, share) <= tree.radix
    ]
    for share in fitting:
        if nics % (share * ways) == 0 and 2 * share >= fitting[0]:
            yield share


def _uplinks(tree: FatTree, share: int) -> int:
    """Uplinks of a leaf with so many NICs."""
    wanted_gbps = share * tree.host_link.rate_gbps / tree.oversubscription
    return max(1, _ceiling(wanted_gbps / _fabric_link(tree).rate_gbps))


def _two_tiers(tree: FatTree, nics: int, share: int) -> Clos | None:
    leaves, uplinks = nics // share, _uplinks(tree, share)
    for spines in _divisors(uplinks):
        if leaves * (uplinks // spines) <= tree.radix:
            return _clos(
                tree,
                leaves=leaves,
                spines=spines,
                hosts_per_leaf=share,
                fabric_parallel=uplinks // spines,
            )
    return None


def _three_tiers(tree: FatTree, nics: int, share: int) -> Clos | None:
    """Pods as large as spines without oversubscription allow."""
    leaves, spines = nics // share, _uplinks(tree, share)
    ratio = _fabric_link(tree).rate_gbps / _core_link(tree).rate_gbps
    for pods in range(2, min(64, leaves) + 1):
        leaves_per_pod = leaves // pods
        uplinks = max(1, _ceiling(leaves_per_pod * ratio))
        rails = tree.nics_per_host if tree.wiring == "rails" else 1
        whole = leaves % pods == 0 and leaves_per_pod % rails == 0
        if not whole or leaves_per_pod + uplinks > tree.radix:
            continue
        for cores in _divisors(uplinks):
            if cores <= 64 and pods * (uplinks // cores) <= tree.radix:
                return _clos(
                    tree,
                    leaves=leaves_per_pod,
                    spines=spines,
                    hosts_per_leaf=share,
                    pods=pods,
                    cores_per_spine=cores,
                    core_parallel=uplinks // cores,
                )
    return None


def _clos(
    tree: FatTree,
    *,
    leaves: int,
    spines: int,
    hosts_per_leaf: int,
    fabric_parallel: int = 1,
    pods: int = 1,
    cores_per_spine: int = 0,
    core_parallel: int = 1,
) -> Clos | None:
    """The Clos, unless a number is beyond what a Clos of a lab may have."""
    parallel_limit, switch_limit, host_limit = 64, 256, 254
    if max(fabric_parallel, core_parallel) > parallel_limit or hosts_per_leaf > host_limit:
        return None
    if max(leaves, spines) > switch_limit:
        return None
    return Clos(
        kind="clos",
        leaves=leaves,
        spines=spines,
        hosts_per_leaf=hosts_per_leaf,
        nics_per_host=tree.nics_per_host,
        wiring=tree.wiring,
        pods=pods,
        cores_per_spine=cores_per_spine,
        host_link=tree.host_link,
        fabric_link=_tier(_fabric_link(tree), fabric_parallel) if spines else None,
        core_link=_tier(_core_link(tree), core_parallel) if cores_per_spine else None,
    )


def _tier(link: Link, parallel: int) -> FabricLink:
    return FabricLink(**link.model_dump(), parallel=parallel)


def _fabric_link(tree: FatTree) -> Link:
    return tree.fabric_link or tree.host_link


def _core_link(tree: FatTree) -> Link:
    return tree.core_link or _fabric_link(tree)


def _divisors(number: int) -> Iterator[int]:
    """Divisors, the smallest first."""
    return (divisor for divisor in range(1, number + 1) if number % divisor == 0)


def _ceiling(ratio: float) -> int:
    """The next whole number, forgiving what a division of rates loses."""
    return math.ceil(ratio - 1e-9)


def _refuse(tree: FatTree, complain: Complaint) -> None:
    nics = "1 NIC" if tree.nics_per_host == 1 else f"{tree.nics_per_host} NICs"
    what = (
        f"is {tree.radix}, with which no Clos of two or three tiers carries {tree.hosts} hosts "
        f"with {nics} evenly at {tree.oversubscription:g} to 1"
    )
    fitting = _nearest_fitting(tree)
    remedy = "give a larger radix or more oversubscription"
    if fitting:
        remedy += f", or {' or '.join(map(str, fitting))} hosts"
    complain(("topology", "radix"), what, remedy)


def _nearest_fitting(tree: FatTree) -> list[int]:
    """The nearest numbers of hosts below and above that fit, within one switch's ports."""
    reach = range(1, tree.radix + 1)
    ways = ([tree.hosts - step for step in reach], [tree.hosts + step for step in reach])
    fitting = (
        next((n for n in way if n > 0 and _smallest(tree.model_copy(update={"hosts": n}))), None)
        for way in ways
    )
    return [number for number in fitting if number is not None]
