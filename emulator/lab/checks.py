"""Rules of a lab that no single key can break: thresholds, headrooms, connectivity, placement.

Each rule appends problems; none raises, so that a user sees all of them at once.
"""

from collections.abc import Iterator
from fnmatch import fnmatchcase

import dataplane
from dataplane.errors import Problem
from emulator.lab.congestion import FixedRate, Swift
from emulator.lab.documents import Document, KeyPath
from emulator.lab.effective import (
    DataClassSettings,
    data_classes,
    ecn_profile,
    headroom_bytes,
    reserved_bytes,
    set_aside_bytes,
    shared_bytes,
)
from emulator.lab.events import event_findings
from emulator.lab.expansion import expand
from emulator.lab.fabric import Fabric
from emulator.lab.impairments import directions
from emulator.lab.interface_checks import interface_findings
from emulator.lab.model import Lab
from emulator.lab.namespace_rules import namespace_findings
from emulator.lab.overrides import suggestion
from traffic_profiles.collectives.expansion import ALGORITHMS

__all__ = ["check_lab"]


def check_lab(lab: Lab, document: Document) -> tuple[Fabric, list[Problem]]:
    """The expanded fabric and everything that is wrong with the lab."""
    problems: list[Problem] = []

    def complain(path: KeyPath, what: str, remedy: str) -> None:
        problems.append(document.problem(path, what, remedy))

    fabric = expand(lab.topology, complain)
    for path, what, remedy in _findings(lab, fabric, expanded=not problems):
        complain(path, what, remedy)
    return fabric, problems


_Finding = tuple[KeyPath, str, str]


def _findings(lab: Lab, fabric: Fabric, *, expanded: bool) -> Iterator[_Finding]:
    yield from _thresholds(lab, fabric)
    yield from _classes(lab)
    yield from _class_names(lab)
    yield from _class_rules(lab)
    yield from _rates(lab, fabric)
    if expanded:
        yield from _connectivity(fabric)
        yield from _headrooms(lab, fabric)
        yield from _agents(lab, fabric)
        yield from _placement(lab, fabric)
        yield from _impairments(lab, fabric)
        yield from namespace_findings(lab, fabric)
        yield from interface_findings(lab, fabric)
        for position, event in enumerate(lab.events):
            for key, what, remedy in event_findings(event, fabric):
                yield ("events", position, key), what, remedy


def _thresholds(lab: Lab, fabric: Fabric) -> Iterator[_Finding]:
    rates = {link.rate_bps for link in fabric.links}
    for rate_bps in sorted(rates):
        profile = ecn_profile(lab, rate_bps)
        if profile is None:
            return
        kmin, kmax = profile.kmin_bytes, profile.kmax_bytes
        if kmin > kmax:
            what = f"is {kmin}, above kmax_bytes {kmax}"
            yield ("switches", "ecn", "kmin_bytes"), what, "give kmin_bytes <= kmax_bytes"
            return
    yield from _queues(lab, max(rates, default=0))
    pfc = lab.switches.pfc
    if pfc.headroom_pool_bytes is not None and pfc.headroom_oversubscription is not None:
        what = "is given beside headroom_pool_bytes"
        yield ("switches", "pfc", "headroom_oversubscription"), what, "give one of them"
    if pfc.xoff_bytes is not None and pfc.xon_offset_bytes > pfc.xoff_bytes:
        what = f"is {pfc.xon_offset_bytes}, above xoff_bytes {pfc.xoff_bytes}"
        yield ("switches", "pfc", "xon_offset_bytes"), what, "give less than xoff_bytes"


def _queues(lab: Lab, rate_bps: int) -> Iterator[_Finding]:
    pfc = lab.switches.pfc
    seen: set[int] = set()
    for position, item in enumerate(lab.switches.queues):
        path: KeyPath = ("switches", "queues", position)
        if item.priority in seen:
            yield (*path, "priority"), f"is {item.priority}, as before", "name a priority once"
        seen.add(item.priority)
        profile = ecn_profile(lab, rate_bps, item.priority)
        if profile is not None and profile.kmin_bytes > profile.kmax_bytes:
            what = f"is {profile.kmin_bytes}, above kmax_bytes {profile.kmax_bytes}"
            yield (*path, "kmin_bytes"), what, "give kmin_bytes <= kmax_bytes"
        xoff = pfc.xoff_bytes if item.xoff_bytes is None else item.xoff_bytes
        xon = pfc.xon_offset_bytes if item.xon_offset_bytes is None else item.xon_offset_bytes
        if (
            xoff is not None
            and xon > xoff
            and (item.xoff_bytes, item.xon_offset_bytes)
            != (
                None,
                None,
            )
        ):
            what = f"is {xon}, above xoff_bytes {xoff}"
            yield (*path, "xon_offset_bytes"), what, "give less than xoff_bytes"


