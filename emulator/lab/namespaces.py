"""The part of a lab file that builds the lab of Linux network namespaces: `rankwire lab up`."""

from typing import Annotated, Literal

from pydantic import Field

from emulator.lab.base import LabPart

__all__ = ["Namespaces"]


class Namespaces(LabPart):
    """`rankwire lab up` builds the lab on this machine, of Linux network namespaces.

    Every NIC and every switch is one, every link a veth pair; switches route. Rates are divided by
    `time_dilation`; delays, pauses and weights of priorities are not emulated.
    """

    shaper: Literal["htb", "tbf", "none"] = "htb"
    """Queueing discipline that keeps a port at its link's rate. `none`: nothing waits, and marks
    and drops are those of a virtual queue."""
    marking: Literal["ebpf", "sch_red", "none"] = "ebpf"
    """What follows the ECN profile on the ports of switches: a program of ours on a virtual queue;
    the kernel's RED queue, which needs its module and marks up to twice as often, for it spaces
    marks evenly; or nothing."""
    mtu_bytes: Annotated[int, Field(ge=576, le=9000)] = 4200
    """IP MTU of every interface; a full packet has `transport.mtu_bytes` and 60 bytes more."""
