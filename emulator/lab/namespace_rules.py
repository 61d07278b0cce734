"""What a lab of network namespaces must keep to, beside the rules of every lab."""

import ipaddress
from collections.abc import Iterator

from emulator.lab.documents import KeyPath
from emulator.lab.effective import drops_not_ect, ecn_priorities
from emulator.lab.fabric import Fabric
from emulator.lab.model import Lab

__all__ = ["namespace_findings"]

_PACKET_OVERHEAD_BYTES = 60
"""IPv4, UDP, BTH, RETH and ICRC around the payload of a full packet."""
_LEAST_RATE_BPS = 100_000
"""A full packet then takes a third of a second; our choice."""
_MOST_TBF_BPS = 34_000_000_000
"""TBF's rate is 32 bits of bytes per second."""
_NETWORK = ipaddress.ip_network("198.18.0.0/15")

Finding = tuple[KeyPath, str, str]


def namespace_findings(lab: Lab, fabric: Fabric) -> Iterator[Finding]:
    """Key path, what is wrong and what would be right; nothing for other labs."""
    if lab.namespaces is None:
        return
    needed_bytes = lab.transport.mtu_bytes + _PACKET_OVERHEAD_BYTES
    if lab.namespaces.mtu_bytes < needed_bytes:
        what = f"is {lab.namespaces.mtu_bytes}, less than a full packet of {needed_bytes} bytes"
        yield ("namespaces", "mtu_bytes"), what, "raise it, or lower transport.mtu_bytes"
    for index, nic in enumerate(fabric.nics):
        if ipaddress.ip_address(nic.address) not in _NETWORK:
            what = f"is {nic.address}, which no namespace can have"
            path: KeyPath = ("topology", "nics", index, "address")
            yield path, what, f"give one inside {_NETWORK}"
    dropping = [n for n in ecn_priorities(lab) if drops_not_ect(lab, n)]
    if dropping and lab.namespaces.marking == "ebpf":
        what = f"is true for priority {dropping[0]}, and the eBPF program only marks"
        yield ("switches", "ecn", "drops_not_ect"), what, "set it to false, or marking to sch_red"
    slowest = min(fabric.links, key=lambda link: link.rate_bps)
    rate_bps = slowest.rate_bps // lab.time_dilation
    if rate_bps < _LEAST_RATE_BPS:
        what = f"leaves {slowest.name} {rate_bps} bit/s"
        yield ("time_dilation",), what, f"lower it: a port needs {_LEAST_RATE_BPS} bit/s"
    fastest = max(fabric.links, key=lambda link: link.rate_bps)
    rate_bps = fastest.rate_bps // lab.time_dilation
    if lab.namespaces.shaper == "tbf" and rate_bps > _MOST_TBF_BPS:
        what = f"is tbf, and {fastest.name} has {rate_bps} bit/s"
        yield ("namespaces", "shaper"), what, f"use htb above {_MOST_TBF_BPS} bit/s"
