"""A port's queueing disciplines: its link's rate, its buffer, and what marks."""

import struct
from collections.abc import Iterator
from typing import Any, Final

from emulator.lab.effective import EcnProfile
from emulator.lab.namespaces import Namespaces
from emulator.namespaces.classifying import STRICT_CLASS
from emulator.namespaces.layout import NamespacePort
from emulator.namespaces.marking import LINE_OVERHEAD_BYTES
from emulator.namespaces.netlink import Request, add_class, add_qdisc

__all__ = ["CLSACT_EGRESS", "burst_bytes", "clsact_request", "probe_requests", "shaping_requests"]

# include/uapi/linux/pkt_sched.h
_ROOT: Final = 0xFFFF_FFFF
_CLSACT: Final = 0xFFFF_FFF1
CLSACT_EGRESS: Final = 0xFFFF_FFF3
"""Parent of a filter at a port's egress."""
_SHAPER, _CLASS, _BAND = 0x1_0000, 0x1_0001, 0x1_0010
_QUEUE, _STRICT_QUEUE = 0x10_0000, 0x20_0000
_RED_PARAMETERS, _RED_TABLE, _RED_PROBABILITY = 1, 2, 3
_RED_ECN: Final = 1
_TICK_NS: Final = 64
"""Unit of a burst. Source: PSCHED_SHIFT in include/net/pkt_sched.h."""

_ETHERNET_BYTES: Final = 14
_LATENESS_NS: Final = 200_000
"""A timer may be so late without cost to the rate: bytes of this time may leave at once. Our
choice: 99.9 % of the wake-ups of a small virtual machine are earlier."""
_SLACK_BYTES: Final = 1 << 20
"""The real queue holds more than the virtual one, so that the virtual one decides on drops."""


_MOST_BYTES: Final = 0x7FFF_FFFF
_LEAST_BPS: Final = 8_000
"""What a band has without borrowing: next to nothing."""


def burst_bytes(rate_bps: int, mtu_bytes: int) -> int:
    """Bytes that may leave a port at once."""
    frame = mtu_bytes + _ETHERNET_BYTES + LINE_OVERHEAD_BYTES
    return frame + rate_bps * _LATENESS_NS // (8 * 10**9)


def shaping_requests(
    port: NamespacePort, options: Namespaces, *, has_strict_band: bool
) -> Iterator[Request]:
    """Requests that shape a port, with a queue that marks if `marking` is sch_red."""
    index, mtu_bytes = port.index, options.mtu_bytes
    limit_bytes = min(port.buffer_bytes + _SLACK_BYTES, _MOST_BYTES)
    parent = _ROOT
    if options.shaper == "htb":
        parent = _BAND if has_strict_band else _CLASS
        yield from _htb_requests(port, mtu_bytes, parent, limit_bytes)
    elif options.shaper == "tbf":
        parent = _CLASS
        yield add_qdisc(index, "tbf", _SHAPER, _ROOT, _tbf(port.rate_bps, mtu_bytes, limit_bytes))
    if options.marking == "sch_red" and port.marking is not None:
        red = _red(port.marking, min(port.buffer_bytes, _MOST_BYTES), mtu_bytes)
        yield add_qdisc(index, "red", _QUEUE, parent, red)
    elif options.shaper == "htb":
        yield add_qdisc(index, "bfifo", _QUEUE, parent, struct.pack("=I", limit_bytes))


def _htb_requests(
    port: NamespacePort, mtu_bytes: int, data_class: int, limit_bytes: int
) -> Iterator[Request]:
    """One class at the link's rate; with a strict band, two below it that borrow all of it.

    HTB offers what is to be borrowed to classes of the lower number of `prio` first.
    """
    index, burst = port.index, burst_bytes(port.rate_bps, mtu_bytes)
    frame = mtu_bytes + _ETHERNET_BYTES
    whole = _htb_class(port.rate_bps, port.rate_bps, burst, frame)
    yield add_qdisc(index, "htb", _SHAPER, _ROOT, _htb(data_class))
    yield add_class(index, "htb", _CLASS, _SHAPER, whole)
    if data_class == _CLASS:
        return
    for order, handle in enumerate((STRICT_CLASS, _BAND)):
        band = _htb_class(_LEAST_BPS, port.rate_bps, burst, frame, order)
        yield add_class(index, "htb", handle, _CLASS, band)
    yield add_qdisc(index, "bfifo", _STRICT_QUEUE, STRICT_CLASS, struct.pack("=I", limit_bytes))


