"""Rates of the reaction point: whether many flows can slow down together, and come back."""

from collections.abc import Iterator
from dataclasses import replace

from emulator.doctor.diagnosis import Diagnosis, Level
from emulator.lab import LoadedLab
from emulator.lab.congestion import Dcqcn, FixedRate, Swift
from emulator.lab.documents import dotted
from emulator.lab.effective import DataClassSettings, data_classes, notification_preset
from emulator.presets import APPROXIMATE_PRESETS, Sourced

__all__ = ["rate_rules"]

_FRAME_OVERHEAD_BYTES = 82


def rate_rules(loaded: LoadedLab) -> Iterator[Diagnosis]:
    """Findings about the congestion control of every class and the fabric's rates."""
    yield from _oversubscription(loaded)
    items = data_classes(loaded.lab)
    if any(isinstance(item.congestion_control, Dcqcn) for item in items):
        yield _notifications(loaded)
    seen = set()
    for item in items:
        if item.congestion_control_path not in seen:
            seen.add(item.congestion_control_path)
            yield from _class_rules(loaded, item)


def _class_rules(loaded: LoadedLab, item: DataClassSettings) -> Iterator[Diagnosis]:
    """Findings about one setting of congestion control; a class's own begin with its name."""
    own = len(item.congestion_control_path) > 1
    for found in _control_rules(loaded, item):
        yield replace(found, rule=f"{item.name}: {found.rule}") if own else found


def _control_rules(loaded: LoadedLab, item: DataClassSettings) -> Iterator[Diagnosis]:
    control, place = item.congestion_control, dotted(item.congestion_control_path)
    if isinstance(control, Swift):
        yield _acknowledgements(loaded)
        return
    if isinstance(control, FixedRate):
        finding = "a fixed rate doesn't react: an incast fills buffers and is paused"
        remedy = "use dcqcn or swift"
        yield Diagnosis(Level.WARNING, "senders react to congestion", finding, remedy)
        return
    line_rate_bps = min(link.rate_bps for link in loaded.fabric.nic_links.values())
    values = control.resolve(line_rate_bps)
    yield _starvation(loaded, values, place)
    yield _sum_of_minimum_rates(loaded, values, line_rate_bps, place)
    yield _alpha_period(loaded, values, place)
    yield _alpha_digits(values, place)
    yield _pacer(values, place)
    if control.preset in APPROXIMATE_PRESETS:
        finding = f"{control.preset}: {APPROXIMATE_PRESETS[control.preset]}"
        yield Diagnosis(Level.WARNING, "the preset is exact", finding, "keep it in mind")


def _acknowledgements(loaded: LoadedLab) -> Diagnosis:
    rule = "every packet is acknowledged"
    every = loaded.lab.transport.ack_every_packets
    if every > 1:
        finding = f"one in {every}: Swift takes the time that an acknowledgement waits for delay"
        return Diagnosis(Level.WARNING, rule, finding, "set transport.ack_every_packets=1")
    return Diagnosis(Level.GOOD, rule, "Swift measures the fabric's delay only")


