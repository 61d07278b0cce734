"""The part of a lab file that says where NICs are when the network is real."""

from typing import Annotated, Literal

from pydantic import Field

from emulator.lab.base import LabPart

__all__ = ["DriverName", "Interface", "RealDriverName"]

RealDriverName = Literal["udp", "af_packet", "af_xdp", "verbs"]
"""What connects NICs with a real network."""
DriverName = Literal["wire", RealDriverName]
"""What carries frames; see docs/drivers.md."""

_InterfaceName = Annotated[str, Field(pattern=r"^[^\s/]{1,15}$")]
_Namespace = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}$")]


class Interface(LabPart):
    """Where one NIC is on its host."""

    interface: _InterfaceName | None = None
    """Interface of the operating system, for example ens1f0np0; required beyond loopback."""
    address: str | None = None
    """IPv4 address of that interface; left out, the one that the topology gives the NIC."""
    driver: RealDriverName | None = None
    """What carries this NIC's traffic; left out, the lab's `driver`."""
    namespace: _Namespace | None = None
    """Network namespace on that host, as `ip netns list` shows it; left out, the agent's own."""
