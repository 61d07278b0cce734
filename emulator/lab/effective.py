"""What a lab's settings come to once presets, defaults and formulas are resolved."""

from dataclasses import dataclass
from typing import Any

from emulator.lab.congestion import Algorithm, Dcqcn
from emulator.lab.documents import KeyPath
from emulator.lab.fabric import Fabric
from emulator.lab.model import Lab
from emulator.lab.traffic_classes import DataClass, FurtherClass
from emulator.presets import SWITCH_PRESETS, Sourced

__all__ = [
    "DataClassSettings",
    "EcnProfile",
    "data_classes",
    "drops_not_ect",
    "ecn_priorities",
    "ecn_profile",
    "headroom_bytes",
    "headroom_pool_bytes",
    "lossless_priorities",
    "needed_headroom_bytes",
    "notification_preset",
    "queue_setting",
    "reserved_bytes",
    "set_aside_bytes",
    "shared_bytes",
    "sourced_ecn",
    "strict_priorities",
]

_FRAME_OVERHEAD_BYTES = 82
"""Ethernet, IPv4, UDP, BTH, RETH, ICRC and FCS around the payload of a full packet."""

_PAUSE_FRAME_BYTES = 64


@dataclass(frozen=True, slots=True)
class DataClassSettings:
    """One class of data packets with everything resolved."""

    name: str
    """`data`, or the name of a further class."""
    path: KeyPath
    """Where the class is in the lab file."""
    dscp: int
    priority: int
    ecn_capable: bool
    ack_ecn_capable: bool
    """So are its acknowledgements."""
    congestion_control: Algorithm
    """The class's own, else the lab's."""
    congestion_control_path: KeyPath
    """Where that is in the lab file."""


def data_classes(lab: Lab) -> list[DataClassSettings]:
    """Every class of data packets, in the order of the engine's numbers."""
    classes = lab.traffic_classes
    first: KeyPath = ("traffic_classes", "data")
    found = [_settings(lab, "data", first, classes.data, classes.data_ecn_capable)]
    for index, further in enumerate(classes.further):
        path: KeyPath = ("traffic_classes", "further", index)
        found.append(_settings(lab, further.name, path, further, further.ecn_capable))
    return found


def _settings(
    lab: Lab, name: str, path: KeyPath, given: DataClass | FurtherClass, ecn_capable: bool
) -> DataClassSettings:
    own = given.congestion_control
    acknowledgement = lab.traffic_classes.acknowledgement
    ack_priority = acknowledgement.priority if name == "data" else given.priority
    ack_capable = acknowledgement.ecn_capable
    if ack_capable is None:
        ack_capable = ecn_capable and drops_not_ect(lab, ack_priority)
    return DataClassSettings(
        name=name,
        path=path,
        dscp=given.dscp,
        priority=given.priority,
        ecn_capable=ecn_capable,
        ack_ecn_capable=ack_capable,
        congestion_control=lab.congestion_control if own is None else own,
        congestion_control_path=(() if own is None else path) + ("congestion_control",),
    )


def notification_preset(lab: Lab) -> str:
    """Preset that the notification point falls back on: of the first class with DCQCN."""
    for item in data_classes(lab):
        if isinstance(item.congestion_control, Dcqcn):
            return item.congestion_control.preset
    return "mlx5"


@dataclass(frozen=True, slots=True)
class EcnProfile:
    """What a queue of one port does about its length."""

    kmin_bytes: int
    kmax_bytes: int
    pmax_ratio: float
    drops_not_ect: bool = False


def queue_setting(lab: Lab, priority: int | None, key: str) -> Any:
    """What `switches.queues` says of one priority; `None` if nothing."""
    settings = (item for item in lab.switches.queues if item.priority == priority)
    return next((getattr(item, key) for item in settings), None)


def ecn_profile(lab: Lab, rate_bps: int, priority: int | None = None) -> EcnProfile | None:
    """The marking profile of a port of `rate_bps`; `None` when nothing is marked.

    That of a priority if one is given, else what holds for all that say nothing else.
    """
    if not lab.switches.ecn.enabled:
        return None
    values = sourced_ecn(lab, rate_bps, priority)
    return EcnProfile(
        int(values["kmin_bytes"].value),
        int(values["kmax_bytes"].value),
        float(values["pmax_ratio"].value),
        _drops_not_ect(lab, priority),
    )


def sourced_ecn(lab: Lab, rate_bps: int, priority: int | None = None) -> dict[str, Sourced]:
    """kmin_bytes, kmax_bytes and pmax_ratio of a port of `rate_bps`, with their sources."""
    ecn = lab.switches.ecn
    values = dict(SWITCH_PRESETS[ecn.preset](rate_bps))
    for key in values:
        of_queue = queue_setting(lab, priority, key)
        given = of_queue if of_queue is not None else getattr(ecn, key)
        if given is not None:
            values[key] = Sourced(given, "lab file")
    return values


