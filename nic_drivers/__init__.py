"""The driver interface, the drivers, and congestion-control knobs of NICs and switches.

A driver moves Ethernet frames in batches between memory and something outside of the process. It
knows nothing of RoCEv2, programs or labs. Capture, tracing and impairment wrap a driver; they are
never options inside one.
"""

from nic_drivers.interface import Capabilities, Counters, Driver, DriverError
from nic_drivers.registry import DriverDescription, driver_names, find_driver

__all__ = [
    "Capabilities",
    "Counters",
    "Driver",
    "DriverDescription",
    "DriverError",
    "driver_names",
    "find_driver",
]
