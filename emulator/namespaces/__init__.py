"""Labs of Linux network namespaces: every NIC and switch a namespace, every link a veth pair.

`lay_out` says what a lab becomes, `bring_up` and `take_down` make and remove it, `counters` reads
the kernel's counters, `start_inside` starts a process on a host. Needs root.
"""

from emulator.namespaces.counters import PortCounters, columns, counters, difference
from emulator.namespaces.layout import Host, Layout, lay_out
from emulator.namespaces.links import links_down, set_link
from emulator.namespaces.making import bring_up
from emulator.namespaces.occupants import occupants
from emulator.namespaces.process import command_inside, start_inside
from emulator.namespaces.removal import Removal, take_down
from emulator.namespaces.state import LabState, is_up, read_all

__all__ = [
    "Host",
    "LabState",
    "Layout",
    "PortCounters",
    "Removal",
    "bring_up",
    "columns",
    "command_inside",
    "counters",
    "difference",
    "is_up",
    "lay_out",
    "links_down",
    "occupants",
    "read_all",
    "set_link",
    "start_inside",
    "take_down",
]
