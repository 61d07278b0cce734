"""What the ports of a real network can do, as probed when they were opened."""

from collections.abc import Mapping
from typing import Any

from metrics.presentation import MISSING, count_text
from metrics.report.markup import Cell, Column, Raw, table

__all__ = ["port_table"]

_ICRC = {"sender": "rankwire", "hardware": "adapter"}


def port_table(ports: Mapping[str, Mapping[str, Any]]) -> Raw | None:
    """One row for each NIC's port; None where the fabric is emulated."""
    if not ports:
        return None
    columns = [
        Column("NIC", numeric=False),
        Column("Driver", numeric=False),
        Column("Interface", numeric=False),
        Column("Max frame", hint="Without FCS"),
        Column("Burst", hint="Packets that the kernel is given as one, at most"),
        Column("Segmentation", numeric=False, hint="Kernel or adapter cut such bursts"),
        Column("Coalescing", numeric=False, hint="Packets of a flow are handed out as one"),
        Column("ECN", numeric=False, hint="The codepoint of a packet is told"),
        Column("ICRC", numeric=False, hint="Who computes it; and what of it is verified"),
        Column("Arrival times", numeric=False, hint="Where they are taken"),
        Column("XDP", numeric=False, hint="Where the program runs; whether frames are copied"),
        Column("Queues", hint="Of the interface, served by the driver itself"),
    ]
    return table(columns, [_row(nic, port) for nic, port in ports.items()])


def _row(nic: str, port: Mapping[str, Any]) -> list[Cell]:
    longest, burst, queues = (
        _count(port.get(name)) for name in ("max_frame_bytes", "max_burst_packets", "queues")
    )
    return [
        Cell(nic),
        Cell(str(port.get("driver", MISSING))),
        Cell(_place(port)),
        Cell(f"{count_text(longest)} B" if longest else MISSING, longest),
        Cell(count_text(burst) if burst else MISSING, burst),
        *(Cell(_yes(port.get(f"has_{what}"))) for what in ("segmentation", "coalescing", "ecn")),
        Cell(_icrc(port)),
        Cell(str(port.get("timestamps", MISSING))),
        Cell(_xdp(port)),
        Cell(count_text(queues) if queues else MISSING, queues),
    ]


def _place(port: Mapping[str, Any]) -> str:
    """Interface, and the RDMA device on it."""
    interface = str(port.get("interface") or MISSING)
    return f"{interface} ({port['device']})" if port.get("device") else interface


def _count(value: object) -> int:
    """A count; 0 for what an agent tells that is none."""
    return value if isinstance(value, int) else 0


def _yes(value: object) -> str:
    return MISSING if value is None else "yes" if value else "no"


def _icrc(port: Mapping[str, Any]) -> str:
    """A driver that is not told the IP identification looks for one that fits."""
    by = port.get("invariant_crc")
    who = _ICRC.get(str(by), MISSING)
    if by != "sender":
        return who
    return who if port.get("has_identification") else f"{who}, identification guessed"


def _xdp(port: Mapping[str, Any]) -> str:
    mode = port.get("xdp_mode")
    if not mode:
        return MISSING
    return f"{mode}, {'zero-copy' if port.get('has_zero_copy') else 'copies'}"