def drops_not_ect(lab: Lab, priority: int) -> bool:
    """A queue of that priority drops what it would mark but can't."""
    return priority in ecn_priorities(lab) and _drops_not_ect(lab, priority)


def _drops_not_ect(lab: Lab, priority: int | None) -> bool:
    of_queue = queue_setting(lab, priority, "drops_not_ect")
    return bool(lab.switches.ecn.drops_not_ect if of_queue is None else of_queue)


def _with_queues(lab: Lab, priorities: list[int], key: str) -> list[int]:
    """Priorities with and without those that `switches.queues` says yes or no to."""
    said = {item.priority: getattr(item, key) for item in lab.switches.queues}
    wanted = {priority for priority in priorities if said.get(priority) is not False}
    return sorted(wanted | {priority for priority, yes in said.items() if yes})


def ecn_priorities(lab: Lab) -> list[int]:
    """Priorities whose queues mark."""
    given = lab.switches.ecn.priorities
    if not lab.switches.ecn.enabled:
        return []
    return _with_queues(lab, given if given is not None else _data_priorities(lab), "marks")


def _data_priorities(lab: Lab) -> list[int]:
    classes = lab.traffic_classes
    return sorted({item.priority for item in (classes.data, *classes.further)})


def lossless_priorities(lab: Lab) -> list[int]:
    """Priorities with PFC."""
    pfc = lab.switches.pfc
    if not pfc.enabled:
        return []
    given = pfc.priorities
    return _with_queues(lab, given if given is not None else _data_priorities(lab), "lossless")


def strict_priorities(lab: Lab) -> list[int]:
    """Priorities served before all others."""
    given = lab.switches.strict_priorities
    default = [lab.traffic_classes.cnp.priority]
    return _with_queues(lab, given if given is not None else default, "strict")


def headroom_bytes(lab: Lab, fabric: Fabric, switch: int, priority: int | None = None) -> int:
    """Headroom per port and lossless priority of a switch: as given, or what is needed.

    That of a priority if one is given, else of all that say nothing else.
    """
    of_queue = queue_setting(lab, priority, "headroom_bytes")
    given = of_queue if of_queue is not None else lab.switches.pfc.headroom_bytes
    return given if given is not None else needed_headroom_bytes(lab, fabric, switch)


def needed_headroom_bytes(lab: Lab, fabric: Fabric, switch: int) -> int:
    """Headroom that is enough for the longest, fastest link of a switch.

    2 delay rate / 8 + the peer's frame just begun + the own frame that delays the pause + the
    pause frame + the peer's response. Source: IEEE 802.1Q annex N.
    """
    pfc = lab.switches.pfc
    in_flight = max(
        (
            -(-2 * link.delay_ps * link.rate_bps // (8 * 10**12))
            for _, _, link in fabric.neighbours[switch]
        ),
        default=0,
    )
    frames = 2 * (lab.transport.mtu_bytes + _FRAME_OVERHEAD_BYTES)
    fixed = frames + _PAUSE_FRAME_BYTES + pfc.response_bytes + pfc.headroom_allowance_bytes
    return in_flight + fixed


def shared_bytes(lab: Lab, fabric: Fabric, switch: int) -> int:
    """The switch's buffer without what it sets aside; not positive when that doesn't fit."""
    return lab.switches.buffer_bytes - sum(set_aside_bytes(lab, fabric, switch))


def set_aside_bytes(lab: Lab, fabric: Fabric, switch: int) -> tuple[int, int]:
    """What a switch sets aside: headroom (the pool, or the headrooms of all) and reservations."""
    pool = headroom_pool_bytes(lab, fabric, switch)
    headroom = pool if pool is not None else _all_headrooms_bytes(lab, fabric, switch)
    each = sum(reserved_bytes(lab, priority) for priority in range(8))
    return headroom, each * len(fabric.neighbours[switch])


def reserved_bytes(lab: Lab, priority: int) -> int:
    """Kept for each ingress of a lossless priority, for each egress queue of a lossy one."""
    of_queue = queue_setting(lab, priority, "reserved_bytes")
    if of_queue is not None:
        return int(of_queue)
    switches = lab.switches
    is_lossless = priority in lossless_priorities(lab)
    return switches.pfc.reserved_bytes if is_lossless else switches.queue_reserved_bytes


def headroom_pool_bytes(lab: Lab, fabric: Fabric, switch: int) -> int | None:
    """The headroom that all ports and lossless priorities share; `None` if each has its own."""
    pfc = lab.switches.pfc
    if pfc.headroom_pool_bytes is not None:
        return pfc.headroom_pool_bytes if lossless_priorities(lab) else None
    if pfc.headroom_oversubscription is None or not lossless_priorities(lab):
        return None
    return round(_all_headrooms_bytes(lab, fabric, switch) / pfc.headroom_oversubscription)


def _all_headrooms_bytes(lab: Lab, fabric: Fabric, switch: int) -> int:
    each = [headroom_bytes(lab, fabric, switch, n) for n in lossless_priorities(lab)]
    return sum(each) * len(fabric.neighbours[switch])
