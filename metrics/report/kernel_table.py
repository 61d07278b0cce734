"""The kernel's counters of a lab of namespaces, beside those of the drivers."""

from collections.abc import Mapping, Sequence
from typing import Any

from metrics.presentation import count_text, share_text, size_text
from metrics.report.markup import Cell, Column, Raw, table

__all__ = ["kernel_table"]

_ETHERNET_BYTES = 14


def kernel_table(
    kernel: Mapping[str, Sequence[Any]], ports: Mapping[str, Sequence[int]]
) -> tuple[Raw, str]:
    """One row for each port of a host or switch; and whether hosts and drivers agree on bytes."""
    columns = [
        Column("Node", numeric=False),
        Column("Port"),
        Column("Link", numeric=False),
        Column("Bytes", hint="Sent: frames without FCS, as the kernel counts"),
        Column("Packets", hint="Sent"),
        Column("Waited", hint="Times that the shaper let a packet wait"),
        Column("Dropped", hint="By the interface, its queue or the full buffer of the port"),
        Column("Can be marked", hint="Packets with ECT or CE that came to the port"),
        Column("Marked", hint="CE set here"),
        Column("Marked share", hint="Marked / can be marked"),
    ]
    names = list(kernel)
    ports_of = zip(*kernel.values(), strict=True)
    rows = [_row(dict(zip(names, values, strict=True))) for values in ports_of]
    return table(columns, rows), _agreement(kernel, ports)


def _row(port: Mapping[str, Any]) -> list[Cell]:
    dropped = port["tx_dropped_packets"] + port["queue_dropped_packets"]
    dropped += port["dropped_packets"] or 0
    capable, marked = port["capable_packets"], port["marked_packets"]
    share = marked / capable if capable else None
    return [
        Cell(port["node"]),
        Cell(str(port["port"]), port["port"]),
        Cell(port["link"]),
        Cell(size_text(port["tx_bytes"]), port["tx_bytes"]),
        *(_count(port[name]) for name in ("tx_packets", "overlimits")),
        _count(dropped),
        _count(capable),
        _count(marked),
        Cell(share_text(share) if share is not None else "", share or 0.0),
    ]


def _count(number: int | None) -> Cell:
    return Cell("" if number is None else count_text(number), -1 if number is None else number)


def _agreement(kernel: Mapping[str, Sequence[Any]], ports: Mapping[str, Sequence[int]]) -> str:
    """Bytes of the hosts' interfaces against those that the drivers counted.

    With an XDP program in its driver, veth counts what comes without the Ethernet header.
    """
    sums = []
    frames = sum(ports.get("frames_received", ()))
    for way, column, own in (
        ("sent", "tx_bytes", "bytes_sent"),
        ("received", "rx_bytes", "bytes_received"),
    ):
        hosts = zip(kernel[column], kernel["is_switch"], strict=True)
        counted = sum(value for value, is_switch in hosts if not is_switch)
        driven = sum(ports.get(own, ()))
        verdict = f"{abs(counted - driven):,} apart"
        if counted == driven:
            verdict = "the same"
        elif way == "received" and driven - counted == _ETHERNET_BYTES * frames:
            verdict = "the same without the Ethernet headers, which veth leaves out under XDP"
        sums.append(f"{way} {counted:,} by the kernel, {driven:,} by the drivers: {verdict}")
    return "Bytes of all hosts: " + "; ".join(sums) + "."
