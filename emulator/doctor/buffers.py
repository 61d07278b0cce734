"""Buffers and thresholds: marks before pauses, and headroom that holds."""

from collections.abc import Iterator

from emulator.doctor.diagnosis import Diagnosis, Level
from emulator.lab import LoadedLab
from emulator.lab.effective import (
    ecn_profile,
    headroom_bytes,
    headroom_pool_bytes,
    lossless_priorities,
    needed_headroom_bytes,
    shared_bytes,
)

__all__ = ["buffer_rules"]


def buffer_rules(loaded: LoadedLab) -> Iterator[Diagnosis]:
    """Findings about every switch, worst one told for each rule."""
    if not loaded.fabric.switches or not lossless_priorities(loaded.lab):
        return
    yield _marks_before_pauses(loaded)
    yield _certain_marks_before_pauses(loaded)
    yield _headroom(loaded)
    yield _xon_offset(loaded)


def queue_at_pause_bytes(loaded: LoadedLab, switch: int, ingresses: int) -> float:
    """Egress queue at which `ingresses` equal senders into it are paused.

    With the dynamic threshold each holds x = alpha (B - n x), so that the queue is
    n x = n alpha B / (1 + n alpha). Source: DCQCN, SIGCOMM 2015, section 4.
    """
    static = loaded.lab.switches.pfc.xoff_bytes
    if static is not None:
        return float(ingresses * static)
    alpha = loaded.lab.switches.dynamic_threshold_alpha
    shared = shared_bytes(loaded.lab, loaded.fabric, switch)
    return ingresses * alpha * shared / (1 + ingresses * alpha)


def _marks_before_pauses(loaded: LoadedLab) -> Diagnosis:
    rule = "marking begins before pausing"
    fabric = loaded.fabric
    worst = min(
        range(len(fabric.switches)), key=lambda switch: queue_at_pause_bytes(loaded, switch, 2)
    )
    kmin = _threshold(loaded, worst, "kmin_bytes")
    if kmin is None:
        return Diagnosis(Level.WARNING, rule, "ECN is off: PFC is the only control", "turn it on")
    at_pause = queue_at_pause_bytes(loaded, worst, 2)
    name = fabric.switches[worst].name
    finding = f"on {name} kmin is {kmin} and a 2:1 incast is paused at {at_pause:.0f} bytes"
    if kmin >= at_pause:
        remedy = f"set ecn.kmin_bytes below {at_pause:.0f}, or give switches.buffer_bytes more"
        return Diagnosis(Level.WRONG, rule, finding, remedy)
    return Diagnosis(Level.GOOD, rule, finding)


def _certain_marks_before_pauses(loaded: LoadedLab) -> Diagnosis:
    rule = "every packet is marked before pausing"
    fabric = loaded.fabric
    worst = min(range(len(fabric.switches)), key=lambda switch: _incast_limit(loaded, switch))
    kmax = _threshold(loaded, worst, "kmax_bytes")
    if kmax is None:
        return Diagnosis(Level.WARNING, rule, "ECN is off", "turn it on")
    at_pause = _incast_limit(loaded, worst)
    name = fabric.switches[worst].name
    finding = f"on {name} kmax is {kmax} and the widest incast is paused at {at_pause:.0f} bytes"
    if kmax > at_pause:
        remedy = f"set ecn.kmax_bytes to at most {at_pause:.0f}"
        return Diagnosis(Level.WARNING, rule, finding, remedy)
    return Diagnosis(Level.GOOD, rule, finding)


def _incast_limit(loaded: LoadedLab, switch: int) -> float:
    ingresses = max(len(loaded.fabric.neighbours[switch]) - 1, 1)
    return queue_at_pause_bytes(loaded, switch, ingresses)


def _threshold(loaded: LoadedLab, switch: int, key: str) -> int | None:
    rates = [link.rate_bps for _, _, link in loaded.fabric.neighbours[switch]]
    profile = ecn_profile(loaded.lab, min(rates)) if rates else None
    return None if profile is None else int(getattr(profile, key))


def _headroom(loaded: LoadedLab) -> Diagnosis:
    rule = "headroom holds what is in flight"
    lab, fabric = loaded.lab, loaded.fabric
    short = [
        (
            needed_headroom_bytes(lab, fabric, switch),
            fabric.switches[switch].name,
            headroom_bytes(lab, fabric, switch, priority),
        )
        for switch in range(len(fabric.switches))
        for priority in lossless_priorities(lab)
        if headroom_bytes(lab, fabric, switch, priority)
        < needed_headroom_bytes(lab, fabric, switch)
    ]
    if short:
        needed, name, has = max(short)
        finding = f"{name} has {has} bytes and needs {needed}"
        remedy = "leave switches.pfc.headroom_bytes out: it is computed then"
        return Diagnosis(Level.WRONG, rule, finding, remedy)
    for switch, item in enumerate(fabric.switches):
        pool, each = headroom_pool_bytes(lab, fabric, switch), headroom_bytes(lab, fabric, switch)
        if pool is not None and pool < each:
            finding = f"{item.name} has a pool of {pool} bytes, and one ingress may need {each}"
            return Diagnosis(Level.WRONG, rule, finding, "give the pool more, or leave it out")
    most = max(headroom_bytes(lab, fabric, switch) for switch in range(len(fabric.switches)))
    return Diagnosis(Level.GOOD, rule, f"{most} bytes per port and lossless priority")


def _xon_offset(loaded: LoadedLab) -> Diagnosis:
    rule = "resuming is two packets below pausing"
    offset = loaded.lab.switches.pfc.xon_offset_bytes
    least = 2 * loaded.lab.transport.mtu_bytes
    if offset < least:
        remedy = f"set pfc.xon_offset_bytes to at least {least}"
        return Diagnosis(Level.WARNING, rule, f"the offset is {offset} bytes", remedy)
    return Diagnosis(Level.GOOD, rule, f"the offset is {offset} bytes")
