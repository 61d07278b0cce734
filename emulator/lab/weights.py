"""Weighted ECMP: how often an equal-cost port stands in a switch's routes."""

import math
from fnmatch import fnmatchcase

from emulator.lab.fabric import Fabric, FabricLink
from emulator.lab.model import Lab

__all__ = ["hash_seed", "weighted_routes"]

_MOST_PLACES = 64
"""A port's weight after reduction, at most; shares are rounded to it."""


def weighted_routes(lab: Lab, fabric: Fabric, switch: int) -> list[list[int]]:
    """`Fabric.routes` with each port as often as its weight, reduced, among its equals says."""
    selection = lab.switches.path_selection
    routes = fabric.routes(switch)
    if selection.weighting == "equal" and not selection.link_weights:
        return routes
    weights = {port: _weight(lab, link) for port, _, link in fabric.neighbours[switch]}
    made: dict[tuple[int, ...], list[int]] = {}
    for ports in routes:
        group = tuple(ports)
        if group not in made:
            made[group] = _repeated(group, [weights[port] for port in group])
    return [made[tuple(ports)] for ports in routes]


def hash_seed(lab: Lab, name: str, index: int, seed: int) -> int:
    """The seed of a switch's hash: as the lab says, or its own in a job of this seed."""
    for pattern, given in lab.switches.path_selection.hash_seeds.items():
        if fnmatchcase(name, pattern):
            return given
    # Each switch hashes in its own way, or every stage would make the same choice.
    return (seed * 0x9E3779B97F4A7C15 + index + 1) % 2**63


def _weight(lab: Lab, link: FabricLink) -> int:
    selection = lab.switches.path_selection
    for pattern, weight in selection.link_weights.items():
        if fnmatchcase(link.name, pattern):
            return weight
    return link.rate_bps if selection.weighting == "rate" else 1


def _repeated(ports: tuple[int, ...], weights: list[int]) -> list[int]:
    """Ports as often as their weights, reduced to the smallest whole numbers."""
    if len(ports) < 2:
        return list(ports)
    divisor = math.gcd(*weights)
    places = [weight // divisor for weight in weights]
    if max(places) > _MOST_PLACES:
        places = [max(1, round(place * _MOST_PLACES / max(places))) for place in places]
    return [port for port, count in zip(ports, places, strict=True) for _ in range(count)]