def _starvation(loaded: LoadedLab, values: dict[str, Sourced], place: str) -> Diagnosis:
    """Rule: at R_min a packet takes no longer than an increase period.

    Below, a flow at R_min has more increase events than packets that could be marked.
    """
    rule = "the minimum rate can still be marked"
    period_ns = int(values["rate_increase_period_ns"].value)
    minimum = int(values["min_rate_bps"].value)
    frame_bits = 8 * (loaded.lab.transport.mtu_bytes + _FRAME_OVERHEAD_BYTES)
    least = -(-frame_bits * 10**9 // period_ns)
    finding = f"{minimum / 1e6:g} Mb/s, 1 packet per increase period is {least / 1e6:.0f} Mb/s"
    if minimum < least:
        remedy = f"set {place}.min_rate_bps to at least {least}, or many flows may never slow down"
        return Diagnosis(Level.WARNING, rule, finding, remedy)
    return Diagnosis(Level.GOOD, rule, finding)


def _sum_of_minimum_rates(
    loaded: LoadedLab, values: dict[str, Sourced], line_rate_bps: int, place: str
) -> Diagnosis:
    rule = "all senders at their minimum fit one link"
    senders = (len(loaded.fabric.nics) - 1) * loaded.lab.transport.qps_per_peer
    total = senders * int(values["min_rate_bps"].value)
    finding = f"{senders} queue pairs x minimum = {total / 1e9:g} of {line_rate_bps / 1e9:g} Gb/s"
    if total >= line_rate_bps:
        remedy = f"set {place}.min_rate_bps below {line_rate_bps // max(senders, 1)}"
        return Diagnosis(Level.WRONG, rule, finding, remedy)
    return Diagnosis(Level.GOOD, rule, finding)


def _alpha_period(loaded: LoadedLab, values: dict[str, Sourced], place: str) -> Diagnosis:
    """Rule of the paper: K > N, or alpha decays between two notifications of a congested flow."""
    rule = "alpha decays slower than notifications come"
    period_ns = int(values["alpha_update_period_ns"].value)
    notifications = loaded.lab.notification_point.resolve(notification_preset(loaded.lab))
    interval_ns = int(notifications["cnp_interval_ns"].value)
    finding = f"K = {period_ns / 1e3:g} us, N = {interval_ns / 1e3:g} us"
    if values["alpha_update"].value == "on_cnp" and period_ns <= interval_ns:
        remedy = f"set {place}.alpha_update_period_ns above {interval_ns}"
        return Diagnosis(Level.WARNING, rule, finding, remedy)
    return Diagnosis(Level.GOOD, rule, finding)


_FEWEST_DIGITS = 16
"""Binary digits from which on a rounded estimate grows as a real one does."""


def _alpha_digits(values: dict[str, Sourced], place: str) -> Diagnosis:
    """Rounded down, the estimate stops growing where a step is less than its last digit."""
    rule = "the estimate can grow to 1"
    bits, g = int(values["alpha_fraction_bits"].value), float(values["g"].value)
    if bits == 0 or bits >= _FEWEST_DIGITS:
        return Diagnosis(Level.GOOD, rule, "it does")
    one = 1 << bits
    kept, reached = round(one * (1 - g)), 0
    while (after := (reached * kept >> bits) + one - kept) > reached:
        reached = after
    if reached >= one - 1:
        return Diagnosis(Level.GOOD, rule, "it does")
    finding = f"with {bits} binary digits it is rounded down and stops at {reached / one:.2f}"
    remedy = f"set {place}.alpha_fraction_bits to 0 or at least {_FEWEST_DIGITS}"
    return Diagnosis(Level.WARNING, rule, finding, remedy)


def _pacer(values: dict[str, Sourced], place: str) -> Diagnosis:
    """Rule: the next packet's time follows the rate, or recovery is slept through."""
    rule = "a waiting packet takes a changed rate"
    if not values["rearms_pacer"].value:
        finding = "it keeps its time: senders share unfairly, and many never slow down together"
        return Diagnosis(Level.WARNING, rule, finding, f"set {place}.rearms_pacer=true")
    return Diagnosis(Level.GOOD, rule, "it does")


def _notifications(loaded: LoadedLab) -> Diagnosis:
    rule = "receivers notify"
    if not loaded.lab.notification_point.enabled:
        finding = "notification_point.enabled is false: senders never learn of marks"
        return Diagnosis(Level.WRONG, rule, finding, "set np.enabled=true")
    return Diagnosis(Level.GOOD, rule, "marks cause notifications")


def _oversubscription(loaded: LoadedLab) -> Iterator[Diagnosis]:
    """Down over up capacity of every switch with hosts; the worst is told."""
    fabric = loaded.fabric
    worst, name = 0.0, ""
    for switch, entries in zip(fabric.switches, fabric.neighbours, strict=True):
        down = sum(link.rate_bps for _, other, link in entries if not other.is_switch)
        up = sum(link.rate_bps for _, other, link in entries if other.is_switch)
        if up and down / up > worst:
            worst, name = down / up, switch.name
    if worst > 1:
        finding = f"{name} has {worst:.3g}:1 towards the other switches"
        remedy = "expect congestion there; more or faster links make it non-blocking"
        yield Diagnosis(Level.WARNING, "the fabric is non-blocking", finding, remedy)
    elif worst > 0:
        yield Diagnosis(Level.GOOD, "the fabric is non-blocking", f"at most {worst:.3g}:1")
