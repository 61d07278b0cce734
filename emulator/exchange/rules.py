"""The rules of a binding: the first that fits holds, and one that fits nothing is a mistake."""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any

from emulator.exchange.binding import LinkRule, RoleRule
from emulator.exchange.graph import GraphLink, GraphNode, Role

__all__ = ["LinkRules", "RoleRules"]


class RoleRules:
    """What nodes are."""

    def __init__(self, rules: Sequence[RoleRule]) -> None:
        self._rules = rules
        self._fitting: set[int] = set()

    def role_of(self, node: GraphNode) -> Role:
        """The first fitting rule's role, else the node's own."""
        fitting = [
            position
            for position, rule in enumerate(self._rules)
            if fnmatchcase(node.name, rule.nodes)
            and fnmatchcase(node.kind, rule.kind)
            and fnmatchcase(node.group, rule.group)
        ]
        self._fitting.update(fitting)
        return self._rules[fitting[0]].role if fitting else node.role

    def unused(self) -> Iterable[int]:
        """Positions of rules that fitted nothing."""
        return (place for place in range(len(self._rules)) if place not in self._fitting)


class LinkRules:
    """Rates and delays of links."""

    def __init__(self, rules: Sequence[LinkRule]) -> None:
        self._rules = rules
        self._fitting: set[int] = set()

    def values_of(self, link: GraphLink) -> dict[str, Any]:
        """Keys of the lab's link without its ends."""
        fitting = [place for place, rule in enumerate(self._rules) if _fits(rule, link)]
        self._fitting.update(fitting)
        values = {"rate_gbps": link.rate_gbps, "delay_ns": link.delay_ns}
        if fitting:
            keys = ("rate_gbps", "delay_ns", "cable_metres")
            ruled = {key: getattr(self._rules[fitting[0]], key) for key in keys}
            values |= {key: value for key, value in ruled.items() if value is not None}
        return {key: _whole(value) for key, value in values.items() if value is not None}

    def unused(self) -> Iterable[int]:
        """Positions of rules that fitted nothing."""
        return (place for place in range(len(self._rules)) if place not in self._fitting)


def _whole(value: float) -> float:
    """400 rather than 400.0."""
    return int(value) if value == int(value) else value


def _fits(rule: LinkRule, link: GraphLink) -> bool:
    first, second = rule.between
    ways = ((link.a.node, link.b.node), (link.b.node, link.a.node))
    nodes = any(fnmatchcase(a, first) and fnmatchcase(b, second) for a, b in ways)
    return nodes and fnmatchcase(link.name, rule.link)
