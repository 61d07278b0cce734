"""Rules of a lab whose network is real: every NIC has a place, and somebody may send there."""

import ipaddress
from collections.abc import Iterator

from emulator.lab.documents import KeyPath
from emulator.lab.fabric import Fabric, Nic
from emulator.lab.model import Lab

__all__ = ["interface_findings"]

_Finding = tuple[KeyPath, str, str]


def interface_findings(lab: Lab, fabric: Fabric) -> Iterator[_Finding]:
    """Everything that is wrong with driver and interfaces."""
    yield from _names(lab, fabric)
    if lab.driver == "wire":
        if lab.interfaces:
            remedy = "choose a driver for real interfaces, or leave them out"
            yield ("interfaces",), "are given, but the driver is wire", remedy
        return
    if lab.impairments:
        what = f"are for emulated links, and the driver is {lab.driver}"
        yield ("impairments",), what, "leave them out: the network is real"
    if lab.namespaces is not None and not lab.interfaces:
        if lab.driver == "verbs":
            remedy = "choose udp, af_packet or af_xdp, or say in `interfaces` where the NICs are"
            yield ("driver",), "is verbs, but namespaces have no RDMA devices", remedy
        return
    yield from _places(lab, fabric)
    yield from _adapters(lab, fabric)


def _names(lab: Lab, fabric: Fabric) -> Iterator[_Finding]:
    known = {nic.name for nic in fabric.nics}
    seen: dict[str, str] = {}
    for name, place in lab.interfaces.items():
        path: KeyPath = ("interfaces", name)
        if name not in known:
            yield path, "is no NIC of the topology", "name a NIC"
        if place.address is None:
            continue
        if not _is_host(place.address):
            what = f"is {place.address}"
            yield (*path, "address"), what, "give the IPv4 address of one host"
        elif place.address in seen:
            what = f"is {place.address}, which {seen[place.address]} has"
            yield (*path, "address"), what, "give every NIC its own"
        seen.setdefault(place.address, name)


def _is_host(address: str) -> bool:
    try:
        parsed = ipaddress.IPv4Address(address)
    except ValueError:
        return False
    return not (parsed.is_multicast or parsed.is_unspecified or parsed.is_reserved)


def _places(lab: Lab, fabric: Fabric) -> Iterator[_Finding]:
    beyond = [nic for nic in fabric.nics if not _is_on_loopback(lab, nic)]
    for nic in beyond:
        place = lab.interfaces.get(nic.name)
        if place is None or place.interface is None:
            what = f"do not say where {nic.name} is, and the driver is {lab.driver}"
            remedy = "add its interface, or `namespaces: {}` for a lab of network namespaces"
            yield ("interfaces",), what, remedy
            return
    if beyond and lab.agents.spawn:
        remedy = "give false, and start `rankwire agent` with a file of its own on every host"
        what = "is true, but a spawned agent sends to loopback and namespaces only"
        yield ("agents", "spawn"), what, remedy


def _adapters(lab: Lab, fabric: Fabric) -> Iterator[_Finding]:
    """NICs that are RDMA devices: the lab can ask of them what an adapter does."""
    adapters = [nic.name for nic in fabric.nics if _driver(lab, nic) == "verbs"]
    if not adapters:
        return
    if lab.time_dilation != 1:
        what = f"is {lab.time_dilation}, but {adapters[0]} is an adapter with a rate of its own"
        yield ("time_dilation",), what, "let it be 1: an RDMA device can't be slowed"
    if lab.transport.loss_recovery != "go_back_n":
        what = f"is {lab.transport.loss_recovery}, but {adapters[0]} is an RDMA device"
        remedy = "let it be go_back_n, which every adapter speaks"
        yield ("transport", "loss_recovery"), what, remedy
    for name in adapters:
        place = lab.interfaces.get(name)
        if place is not None and place.namespace is not None:
            remedy = "leave it out, and start the agent inside of it: ip netns exec ..."
            what = "is given, but the driver is verbs"
            yield ("interfaces", name, "namespace"), what, remedy


def _driver(lab: Lab, nic: Nic) -> str:
    place = lab.interfaces.get(nic.name)
    return place.driver if place is not None and place.driver is not None else lab.driver


def _is_on_loopback(lab: Lab, nic: Nic) -> bool:
    place = lab.interfaces.get(nic.name)
    address = place.address if place is not None and place.address is not None else nic.address
    return _is_host(address) and ipaddress.IPv4Address(address).is_loopback