def clsact_request(index: int) -> Request:
    """The place where a marking program is attached."""
    return add_qdisc(index, "clsact", 0xFFFF_0000, _CLSACT)


def probe_requests(options: Namespaces) -> Iterator[tuple[str, Request]]:
    """Kind and request of every queueing discipline that is needed, for the loopback interface."""
    if options.shaper != "none":
        yield options.shaper, add_qdisc(1, options.shaper, _SHAPER, _ROOT)
    if options.marking == "ebpf" or options.shaper == "htb":
        yield "ingress", clsact_request(1)
    if options.marking == "sch_red":
        yield "red", add_qdisc(1, "red", _QUEUE, _ROOT)


def _ticks(rate_bps: int, size_bytes: int) -> int:
    return size_bytes * 8 * 10**9 // (rate_bps * _TICK_NS)


def _htb(default_class: int) -> dict[str, Any]:
    values = {"version": 3, "rate2quantum": 10, "defcls": default_class & 0xFFFF, "debug": 0}
    return {"attrs": [("TCA_HTB_INIT", {**values, "direct_pkts": 0})]}


def _htb_class(
    rate_bps: int, ceiling_bps: int, burst: int, quantum_bytes: int, order: int = 0
) -> dict[str, Any]:
    rate, ceiling = rate_bps // 8, ceiling_bps // 8
    values = {
        "rate": min(rate, 0xFFFF_FFFF),
        "ceil": min(ceiling, 0xFFFF_FFFF),
        "rate_overhead": LINE_OVERHEAD_BYTES,
        "ceil_overhead": LINE_OVERHEAD_BYTES,
        "buffer": _ticks(rate_bps, quantum_bytes if rate < ceiling else burst),
        "cbuffer": _ticks(ceiling_bps, burst),
        "quantum": quantum_bytes,
        "prio": order,
    }
    attributes: list[tuple[str, Any]] = [
        ("TCA_HTB_PARMS", values),
        ("TCA_HTB_RTAB", True),
        ("TCA_HTB_CTAB", True),
    ]
    if ceiling > 0xFFFF_FFFF:
        attributes += [("TCA_HTB_RATE64", rate), ("TCA_HTB_CEIL64", ceiling)]
    return {"attrs": attributes}


def _tbf(rate_bps: int, mtu_bytes: int, limit_bytes: int) -> dict[str, Any]:
    values = {
        "rate": min(rate_bps // 8, 0xFFFF_FFFF),
        "rate_overhead": LINE_OVERHEAD_BYTES,
        "buffer": _ticks(rate_bps, burst_bytes(rate_bps, mtu_bytes)),
        "mtu": 0,
        "limit": limit_bytes,
    }
    return {"attrs": [("TCA_TBF_PARMS", values), ("TCA_TBF_RTAB", True)]}


def _red(profile: EcnProfile, buffer_bytes: int, mtu_bytes: int) -> bytes:
    """RED on the queue as it is (Wlog 0), marking instead of dropping.

    Source: struct tc_red_qopt and TCA_RED_* in include/uapi/linux/pkt_sched.h. The kernel spaces
    marks evenly: of packets at one depth it marks up to twice the probability.
    """
    parameters = struct.pack(
        "=IIIBBBB",
        buffer_bytes,
        max(profile.kmin_bytes, mtu_bytes),
        profile.kmax_bytes,
        *(0, 0, 0, _RED_ECN),
    )
    probability = struct.pack("=I", min(round(profile.pmax_ratio * 2**32), 2**32 - 1))
    given = {_RED_PARAMETERS: parameters, _RED_TABLE: bytes(256), _RED_PROBABILITY: probability}
    return b"".join(struct.pack("=HH", 4 + len(data), kind) + data for kind, data in given.items())