def _classes(lab: Lab) -> Iterator[_Finding]:
    classes = lab.traffic_classes
    tagged = [(item.name, item.path, item.dscp, item.priority) for item in data_classes(lab)]
    for name, item in (("acknowledgement", classes.acknowledgement), ("cnp", classes.cnp)):
        tagged.append((name, ("traffic_classes", name), item.dscp, item.priority))
    seen: dict[int, tuple[str, int]] = {}
    for name, path, dscp, priority in tagged:
        other = seen.setdefault(dscp, (name, priority))
        if other[1] != priority:
            what = f"is {dscp} with priority {priority}, but {other[0]} has that DSCP with"
            remedy = "give one DSCP one priority: switches take the priority from it"
            yield (*path, "dscp"), f"{what} priority {other[1]}", remedy


def _class_names(lab: Lab) -> Iterator[_Finding]:
    seen = {"data", "acknowledgement", "cnp"}
    for item in data_classes(lab)[1:]:
        if item.name in seen:
            yield (*item.path, "name"), f"is {item.name}, which another class has", "name it anew"
        seen.add(item.name)


def _class_rules(lab: Lab) -> Iterator[_Finding]:
    for index, item in enumerate(lab.traffic_classes.further):
        path: KeyPath = ("traffic_classes", "further", index)
        if not any(fnmatchcase(kind, item.collective) for kind in ALGORITHMS):
            what = f"is {item.collective}, and no collective is called so"
            yield (*path, "collective"), what, f"one of {', '.join(ALGORITHMS)}"
        most = item.max_size_bytes
        if most is not None and item.min_size_bytes > most:
            what = f"is {item.min_size_bytes}, above max_size_bytes {most}"
            yield (*path, "min_size_bytes"), what, "the class would carry nothing"


def _rates(lab: Lab, fabric: Fabric) -> Iterator[_Finding]:
    seen = set()
    for item in data_classes(lab):
        if item.congestion_control_path not in seen:
            seen.add(item.congestion_control_path)
            yield from _rates_of(item, fabric)


def _rates_of(item: DataClassSettings, fabric: Fabric) -> Iterator[_Finding]:
    control, path = item.congestion_control, item.congestion_control_path
    slowest = min((link.rate_bps for link in fabric.nic_links.values()), default=None)
    if slowest is None:
        return
    if isinstance(control, Swift):
        yield from _swift(control, path)
        return
    if isinstance(control, FixedRate):
        if control.rate_gbps is not None and control.rate_gbps * 1e9 > slowest:
            what = f"is {control.rate_gbps} Gb/s, above the slowest NIC link"
            remedy = f"give at most {slowest / 1e9:g}"
            yield (*path, "rate_gbps"), what, remedy
        return
    minimum = control.resolve(slowest)["min_rate_bps"].value
    if isinstance(minimum, int) and minimum > slowest:
        what = f"is {minimum} bit/s, above the slowest NIC link"
        yield (*path, "min_rate_bps"), what, f"give less than {slowest}"


def _swift(control: Swift, path: KeyPath) -> Iterator[_Finding]:
    for low, high in (
        ("flow_scaling_min_packets", "flow_scaling_max_packets"),
        ("min_window_packets", "initial_window_packets"),
        ("initial_window_packets", "max_window_packets"),
    ):
        least, most = getattr(control, low), getattr(control, high)
        strictly = low.startswith("flow")
        if least > most or (strictly and least == most):
            what = f"is {least:g}, and {high} is {most:g}"
            yield (*path, low), what, f"give less than {high}"


def _connectivity(fabric: Fabric) -> Iterator[_Finding]:
    count: dict[int, int] = dict.fromkeys(range(len(fabric.nics)), 0)
    for link in fabric.links:
        for end in (link.a, link.b):
            if not end.is_switch:
                count[end.index] += 1
    alone = [fabric.nics[index].name for index, links in count.items() if links == 0]
    if alone:
        what = f"leaves {_listed(alone)} without a link"
        yield ("topology", "links"), what, "link every NIC to a switch port"
        return
    yield from _reachability(fabric)


