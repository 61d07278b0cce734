"""What the kernel has counted at every port of a lab that is up: interface, queues, marks.

Totals since the lab was made; the difference of two readings is what a run did. All bytes are
frames without FCS, as the kernel counts.
"""

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from emulator.namespaces import kernel, state
from emulator.namespaces.layout import Layout, NamespacePort
from emulator.namespaces.marking import (
    VALUE_BYTES,
    MarkingCounters,
    marking_parameters,
    read_counters,
)
from emulator.namespaces.netlink import Channel
from nic_drivers.bpf import ArrayMap

__all__ = ["PortCounters", "columns", "counters", "difference"]


@dataclass(frozen=True, slots=True)
class PortCounters:
    """One port: one end of a link."""

    node: str
    port: int
    link: str
    direction: int
    """Of the link that leaves here."""
    is_switch: bool
    is_up: bool
    """Of the interface, by its administrator."""
    tx_packets: int
    """Left the interface. A packet that is cut behind the queue counts in its parts."""
    tx_bytes: int
    tx_dropped_packets: int
    rx_packets: int
    rx_bytes: int
    rx_dropped_packets: int
    queued_packets: int
    """Left the root queueing discipline."""
    queued_bytes: int
    queue_dropped_packets: int
    """Dropped by the root queueing discipline: its own limit, behind the marking program's."""
    overlimits: int
    """Times that the shaper had a packet wait."""
    backlog_bytes: int
    """In the queues at the time of the reading."""
    marking: MarkingCounters | None
    """Of the marking program, on ports of switches."""


def counters(layout: Layout) -> tuple[PortCounters, ...]:
    """Read every port, link by link, end a first; raises `InputError` unless the lab is up."""
    current = state.check_up(layout)
    ports = list(layout.ports)
    statistics = {name: _read(name) for name in {port.namespace for port in ports}}
    marks = _marks(layout, current.map_number)
    return tuple(
        _port_counters(port, *statistics[port.namespace][port.index], marks.get(port.place))
        for port in ports
    )


def difference(
    before: Sequence[PortCounters], after: Sequence[PortCounters]
) -> tuple[PortCounters, ...]:
    """What was counted between two readings of one lab; the backlog is the later one's."""
    return tuple(_difference(old, new) for old, new in zip(before, after, strict=True))


def columns(ports: Sequence[PortCounters]) -> dict[str, list[Any]]:
    """Readings as columns for a table: a row for each port, `None` where a port does not mark.

    The counters of the marking program have their own names; histograms are lists.
    """
    plain = [field.name for field in fields(PortCounters) if field.name != "marking"]
    found: dict[str, list[Any]] = {name: [getattr(p, name) for p in ports] for name in plain}
    for field in fields(MarkingCounters):
        name = "marking_packets" if field.name == "packets" else field.name
        values = [p.marking and getattr(p.marking, field.name) for p in ports]
        found[name] = [list(value) if isinstance(value, tuple) else value for value in values]
    return found


_LEVELS = frozenset({"port", "direction", "is_switch", "is_up", "backlog_bytes", "bucket_bytes"})
"""Fields that are no totals."""


def _difference(old: Any, new: Any) -> Any:
    changes: dict[str, Any] = {}
    for field in fields(new):
        name, value = field.name, getattr(new, field.name)
        if name in _LEVELS:
            continue
        if isinstance(value, int):
            changes[name] = value - getattr(old, name)
        elif isinstance(value, tuple):
            pairs = zip(getattr(old, name), value, strict=True)
            changes[name] = tuple(last - first for first, last in pairs)
        elif isinstance(value, MarkingCounters):
            changes[name] = _difference(getattr(old, name), value)
    return replace(new, **changes)


def _read(namespace: str) -> dict[int, tuple[Any, Any]]:
    """Interface index -> the interface, and statistics of its root queueing discipline."""
    with kernel.inside(namespace), contextlib.closing(Channel()) as channel:
        links, disciplines = channel.links(), channel.qdiscs()
    roots = {
        message["index"]: message.get_attr("TCA_STATS2")
        for message in disciplines
        if message["parent"] == 0xFFFF_FFFF
    }
    return {link["index"]: (link, roots[link["index"]]) for link in links if link["index"] in roots}


def _marks(layout: Layout, map_number: int | None) -> dict[str, MarkingCounters]:
    parameters = marking_parameters(layout)
    if map_number is None or not parameters:
        return {}
    with ArrayMap.open(map_number, VALUE_BYTES, len(parameters)) as entries:
        return {
            place: read_counters(entries.read(values.slot), values)
            for place, values in parameters.items()
        }


def _port_counters(
    port: NamespacePort, link: Any, discipline: Any, marking: MarkingCounters | None
) -> PortCounters:
    interface = link.get_attr("IFLA_STATS64")
    basic, queue = discipline.get_attr("TCA_STATS_BASIC"), discipline.get_attr("TCA_STATS_QUEUE")
    return PortCounters(
        node=port.node,
        port=port.number,
        link=port.link,
        direction=port.direction,
        is_switch=port.is_switch,
        is_up=bool(link["flags"] & 1),
        tx_packets=interface["tx_packets"],
        tx_bytes=interface["tx_bytes"],
        tx_dropped_packets=interface["tx_dropped"],
        rx_packets=interface["rx_packets"],
        rx_bytes=interface["rx_bytes"],
        rx_dropped_packets=interface["rx_dropped"],
        queued_packets=basic["packets"],
        queued_bytes=basic["bytes"],
        queue_dropped_packets=queue["drops"],
        overlimits=queue["overlimits"],
        backlog_bytes=queue["backlog"],
        marking=marking,
    )
