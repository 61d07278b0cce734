"""Where the NICs of a job are when the network is real: ports for drivers to open.

The switches of the lab then stand for real ones, which nobody carries: a prediction models them, a
run meets them.
"""

import ipaddress
from typing import Any

from dataplane.errors import InputError, Problem
from emulator.lab import LoadedLab
from emulator.namespaces.layout import NETWORK, lay_out
from emulator.namespaces.state import is_up

__all__ = ["agent_limits", "is_real", "port_descriptions"]

_LOOPBACK = ipaddress.ip_network("127.0.0.0/8")

Port = dict[str, Any]
"""A port as `dataplane.Port` describes it, without flows."""


def is_real(loaded: LoadedLab) -> bool:
    """Whether NICs are on interfaces of the operating system, and switches somebody else's."""
    return loaded.lab.driver != "wire"


def port_descriptions(loaded: LoadedLab) -> dict[str, Port] | None:
    """NIC name -> its port; None when the fabric is emulated.

    Raises `InputError` when the lab is one of namespaces that is not up.
    """
    if not is_real(loaded):
        return None
    lab = loaded.lab
    common = {
        "driver": lab.driver,
        "max_burst_packets": lab.max_burst_packets,
        "xdp_mode": lab.xdp_mode,
        "busy_poll_us": lab.busy_poll_us,
    }
    if lab.namespaces is not None and not lab.interfaces:
        return {name: common | place for name, place in _in_namespaces(loaded).items()}
    return {
        nic.name: common | {"address": nic.address} | _place(loaded, nic.name)
        for nic in loaded.fabric.nics
    }


def _place(loaded: LoadedLab, nic: str) -> Port:
    given = loaded.lab.interfaces.get(nic)
    return {} if given is None else given.model_dump(exclude_none=True)


def _in_namespaces(loaded: LoadedLab) -> dict[str, Port]:
    layout = lay_out(loaded)
    if not is_up(layout):
        what = "is not up with these settings"
        remedy = f"bring it up first: rankwire lab up {loaded.path.stem}, with the same --set"
        raise InputError(Problem(f"lab {layout.lab}", what, remedy))
    return {
        name: {
            "address": host.address,
            "interface": host.interface,
            "namespace": host.namespace,
        }
        for name, host in layout.hosts.items()
    }


def agent_limits(ports: dict[str, Port], nics: set[str], rate_bps: int) -> dict[str, Any]:
    """The keys of a spawned agent's file that let it use the ports of these NICs, and no others.

    A lab of namespaces is on this machine; what leaves it needs an agent with a file of its
    owner's, and stays forbidden here.
    """
    own = {name: port for name, port in ports.items() if name in nics}
    if all(ipaddress.ip_address(port["address"]) in _LOOPBACK for port in own.values()):
        return {}
    return {
        "allowed_prefixes": [str(_LOOPBACK), str(NETWORK)],
        "interfaces": sorted(f"{p['namespace']}/{p['interface']}" for p in own.values()),
        "rate_cap_bps": max(rate_bps, 1),
    }
