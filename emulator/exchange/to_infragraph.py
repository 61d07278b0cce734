"""A lab as an InfraGraph infrastructure: one device per size of host or switch, edges one by one.

Source: the OpenAPI description in the package `infragraph` 3.1.0.
"""

import re
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from emulator.exchange.view import LabView
from emulator.lab.fabric import End

__all__ = ["infragraph_annotations", "infragraph_export"]


@dataclass(frozen=True, slots=True)
class _Place:
    """A node of the lab in the infrastructure."""

    instance: str
    index: int

    @property
    def slice_text(self) -> str:
        return f"{self.instance}[{self.index}]"

    @property
    def node(self) -> str:
        return f"{self.instance}.{self.index}"


def infragraph_export(view: LabView) -> tuple[dict[str, Any], dict[str, Any]]:
    """The infrastructure and the binding that makes the same lab of it."""
    fabric = view.loaded.fabric
    hosts = [(host, f"host-{len(nics)}-nics") for host, nics in view.hosts.items()]
    switches = [(switch.name, f"switch-{switch.ports}-ports") for switch in fabric.switches]
    instances, places = _instances([*hosts, *switches])
    nic_place = {nic: i for nics in view.hosts.values() for i, nic in enumerate(nics)}
    host_places = dict(zip(view.hosts, places, strict=False))

    def endpoint(end: End) -> dict[str, str]:
        if end.is_switch:
            place = places[len(hosts) + end.index]
            return {"instance": place.slice_text, "component": f"port[{end.port}]"}
        place = host_places[fabric.nics[end.index].host]
        return {"instance": place.slice_text, "component": f"nic[{nic_place[end.index]}]"}

    links = {_link_name(link.rate_gbps, link.delay_ns): link for link in view.links}
    document = {
        "name": view.loaded.lab.name,
        "description": view.loaded.lab.description,
        "devices": [
            *(_host_device(count) for count in sorted({len(n) for n in view.hosts.values()})),
            *(_switch_device(count) for count in sorted({s.ports for s in fabric.switches})),
        ],
        "instances": instances,
        "links": [_link(name, link.rate_gbps, link.delay_ns) for name, link in links.items()],
        "edges": [
            {
                "ep1": endpoint(link.ends[0]),
                "ep2": endpoint(link.ends[1]),
                "scheme": "one2one",
                "link": _link_name(link.rate_gbps, link.delay_ns),
            }
            for link in view.links
        ],
    }
    return document, _binding(view, places, nic_place)


def _instances(nodes: list[tuple[str, str]]) -> tuple[list[dict[str, Any]], list[_Place]]:
    """Runs of nodes with one device, numbered from 0, are one instance; the others one each."""
    instances: list[dict[str, Any]] = []
    places: list[_Place] = []
    keyed = [(*_stem(name), device, name) for name, device in nodes]
    for (stem, device), run in groupby(keyed, key=lambda item: (item[0], item[2])):
        members = list(run)
        numbers = [member[1] for member in members]
        whole = len(members) > 1 and stem and numbers == list(range(len(members)))
        for name, count in [(stem, len(members))] if whole else [(m[3], 1) for m in members]:
            instance = _unused(re.sub(r"[^A-Za-z0-9_-]", "-", name), instances)
            instances.append({"name": instance, "device": device, "count": count})
            places += [_Place(instance, index) for index in range(count)]
    return instances, places


def _stem(name: str) -> tuple[str, int | None]:
    """`leaf12` as leaf and 12."""
    match = re.fullmatch(r"(.*[^0-9])(0|[1-9][0-9]*)", name)
    return (match[1], int(match[2])) if match else (name, None)


def _unused(name: str, instances: list[dict[str, Any]]) -> str:
    taken = {instance["name"] for instance in instances}
    return next(
        candidate
        for candidate in (name, *(f"{name}-{number}" for number in range(2, len(taken) + 3)))
        if candidate not in taken
    )


def _host_device(nics: int) -> dict[str, Any]:
    """As many accelerators as NICs, each beside its own."""
    components = [
        {"name": "xpu", "count": nics, "choice": "xpu"},
        {"name": "nic", "count": nics, "choice": "nic"},
    ]
    return _device(f"host-{nics}-nics", components, ("xpu", "nic", "pcie", "one2one"))


def _switch_device(ports: int) -> dict[str, Any]:
    components = [
        {"name": "asic", "count": 1, "choice": "cpu"},
        {"name": "port", "count": ports, "choice": "port"},
    ]
    return _device(f"switch-{ports}-ports", components, ("asic", "port", "serdes", "many2many"))


def _device(
    name: str, components: list[dict[str, Any]], inner: tuple[str, str, str, str]
) -> dict[str, Any]:
    first, second, link, scheme = inner
    edge = {"ep1": {"component": first}, "ep2": {"component": second}}
    return {
        "name": name,
        "components": components,
        "links": [{"name": link}],
        "edges": [{**edge, "scheme": scheme, "link": link}],
    }


def _link_name(rate_gbps: float, delay_ns: float) -> str:
    return f"{rate_gbps:g}Gbps-{delay_ns:g}ns".replace(".", "_")


def _link(name: str, rate_gbps: float, delay_ns: float) -> dict[str, Any]:
    bandwidth = {"choice": "gigabits_per_second", "gigabits_per_second": rate_gbps}
    latency = {"choice": "ns", "ns": delay_ns}
    return {"name": name, "physical": {"bandwidth": bandwidth, "latency": latency}}


def _binding(view: LabView, places: list[_Place], nic_place: dict[int, int]) -> dict[str, Any]:
    fabric = view.loaded.fabric
    host_places = dict(zip(view.hosts, places, strict=False))
    nics = [
        {
            "at": f"{host_places[nic.host].node}.nic.{nic_place[index]}",
            "name": nic.name,
            "rank": nic.rank,
            "address": nic.address,
        }
        | _management(view.host_management(nic.host))
        for index, nic in enumerate(fabric.nics)
    ]
    switches = [
        {"at": place.node, "name": switch.name, "ports": switch.ports}
        | _management(view.switch_management(switch.name))
        for place, switch in zip(places[len(view.hosts) :], fabric.switches, strict=True)
    ]
    return {**view.binding_head(), "nics": nics, "switches": switches, **view.binding_rest()}


def infragraph_annotations(view: LabView) -> dict[str, Any]:
    """Ranks of accelerators and addresses of NICs, as `annotate_graph` takes them."""
    hosts = [(host, f"host-{len(nics)}-nics") for host, nics in view.hosts.items()]
    _, places = _instances(hosts)
    nodes = []
    for place, nics in zip(places, view.hosts.values(), strict=True):
        for number, index in enumerate(nics):
            nic = view.loaded.fabric.nics[index]
            for part, name, value in (("xpu", "rank", nic.rank), ("nic", "ipaddress", nic.address)):
                attributes = [{"attribute": name, "value": str(value)}]
                node = f"{place.slice_text}{part}[{number}]"
                nodes.append({"name": node, "attributes": attributes})
    return {"nodes": nodes}


def _management(address: str | None) -> dict[str, str]:
    return {"management_address": address} if address else {}
