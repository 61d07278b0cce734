"""Tags and priorities: whether every packet lands where its treatment is."""

from collections.abc import Iterator

from emulator.doctor.diagnosis import Diagnosis, Level
from emulator.lab import LoadedLab
from emulator.lab.congestion import Dcqcn
from emulator.lab.documents import dotted
from emulator.lab.effective import (
    DataClassSettings,
    data_classes,
    drops_not_ect,
    ecn_priorities,
    lossless_priorities,
    strict_priorities,
)
from emulator.lab.model import Lab

__all__ = ["class_rules"]

_SONIC_LOSSLESS_DSCP = (3, 4)
"""DSCPs that a stock SONiC map takes to lossless classes. Source: qos_config.j2."""


def class_rules(loaded: LoadedLab) -> Iterator[Diagnosis]:
    """Findings about the traffic classes."""
    lab = loaded.lab
    for item in data_classes(lab):
        yield _ecn_capable(lab, item)
        yield from _dropped_early(lab, item)
        yield _marked_priority(lab, item)
        yield _dscp_map(lab, item)
    yield _cnp_not_paused(lab)
    yield _cnp_strict(lab)


def _ecn_capable(lab: Lab, item: DataClassSettings) -> Diagnosis:
    rule = f"{item.name} packets are ECN-capable"
    if not lab.switches.ecn.enabled:
        return Diagnosis(Level.WARNING, rule, "ECN is off", "set switches.ecn.enabled=true")
    if not isinstance(item.congestion_control, Dcqcn):
        name = item.congestion_control.algorithm
        return Diagnosis(Level.GOOD, rule, f"{name} doesn't need marks")
    if not item.ecn_capable:
        what = "switches mark only ECT packets, and these are not"
        key = f"{dotted(item.path)}.ecn_capable"
        if item.name == "data":
            key = "traffic_classes.data_ecn_capable"
        return Diagnosis(Level.WRONG, rule, what, f"set {key}=true")
    return Diagnosis(Level.GOOD, rule, "they carry ECT(0)")


def _dropped_early(lab: Lab, item: DataClassSettings) -> Iterator[Diagnosis]:
    """Only of queues that drop what they can't mark."""
    acknowledgement = lab.traffic_classes.acknowledgement.priority
    ack_priority = acknowledgement if item.name == "data" else item.priority
    for what, priority, is_capable in (
        ("packets", item.priority, item.ecn_capable),
        ("acknowledgements", ack_priority, item.ack_ecn_capable),
    ):
        if not drops_not_ect(lab, priority):
            continue
        rule = f"{what} of {item.name} are marked rather than dropped"
        if is_capable:
            yield Diagnosis(Level.GOOD, rule, "they carry ECT(0)")
            continue
        told = f"they are not ECN-capable, and queues of priority {priority} drop such packets"
        remedy = "make them ECN-capable, or set switches.ecn.drops_not_ect=false"
        yield Diagnosis(Level.WARNING, rule, told, remedy)


def _marked_priority(lab: Lab, item: DataClassSettings) -> Diagnosis:
    rule = f"the priority of {item.name} is marked"
    priority = item.priority
    needed = lab.switches.ecn.enabled and isinstance(item.congestion_control, Dcqcn)
    if needed and priority not in ecn_priorities(lab):
        what = f"{item.name} has priority {priority}, marks are on {ecn_priorities(lab)}"
        return Diagnosis(Level.WRONG, rule, what, f"add {priority} to switches.ecn.priorities")
    return Diagnosis(Level.GOOD, rule, f"priority {priority}")


def _cnp_not_paused(lab: Lab) -> Diagnosis:
    rule = "notifications are never paused"
    priority = lab.traffic_classes.cnp.priority
    if priority in lossless_priorities(lab):
        what = f"their priority {priority} is lossless: a pause would hold back the cure"
        return Diagnosis(Level.WRONG, rule, what, "give traffic_classes.cnp a lossy priority")
    return Diagnosis(Level.GOOD, rule, f"priority {priority} is lossy")


def _cnp_strict(lab: Lab) -> Diagnosis:
    rule = "notifications go first"
    priority = lab.traffic_classes.cnp.priority
    if priority not in strict_priorities(lab):
        what = f"their priority {priority} is weighted: they queue behind data"
        remedy = f"add {priority} to switches.strict_priorities"
        return Diagnosis(Level.WARNING, rule, what, remedy)
    return Diagnosis(Level.GOOD, rule, f"priority {priority} is strict")


def _dscp_map(lab: Lab, data: DataClassSettings) -> Diagnosis:
    rule = f"the DSCP of {data.name} is lossless in the fabric"
    if data.priority not in lossless_priorities(lab):
        what = f"priority {data.priority} is lossy: drops make go-back-N retransmissions"
        remedy = f"add {data.priority} to switches.pfc.priorities, if the fabric is lossless"
        return Diagnosis(Level.WARNING, rule, what, remedy)
    what = f"DSCP {data.dscp} has the lossless priority {data.priority} here"
    if data.dscp not in _SONIC_LOSSLESS_DSCP:
        what += "; on real switches check the map: stock SONiC takes only DSCP 3 and 4 to lossless"
    return Diagnosis(Level.GOOD, rule, what)
