"""A graph and its binding as the values of a lab file, with the place that each came from.

Whether the lab holds together is not decided here: `emulator.lab.checks` does, as for any lab.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from dataplane.errors import Problem
from emulator.exchange.annotations import annotated
from emulator.exchange.binding import Binding, BoundNic, BoundSwitch
from emulator.exchange.graph import Graph, GraphEnd, GraphNode, Role, natural, plain_name
from emulator.exchange.rules import LinkRules, RoleRules
from emulator.lab.documents import Document, KeyPath
from emulator.lab.overrides import suggestion

__all__ = ["Assembly", "assemble"]


@dataclass(frozen=True, slots=True)
class Assembly:
    """What an import comes to."""

    document: Document
    """Values of the lab; its lines are those of the file, what the binding decides says so."""
    problems: Sequence[Problem]
    """What is wrong with the file and its binding, seen together."""
    notes: Sequence[str]
    """What was left out, one sentence each."""


def assemble(graph: Graph, binding: Binding, file: Document, bound: Document) -> Assembly:
    """The lab of a graph, whose file is `file`, with the binding of the file `bound`."""
    work = _Work(graph, binding, file, bound)
    data = work.data()
    document = Document(file.source, data, work.lines, work.sources)
    return Assembly(document, work.problems, [*graph.notes, *work.notes])


@dataclass(slots=True)
class _Work:
    """State of one assembly."""

    graph: Graph
    binding: Binding
    file: Document
    bound: Document
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    lines: dict[KeyPath, int] = field(default_factory=dict)
    sources: dict[KeyPath, str] = field(default_factory=dict)
    lab_ends: dict[GraphEnd, str] = field(default_factory=dict)
    """Ends as the lab writes them."""

    def data(self) -> dict[str, Any]:
        roles = self._roles()
        used = self._used_ports(roles)
        self._note_left_out(roles, used)
        self._complain_without_hosts(roles, used)
        nics = self._nics([self.graph.nodes[n] for n in used if roles[n] == "host"], used)
        switches = self._switches([self.graph.nodes[n] for n in used if roles[n] == "switch"], used)
        topology = {"kind": "explicit", "nics": nics, "switches": switches}
        topology["links"] = self._links(roles)
        return {**self._head(), "topology": topology, **self._rest()}

    def _head(self) -> dict[str, Any]:
        name = self.binding.name
        if name is None:
            name = plain_name(self.graph.name).lower().replace("_", "-").replace(".", "-")
        elif self.bound is not None:
            self.sources[("name",)] = self._bound_place(("name",))
        head = {"name": name}
        return head | (
            {"description": self.binding.description} if self.binding.description else {}
        )

    def _rest(self) -> dict[str, Any]:
        for key in sorted({"name", "description", "topology"} & self.binding.lab.keys()):
            remedy = "leave it to the file and to the other keys of the binding"
            self._complain_bound(("lab", key), "is not for `lab`", remedy)
        for path, line in self.bound.lines.items():
            if path[0] == "lab":
                self.sources[path[1:]] = f"{self.bound.source}: line {line}"
        self.sources.pop((), None)
        return {key: value for key, value in self.binding.lab.items() if key != "topology"}

    def _roles(self) -> dict[str, Role]:
        rules = RoleRules(self.binding.roles)
        roles = {name: rules.role_of(node) for name, node in self.graph.nodes.items()}
        for position in rules.unused():
            what, remedy = "fits no node", f"name nodes of {self.file.source}"
            self._complain_bound(("roles", position), what, remedy)
        return roles

    def _used_ports(self, roles: dict[str, Role]) -> dict[str, list[str]]:
        """Node -> its ports that links use, both in order; no ignored nodes."""
        ports: dict[str, set[str]] = {}
        for link in self.graph.links:
            if "ignored" not in {roles[link.a.node], roles[link.b.node]}:
                for end in (link.a, link.b):
                    ports.setdefault(end.node, set()).add(end.port)
        return {
            name: sorted(ports[name], key=natural) for name in self.graph.nodes if name in ports
        }

    def _note_left_out(self, roles: dict[str, Role], used: dict[str, list[str]]) -> None:
        for role in ("host", "switch"):
            alone = [name for name, its in roles.items() if its == role and name not in used]
            if alone:
                self.notes.append(f"no link is on {_listed(alone)}: left out")
        ignored = [name for name, role in roles.items() if role == "ignored"]
        if ignored:
            self.notes.append(f"{_listed(ignored)}: ignored, as the binding says")

    def _complain_without_hosts(self, roles: dict[str, Role], used: dict[str, list[str]]) -> None:
        if not any(roles[name] == "host" for name in used):
            what = "has no host with a link"
            remedy = "say what hosts are in a binding file: `roles: [{nodes: NAME, role: host}]`"
            self.problems.append(self.file.problem((), what, remedy))

    def _nics(self, hosts: list[GraphNode], used: dict[str, list[str]]) -> list[dict[str, Any]]:
        """NICs in the order of their ranks."""
        ends = [(host, GraphEnd(host.name, port)) for host in hosts for port in used[host.name]]
        bound = self._bound_nics([end for _, end in ends])
        ranks = _filled([bound[end][1].rank for _, end in ends])
        order = sorted(range(len(ends)), key=lambda index: (ranks[index], index))
        gapless = [ranks[index] for index in order] == list(range(len(order)))
        entries = []
        for place, index in enumerate(order):
            host, end = ends[index]
            path, own = bound[end]
            self._remember(("topology", "nics", place), host.path, path)
            entry = self._nic(host, end, own, several=len(used[host.name]) > 1)
            entries.append(entry if gapless else entry | {"rank": ranks[index]})
        return entries

    def _bound_nics(self, ends: list[GraphEnd]) -> dict[GraphEnd, tuple[KeyPath, BoundNic]]:
        """What the binding says of every NIC, and where; annotations fill what `nics` leave."""
        notes = annotated(self.binding.annotations, ends)
        for position, what, remedy in notes.problems:
            self._complain_bound(("annotations", position), what, remedy)
        bound = self._bound_by_name(self.binding.nics, [self.graph.label(end) for end in ends])
        found: dict[GraphEnd, tuple[KeyPath, BoundNic]] = {}
        for end in ends:
            label = self.graph.label(end)
            noted = notes.values.get(end, {})
            path: KeyPath = ("annotations", notes.positions[end]) if noted else ()
            own = BoundNic(at=label, **noted)
            if label in bound:
                position, said = bound[label]
                path = ("nics", position)
                own = said.model_copy(update={k: v for k, v in noted.items()
                                              if getattr(said, k) is None})  # fmt: skip
            found[end] = (path, own)
        return found

    def _nic(
        self, host: GraphNode, end: GraphEnd, own: BoundNic, *, several: bool
    ) -> dict[str, Any]:
        name = own.name
        if name is None:
            name = f"{host.lab_name}-{_interface(end.port)}" if several else host.lab_name
        self.lab_ends[end] = name
        values = {
            "name": name,
            "host": host.lab_name if name != host.lab_name else None,
            "interface": end.port if self.graph.keeps_port_names else None,
            "address": own.address,
            "management_address": own.management_address or host.management_address,
        }
        return {key: value for key, value in values.items() if value is not None}

    def _switches(
        self, switches: list[GraphNode], used: dict[str, list[str]]
    ) -> list[dict[str, Any]]:
        bound = self._bound_by_name(self.binding.switches, [node.name for node in switches])
        entries = []
        for place, node in enumerate(switches):
            position, own = bound.get(node.name, (None, None))
            bound_path: KeyPath = () if position is None else ("switches", position)
            self._remember(("topology", "switches", place), node.path, bound_path)
            entries.append(self._switch(node, used[node.name], position, own))
        return entries

    def _switch(
        self, node: GraphNode, used: list[str], position: int | None, own: BoundSwitch | None
    ) -> dict[str, Any]:
        names = list(own.port_names if own else ()) or list(node.ports) or used
        missing = [port for port in used if port not in names]
        if missing:
            what = f"lack {_listed(missing)}, which links use"
            self._complain_bound(("switches", position or 0, "port_names"), what, "name every port")
        name = own.name if own and own.name else node.lab_name
        for number, port in enumerate([*names, *missing]):
            self.lab_ends[GraphEnd(node.name, port)] = f"{name}:{number}"
        management = (own.management_address if own else None) or node.management_address
        entry: dict[str, Any] = {"name": name, "ports": (own and own.ports) or len(names)}
        if self.graph.keeps_port_names:
            entry["port_names"] = names
        return entry | ({"management_address": management} if management else {})

    def _links(self, roles: dict[str, Role]) -> list[dict[str, Any]]:
        rules = LinkRules(self.binding.links)
        links: list[dict[str, Any]] = []
        without_rate = []
        for link in self.graph.links:
            if "ignored" in {roles[link.a.node], roles[link.b.node]}:
                continue
            entry = rules.values_of(link)
            ends = [self.lab_ends[end] for end in (link.a, link.b)]
            path: KeyPath = ("topology", "links", len(links))
            self._remember(path, link.path, ())
            if "rate_gbps" not in entry:
                without_rate.append(link)
            links.append({"ends": ends, **entry})
        self._complain_about_rates(without_rate)
        for position in rules.unused():
            what, remedy = "fits no link", f"name nodes and links of {self.file.source}"
            self._complain_bound(("links", position), what, remedy)
        return links

    def _complain_about_rates(self, links: list[Any]) -> None:
        if not links:
            return
        first = " - ".join(self.graph.label(end) for end in (links[0].a, links[0].b))
        several = f"{len(links)} links, the first of them" if len(links) > 1 else "the link"
        what = f"gives no rate to {several} {first}"
        remedy = (
            'give a binding file (--binding) with `links: [{between: ["*", "*"], rate_gbps: 400}]`'
        )
        self.problems.append(self.file.problem(links[0].path, what, remedy))

    def _bound_by_name(self, given: Sequence[Any], known: list[str]) -> dict[str, tuple[int, Any]]:
        """Name in the file -> position in the binding, and the entry."""
        key = "nics" if given and isinstance(given[0], BoundNic) else "switches"
        found: dict[str, tuple[int, Any]] = {}
        for position, entry in enumerate(given):
            path: KeyPath = (key, position, "at")
            if entry.at not in known:
                word = "linked interface of a host" if key == "nics" else "linked switch"
                what = f"is {entry.at}, which is no {word} of {self.file.source}"
                self._complain_bound(path, what, suggestion(entry.at, known))
            elif entry.at in found:
                self._complain_bound(path, f"is {entry.at} again", "name everything once")
            else:
                found[entry.at] = (position, entry)
        return found

    def _remember(self, path: KeyPath, own: KeyPath, bound: KeyPath) -> None:
        """Where an entry of the lab came from: the file, and the binding if it names it."""
        line = next(self._lines_of(own), None)
        if line is not None:
            self.lines[path] = line
        if bound:
            self.sources[path] = self._bound_place(bound)

    def _lines_of(self, path: KeyPath) -> Iterator[int]:
        return (
            self.file.lines[path[:length]]
            for length in range(len(path), 0, -1)
            if path[:length] in self.file.lines
        )

    def _bound_place(self, path: KeyPath) -> str:
        line = self.bound.lines.get(path)
        return f"{self.bound.source}: line {line}" if line else self.bound.source

    def _complain_bound(self, path: KeyPath, what: str, remedy: str) -> None:
        self.problems.append(self.bound.problem(path, what, remedy))


def _filled(given: list[int | None]) -> list[int]:
    """Ranks as given; the rest have the lowest that are free, in order."""
    taken = {rank for rank in given if rank is not None}
    free = (rank for rank in range(len(given) + len(taken)) if rank not in taken)
    return [next(free) if rank is None else rank for rank in given]


def _interface(port: str) -> str:
    """A port within a NIC's name: `nic.1` as `nic1`, for `cx7.1` would be another."""
    name, _, number = port.partition(".")
    joined = f"{name}{number}" if number.isdigit() and not name[-1:].isdigit() else port
    return plain_name(joined)


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
