"""Cabling: whether a switch is forgotten, or wired otherwise than the others of its tier.

Nothing of this is an error, for any graph is a network; it is what a wrong or missing cable looks
like in a fabric that is meant to be regular.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from emulator.doctor.diagnosis import Diagnosis, Level
from emulator.lab import LoadedLab
from emulator.lab.fabric import Fabric

__all__ = ["cabling_rules"]

_LEAST_ALIKE = 3
"""Switches that must agree before another is called different."""


def cabling_rules(loaded: LoadedLab) -> Iterator[Diagnosis]:
    """Findings about the cables between switches."""
    if len(loaded.fabric.switches) > 1:
        yield _unused(loaded.fabric)
        yield _uneven(loaded.fabric)


def _unused(fabric: Fabric) -> Diagnosis:
    rule = "every switch is on a path"
    hops = fabric.switch_hops
    near = sorted({entry[0] for entry in fabric.attachment if entry is not None})
    between = hops[np.ix_(near, near)]
    unused = []
    for switch in set(range(len(fabric.switches))) - set(near):
        there = hops[near, switch]
        if (there < 0).all() or not (there[:, None] + there[None, :] == between).any():
            unused.append(fabric.switches[switch].name)
    if not unused:
        return Diagnosis(Level.GOOD, rule, "shortest paths use all of them")
    finding = f"no shortest path between two NICs uses {_listed(sorted(unused))}"
    return Diagnosis(Level.WARNING, rule, finding, "look for a missing or misplaced link")


def _uneven(fabric: Fabric) -> Diagnosis:
    rule = "switches of a tier are wired alike"
    tier = _tiers(fabric)
    rates = {switch: _rates_bps(fabric, switch, tier) for switch in tier}
    for number in sorted(set(tier.values())):
        members = [switch for switch in tier if tier[switch] == number]
        (usual, count), *_ = Counter(rates[switch] for switch in members).most_common()
        others = [switch for switch in members if rates[switch] != usual]
        if others and count >= _LEAST_ALIKE and count > len(others):
            return _difference(rule, fabric, others, rates, usual)
    return Diagnosis(Level.GOOD, rule, "as far as most of a tier are alike")


def _difference(
    rule: str,
    fabric: Fabric,
    others: list[int],
    rates: dict[int, tuple[int, int]],
    usual: tuple[int, int],
) -> Diagnosis:
    first = others[0]
    side = 0 if rates[first][0] != usual[0] else 1
    where = ("to the tier above", "to the tier below")[side]
    finding = (
        f"{fabric.switches[first].name} has {rates[first][side] / 1e9:g} Gb/s {where}, most of its "
        f"tier {usual[side] / 1e9:g}"
    )
    if len(others) > 1:
        names = [fabric.switches[switch].name for switch in others[1:]]
        finding += f"; different are {_listed(names)} too"
    return Diagnosis(Level.WARNING, rule, finding, "look for a missing, slow or misplaced link")


def _tiers(fabric: Fabric) -> dict[int, int]:
    """Switch -> hops from the nearest switch that a NIC is on; none for switches without a path."""
    near = sorted({entry[0] for entry in fabric.attachment if entry is not None})
    if not near:
        return {}
    hops = fabric.switch_hops[near]
    nearest = np.where(hops < 0, np.iinfo(np.int32).max, hops).min(axis=0)
    reached = (hops >= 0).any(axis=0)
    return {int(switch): int(nearest[switch]) for switch in np.flatnonzero(reached)}


def _rates_bps(fabric: Fabric, switch: int, tier: dict[int, int]) -> tuple[int, int]:
    """Bandwidth to switches of the tier above and of the tier below."""
    above = below = 0
    for _, other, link in fabric.neighbours[switch]:
        if other.is_switch:
            step = tier[other.index] - tier[switch]
            above += link.rate_bps if step > 0 else 0
            below += link.rate_bps if step < 0 else 0
    return above, below


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
