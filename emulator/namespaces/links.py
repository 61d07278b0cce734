"""Takes links of a lab that is up down and up again, as a cable that is pulled, and routes anew."""

import contextlib
import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from dataplane.errors import InputError, Problem
from emulator.lab import LoadedLab
from emulator.namespaces import kernel, state
from emulator.namespaces.layout import Layout, NamespacePort, Node, Route, lay_out, routes_over
from emulator.namespaces.netlink import (
    Channel,
    Request,
    add_neighbour,
    add_route,
    delete_route,
    set_down,
    set_up,
)
from emulator.namespaces.permissions import check_permissions
from emulator.namespaces.readiness import wait_until_ready

__all__ = ["links_down", "set_link"]

_IS_UP: Final = 1
"""IFF_UP. Source: include/uapi/linux/if.h."""


def set_link(loaded: LoadedLab, link: str, *, is_up: bool, reroutes: bool = True) -> None:
    """Take both ends of a link up or down; then route as if routing had converged.

    Without `reroutes` only the two ends know: they choose among the ports that they have left, the
    others go on as before. Raises `InputError` when the lab is not up, or there is no such link.
    """
    layout = lay_out(loaded)
    check_permissions(layout.lab)
    ends = _ends(layout, link)
    with state.locked(layout.lab):
        state.check_up(layout)
        for port in ends:
            _apply(port.namespace, _switching(port, is_up=is_up))
        down = links_down(layout)
        if is_up:
            for port in ends:
                with _channel(port.namespace) as channel:
                    wait_until_ready(port.namespace, channel, [port.index])
        if reroutes:
            routes = routes_over(loaded, down)
            nodes: Iterable[Node] = layout.nodes
        else:
            routes = _local_routes(layout, down)
            nodes = [node for node in layout.nodes if node.name in {port.node for port in ends}]
        for node in nodes:
            _route(layout, node, routes[node.name])


def links_down(layout: Layout) -> set[str]:
    """Names of the links with an end that is down."""
    down: set[str] = set()
    ports = _ports_by_namespace(layout)
    for namespace, own in ports.items():
        with _channel(namespace) as channel:
            flags = {link["index"]: link["flags"] for link in channel.links()}
        down |= {port.link for port in own if not flags[port.index] & _IS_UP}
    return down


def _ends(layout: Layout, name: str) -> tuple[NamespacePort, NamespacePort]:
    links = {pair[0].link: pair for pair in layout.links}
    if name not in links:
        near = difflib.get_close_matches(name, list(links), n=1)
        remedy = f"did you mean {near[0]}?" if near else "`rankwire lab status` names the links"
        raise InputError(Problem(f"lab {layout.lab}", f"has no link {name}", remedy))
    return links[name]


def _switching(port: NamespacePort, *, is_up: bool) -> list[Request]:
    """An interface that goes down forgets its neighbours."""
    if not is_up:
        return [set_down(port.index, port.interface)]
    neighbour = add_neighbour(port.index, port.peer_address, port.peer_mac, replaces=True)
    return [set_up(port.index, port.interface), neighbour]


def _local_routes(layout: Layout, down: set[str]) -> dict[str, tuple[Route, ...]]:
    """Every node's routes without the next hops over its own links that are down."""
    lost = {(port.node, port.interface) for port in layout.ports if port.link in down}
    return {
        node: tuple(
            replace(route, next_hops=hops)
            for route in routes
            if (hops := tuple(h for h in route.next_hops if (node, h.interface) not in lost))
        )
        for node, routes in layout.routes.items()
    }


def _route(layout: Layout, node: Node, routes: Sequence[Route]) -> None:
    """Give a node these routes instead of what it has."""
    ports = _ports_by_namespace(layout)[node.namespace]
    indices = {port.interface: port.index for port in ports}
    wanted = {route.destination for route in routes}
    gone = [route for route in layout.routes[node.name] if route.destination not in wanted]
    requests = [add_route(route, node.address, indices, replaces=True) for route in routes]
    with _channel(node.namespace) as channel:
        channel.apply(requests)
        for route in gone:
            channel.attempt(delete_route(route.destination))


def _apply(namespace: str, requests: Sequence[Request]) -> None:
    with _channel(namespace) as channel:
        channel.apply(requests)


@contextlib.contextmanager
def _channel(namespace: str) -> Iterator[Channel]:
    with kernel.inside(namespace):
        channel = Channel()
    with contextlib.closing(channel):
        yield channel


def _ports_by_namespace(layout: Layout) -> Mapping[str, Sequence[NamespacePort]]:
    ports: dict[str, list[NamespacePort]] = {}
    for port in layout.ports:
        ports.setdefault(port.namespace, []).append(port)
    return ports