def _reachability(fabric: Fabric) -> Iterator[_Finding]:
    anchors = {entry[0] for entry in fabric.attachment if entry is not None}
    unattached = [
        nic.name for nic, entry in zip(fabric.nics, fabric.attachment, strict=True) if entry is None
    ]
    back_to_back = not fabric.switches and len(fabric.nics) == 2
    if unattached and not back_to_back:
        what = f"link {_listed(unattached)} to a NIC"
        yield ("topology", "links"), what, "link every NIC to a switch port"
    if not anchors:
        return
    first = min(anchors)
    cut = [
        f"{nic.name} (rank {nic.rank})"
        for nic, entry in zip(fabric.nics, fabric.attachment, strict=True)
        if entry is not None and fabric.switch_hops[first, entry[0]] < 0
    ]
    if cut:
        origin = fabric.switches[first].name
        what = f"give no path from {origin} to {_listed(cut)}"
        yield ("topology", "links"), what, "link the switches so that every rank is reachable"


def _headrooms(lab: Lab, fabric: Fabric) -> Iterator[_Finding]:
    for index, switch in enumerate(fabric.switches):
        if shared_bytes(lab, fabric, index) <= 0:
            headroom, reserved = set_aside_bytes(lab, fabric, index)
            parts = []
            if headroom:
                each = headroom_bytes(lab, fabric, index)
                parts.append(f"{headroom} for headroom ({each} per port and lossless priority)")
            if reserved:
                each = sum(reserved_bytes(lab, priority) for priority in range(8))
                parts.append(f"{reserved} for reservations ({each} per port)")
            what = f"is {lab.switches.buffer_bytes}, but {switch.name} sets aside "
            remedy = f"give at least {2 * (headroom + reserved)}"
            yield ("switches", "buffer_bytes"), what + " and ".join(parts), remedy
            return


def _placement(lab: Lab, fabric: Fabric) -> Iterator[_Finding]:
    listed = lab.placement.nics
    if listed is None:
        return
    known = {nic.name for nic in fabric.nics}
    for position, name in enumerate(listed):
        path: KeyPath = ("placement", "nics", position)
        if name not in known:
            yield path, f"is {name}, which is no NIC", "name a NIC of the topology"
        elif name in listed[:position]:
            yield path, f"is {name}, which is named before", "name every NIC once"


def _impairments(lab: Lab, fabric: Fabric) -> Iterator[_Finding]:
    known = set(dataplane.roce_opcodes().values())
    for position, rule in enumerate(lab.impairments):
        for index, name in enumerate(rule.opcodes):
            if name not in known:
                path: KeyPath = ("impairments", position, "opcodes", index)
                yield path, f"is {name}, which is no opcode", suggestion(name, sorted(known))
        if not list(directions(rule, fabric)):
            names = [link.name for link in fabric.links]
            what = f"is {rule.links}, which no link matches"
            remedy = f"name links of the topology, for example {_listed(names[:3])}"
            yield ("impairments", position, "links"), what, remedy


def _agents(lab: Lab, fabric: Fabric) -> Iterator[_Finding]:
    placement = lab.agents.placement
    is_real = lab.driver != "wire"
    nodes = [nic.name for nic in fabric.nics] if is_real else fabric.node_names
    if placement is None:
        if lab.agents.count > len(nodes):
            kind = "NICs" if is_real else "nodes"
            what = f"is {lab.agents.count}, but the lab has {len(nodes)} {kind}"
            yield ("agents", "count"), what, f"give at most {len(nodes)}"
        return
    carrier: dict[str, str] = {}
    for agent, names in placement.items():
        for position, name in enumerate(names):
            path: KeyPath = ("agents", "placement", agent, position)
            if name not in nodes:
                kind = "NIC" if is_real else "node"
                remedy = f"name a {'NIC' if is_real else 'NIC or switch'} of the topology"
                yield path, f"is {name}, which is no {kind}", remedy
            elif name in carrier:
                yield path, f"is {name}, which {carrier[name]} carries", "name every node once"
            carrier.setdefault(name, agent)
    missing = [name for name in nodes if name not in carrier]
    if missing:
        what = f"gives no agent to {_listed(missing)}"
        yield ("agents", "placement"), what, "name every node once"


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:8])
    return shown if len(names) <= 8 else f"{shown} and {len(names) - 8} more"
