"""Reads containerlab topologies (`*.clab.yml`): nodes with inheritance, links in every form.

Source: containerlab's manual, "Topology definition", "Nodes" and "Kinds". What a node runs is of no
interest here, so unknown keys are passed over.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field

from emulator.exchange.graph import Graph, GraphEnd, GraphLink, GraphNode, Role, plain_name
from emulator.lab.documents import KeyPath
from emulator.lab.nodes import Complaint

__all__ = ["HOST_KINDS", "ContainerlabFile", "containerlab_graph"]

HOST_KINDS = frozenset({"linux", "host", "ext-container", "k8s-kind", "keysight_ixia-c-one"})
"""Kinds that are hosts rather than network operating systems or bridges."""

_OUTSIDE = frozenset({"host", "mgmt-net", "macvlan", "vxlan", "vxlan-stitch", "dummy", "container"})
"""Words that stand for something outside the topology where a node's name is expected."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True, populate_by_name=True)


def _nothing_as_empty(value: Any) -> Any:
    """YAML's `srl1:` without a value is a node with nothing of its own."""
    return {} if value is None else value


class _Node(_Part):
    kind: str | None = None
    group: str | None = None
    management_address: str | None = Field(
        default=None, validation_alias=AliasChoices("mgmt-ipv4", "mgmt_ipv4")
    )


class _Link(_Part):
    type: str | None = None
    endpoints: list[Any] = Field(default_factory=list)
    vars: Annotated[dict[str, Any], BeforeValidator(_nothing_as_empty)] = Field(
        default_factory=dict
    )


_MaybeNode = Annotated[_Node, BeforeValidator(_nothing_as_empty)]
_Nodes = Annotated[dict[str, _MaybeNode], BeforeValidator(_nothing_as_empty)]


class _Topology(_Part):
    defaults: _MaybeNode = _Node()
    kinds: _Nodes = Field(default_factory=dict)
    groups: _Nodes = Field(default_factory=dict)
    nodes: _Nodes
    links: Annotated[list[_Link], BeforeValidator(lambda links: links or [])] = Field(
        default_factory=list
    )


class ContainerlabFile(_Part):
    """What is read of a topology file."""

    name: str = ""
    topology: _Topology


def containerlab_graph(file: ContainerlabFile, complain: Complaint) -> Graph:
    """The nodes and links of a topology; problems go to `complain`."""
    graph = Graph(file.name, ":", keeps_port_names=True)
    for name in file.topology.nodes:
        graph.nodes[name] = _node(name, file.topology)
    outside = 0
    for position, link in enumerate(file.topology.links):
        path: KeyPath = ("topology", "links", position)
        if _leads_outside(link, graph):
            outside += 1
            continue
        ends = list(_ends(link, path, graph, complain))
        if len(ends) == 2:
            graph.links.append(_link(link, ends, path, complain))
    if outside:
        graph.notes.append(f"{outside} links to the outside of the topology are left out")
    return graph


def _node(name: str, topology: _Topology) -> GraphNode:
    """The node with what its group, its kind and the defaults give it, in this order."""
    own = topology.nodes[name]
    group_of_own = topology.groups.get(own.group or "", _Node())
    kind = own.kind or group_of_own.kind or topology.defaults.kind or ""
    of_kind = topology.kinds.get(kind, _Node())
    group = own.group or of_kind.group or topology.defaults.group or ""
    role: Role = "host" if kind in HOST_KINDS else "switch"
    return GraphNode(
        name,
        role,
        ("topology", "nodes", name),
        plain_name(name),
        kind=kind,
        group=group,
        management_address=own.management_address,
    )


def _leads_outside(link: _Link, graph: Graph) -> bool:
    """Links to the host, the management network and tunnels are no part of the fabric."""
    if link.type not in {None, "veth"}:
        return True
    names = [end.partition(":")[0] for end in link.endpoints if isinstance(end, str)]
    return any(name in _OUTSIDE and name not in graph.nodes for name in names)


def _ends(link: _Link, path: KeyPath, graph: Graph, complain: Complaint) -> Iterator[GraphEnd]:
    if len(link.endpoints) != 2:
        what = f"are {len(link.endpoints)}"
        complain((*path, "endpoints"), what, 'give two, as ["leaf1:eth1", "host1:eth1"]')
        return
    for side, given in enumerate(link.endpoints):
        end = _end(given)
        if end is None:
            what = (
                "has no node and interface" if isinstance(given, dict | list) else f"is {given!r}"
            )
            complain((*path, "endpoints", side), what, "write node:interface")
        elif end.node not in graph.nodes:
            what = f"names the node {end.node}, which `nodes` does not have"
            complain((*path, "endpoints", side), what, "declare it, or correct the name")
        else:
            yield end


def _end(given: Any) -> GraphEnd | None:
    """`node:interface`, or the extended form with both as keys; `None` for anything else."""
    if isinstance(given, dict):
        node, interface = given.get("node"), given.get("interface")
    else:
        node, _, interface = given.partition(":") if isinstance(given, str) else ("", "", "")
    if isinstance(node, str) and isinstance(interface, str) and node and interface:
        return GraphEnd(node, interface)
    return None


def _link(link: _Link, ends: list[GraphEnd], path: KeyPath, complain: Complaint) -> GraphLink:
    """Rates and delays are not containerlab's; they are read from `vars` if they are there."""
    rate = _number(link.vars, "rate_gbps", path, complain)
    delay = _number(link.vars, "delay_ns", path, complain)
    return GraphLink(
        ends[0],
        ends[1],
        path,
        rate_gbps=rate,
        delay_ns=None if delay is None else round(delay),
    )


def _number(
    values: Mapping[str, Any], key: str, path: KeyPath, complain: Complaint
) -> float | None:
    value = values.get(key)
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool)):
        return value
    complain((*path, "vars", key), f"is {value!r}", "write a number")
    return None
