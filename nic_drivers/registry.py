"""The drivers by name. A driver is described here and opened where it is used."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from dataplane.errors import InputError, Problem
from nic_drivers.interface import Driver
from nic_drivers.port import AfPacketDriver, AfXdpDriver, UdpDriver
from nic_drivers.verbs import VerbsDriver
from nic_drivers.wire import WireDriver

__all__ = ["DriverDescription", "driver_names", "find_driver"]


@dataclass(frozen=True, slots=True)
class DriverDescription:
    """What is known of a driver before it is opened."""

    name: str
    """Name in lab files."""
    summary: str
    """What it does, in one sentence."""
    needs: str
    """What must be there: privileges, modules, hardware."""
    open: Callable[[Any], Driver]
    """Opens it with its options; raises `DriverError`."""
    is_in_engine: bool
    """The native engine has an implementation of its own, which runs use."""


_DRIVERS: Final = {
    description.name: description
    for description in (
        DriverDescription(
            name="wire",
            summary="one Ethernet frame in one UDP datagram on the loopback interface",
            needs="nothing",
            open=WireDriver,
            is_in_engine=True,
        ),
        DriverDescription(
            name="udp",
            summary="UDP sockets of the kernel, with segmentation offload and ECN",
            needs="an address of this host, UDP port 4791 free on it, a route to every peer",
            open=UdpDriver,
            is_in_engine=True,
        ),
        DriverDescription(
            name="af_packet",
            summary="whole frames on a packet socket of an interface, with segmentation offload",
            needs="root or CAP_NET_RAW, an Ethernet interface, a route to every peer",
            open=AfPacketDriver,
            is_in_engine=True,
        ),
        DriverDescription(
            name="af_xdp",
            summary="whole frames in memory shared with the kernel, picked by an XDP program",
            needs="root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF; "
            "Linux 6.6 for frames above 4 KiB",
            open=AfXdpDriver,
            is_in_engine=True,
        ),
        DriverDescription(
            name="verbs",
            summary="messages by the queue pairs of an RDMA device, through libibverbs",
            needs="libibverbs, an RDMA device with a RoCE v2 GID for the address, read and write "
            "on /dev/infiniband/uverbs*",
            open=VerbsDriver,
            is_in_engine=True,
        ),
    )
}


def driver_names() -> list[str]:
    """Return the names of all drivers."""
    return list(_DRIVERS)


def find_driver(name: str) -> DriverDescription:
    """Return a driver's description; raises `InputError` for an unknown name."""
    try:
        return _DRIVERS[name]
    except KeyError:
        known = ", ".join(driver_names())
        raise InputError(
            Problem("driver", f"there is no {name!r}", f"use one of: {known}")
        ) from None
