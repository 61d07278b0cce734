"""The engine's `JobConfig` document from a checked lab and its fabric.

The contract is `dataplane/src/config`: every default is resolved here, times are picoseconds.
"""

from typing import Any, get_args

import dataplane
from emulator.lab.congestion import Algorithm, FixedRate, Swift
from emulator.lab.effective import (
    data_classes,
    ecn_priorities,
    ecn_profile,
    headroom_bytes,
    headroom_pool_bytes,
    lossless_priorities,
    notification_preset,
    queue_setting,
    reserved_bytes,
    shared_bytes,
    strict_priorities,
)
from emulator.lab.fabric import End, Fabric, Nic
from emulator.lab.impairments import directions
from emulator.lab.model import Lab
from emulator.lab.switches import HashField
from emulator.lab.weights import hash_seed, weighted_routes
from traffic_profiles.placement import place

__all__ = ["job_config"]

_PRIORITIES = 8


def job_config(lab: Lab, fabric: Fabric, *, seed: int) -> dict[str, Any]:
    """The document that `dataplane` takes as JSON.

    The line rate that DCQCN's presets scale with is the slowest NIC link's.
    """
    line_rate_bps = min(link.rate_bps for link in fabric.nic_links.values())
    ranks = _ranks(lab, fabric, seed)
    classes = _data_classes(lab, line_rate_bps)
    return {
        "seed": seed,
        "nics": [
            {
                "name": nic.name,
                "rank": ranks[nic.name],
                "address": _address(lab, nic),
                "mac": list(nic.mac),
            }
            for nic in fabric.nics
        ],
        "switches": [_switch(lab, fabric, index, seed) for index in range(len(fabric.switches))],
        "links": [
            {
                "name": link.name,
                "a": _end(link.a),
                "b": _end(link.b),
                "rate_bps": link.rate_bps,
                "delay_ps": link.delay_ps,
            }
            for link in fabric.links
        ],
        "transport": _transport(lab),
        "classes": _classes(lab),
        "congestion_control": classes[0]["congestion_control"],
        "further_classes": classes[1:],
        "notification_point": _notification_point(lab),
        "telemetry": {
            "sample_interval_ps": lab.telemetry.sample_interval_ns * 1000,
            "max_samples": lab.telemetry.max_samples,
            "flow_paths": lab.telemetry.flow_paths,
            "max_pauses": lab.telemetry.max_pauses,
        },
        "impairments": _impairments(lab, fabric),
        "rerouting": {
            "detection_delay_ps": lab.switches.rerouting.detection_ns * 1000,
            "convergence_delay_ps": lab.switches.rerouting.convergence_ns * 1000,
        },
    }


def _address(lab: Lab, nic: Nic) -> str:
    given = lab.interfaces.get(nic.name)
    return nic.address if given is None or given.address is None else given.address


def _ranks(lab: Lab, fabric: Fabric, seed: int) -> dict[str, int]:
    """NIC -> the rank that it carries; NICs that the placement doesn't name have the last ones."""
    names = [nic.name for nic in fabric.nics]
    listed = lab.placement.nics or []
    nics = [*listed, *(name for name in names if name not in listed)]
    shuffle_seed = seed if lab.placement.order == "shuffled" else None
    placed = place(range(len(nics)), nics, shuffle_seed=shuffle_seed)
    return {name: rank for rank, name in placed.items()}


def _impairments(lab: Lab, fabric: Fabric) -> list[dict[str, Any]]:
    opcodes = dataplane.roce_opcodes()
    return [
        _in_picoseconds(rule.model_dump(exclude={"links", "direction"}))
        | {
            "directions": list(directions(rule, fabric)),
            "opcodes": [code for code, name in opcodes.items() if name in rule.opcodes],
        }
        for rule in lab.impairments
    ]


def _end(end: End) -> dict[str, Any]:
    return {"node": {"switch" if end.is_switch else "nic": end.index}, "port": end.port}


def _switch(lab: Lab, fabric: Fabric, index: int, seed: int) -> dict[str, Any]:
    switch = fabric.switches[index]
    return {
        "name": switch.name,
        "mac": list(switch.mac),
        "ports": switch.ports,
        "routes": weighted_routes(lab, fabric, index),
        "ecmp_seed": hash_seed(lab, switch.name, index, seed),
        "hash_fields": lab.switches.path_selection.hash_fields or list(get_args(HashField)),
        "path_selection": _path_selection(lab),
        "failure_hashing": lab.switches.rerouting.hashing,
        "pfc_watchdog": _watchdog(lab),
        "buffer_bytes": shared_bytes(lab, fabric, index),
        "headroom_pool_bytes": headroom_pool_bytes(lab, fabric, index),
        "dynamic_threshold_alpha": lab.switches.dynamic_threshold_alpha,
        "priorities": [_priority(lab, fabric, index, priority) for priority in range(_PRIORITIES)],
    }


def _watchdog(lab: Lab) -> dict[str, Any] | None:
    pfc = lab.switches.pfc
    if pfc.watchdog is None or not pfc.enabled:
        return None
    return _in_picoseconds(pfc.watchdog.model_dump())


def _path_selection(lab: Lab) -> dict[str, Any]:
    selection = lab.switches.path_selection
    gap = {"gap_ps": selection.gap_ns * 1000} if selection.mode == "flowlet" else {}
    return {"mode": selection.mode, **gap}


def _priority(lab: Lab, fabric: Fabric, switch: int, priority: int) -> dict[str, Any]:
    lossless = priority in lossless_priorities(lab)
    switches, pfc = lab.switches, lab.switches.pfc

    def setting(key: str, otherwise: Any) -> Any:
        given = queue_setting(lab, priority, key)
        return otherwise if given is None else given

    return {
        "lossless": lossless,
        "watched": lossless and setting("watched", True),
        "strict": priority in strict_priorities(lab),
        "weight": setting("weight", switches.weights.get(priority, 1)),
        "ecn": _ecn(lab, fabric, switch, priority) if priority in ecn_priorities(lab) else None,
        "dynamic_threshold_alpha": setting(
            "dynamic_threshold_alpha", switches.dynamic_threshold_alpha
        ),
        "xoff_bytes": setting("xoff_bytes", pfc.xoff_bytes) if lossless else None,
        "xon_offset_bytes": setting("xon_offset_bytes", pfc.xon_offset_bytes) if lossless else 0,
        "headroom_bytes": headroom_bytes(lab, fabric, switch, priority) if lossless else 0,
        "reserved_bytes": reserved_bytes(lab, priority),
    }


def _ecn(lab: Lab, fabric: Fabric, switch: int, priority: int) -> dict[str, Any] | None:
    """The profile of a priority: that of the slowest port, where queues grow."""
    rates = [link.rate_bps for _, _, link in fabric.neighbours[switch]]
    profile = ecn_profile(lab, min(rates), priority) if rates else None
    if profile is None:
        return None
    return {
        "kmin_bytes": profile.kmin_bytes,
        "kmax_bytes": profile.kmax_bytes,
        "pmax_ratio": profile.pmax_ratio,
        "drops_not_ect": profile.drops_not_ect,
    }


def _transport(lab: Lab) -> dict[str, Any]:
    transport = lab.transport
    return {
        "mtu_bytes": transport.mtu_bytes,
        "qps_per_peer": transport.qps_per_peer,
        "qp_distribution": transport.qp_distribution,
        "clear_to_send": transport.clear_to_send,
        "window_packets": transport.window_packets,
        "ack_every_packets": transport.ack_every_packets,
        "ack_delay_ps": transport.ack_delay_ns * 1000,
        "retransmission_timeout_ps": transport.retransmission_timeout_ns * 1000,
        "retry_count": transport.retry_count,
        "loss_recovery": transport.loss_recovery,
        "reordering_packets": transport.reordering_packets,
        "adaptive_retransmission": None
        if transport.adaptive_retransmission is None
        else _in_picoseconds(transport.adaptive_retransmission.model_dump()),
    }


def _classes(lab: Lab) -> dict[str, Any]:
    classes = lab.traffic_classes
    return {
        "data_dscp": classes.data.dscp,
        "data_priority": classes.data.priority,
        "data_ecn_capable": classes.data_ecn_capable,
        "ack_dscp": classes.acknowledgement.dscp,
        "ack_priority": classes.acknowledgement.priority,
        "ack_ecn_capable": data_classes(lab)[0].ack_ecn_capable,
        "cnp_dscp": classes.cnp.dscp,
        "cnp_priority": classes.cnp.priority,
    }


def _data_classes(lab: Lab, line_rate_bps: int) -> list[dict[str, Any]]:
    return [
        {
            "name": item.name,
            "dscp": item.dscp,
            "priority": item.priority,
            "ecn_capable": item.ecn_capable,
            "ack_ecn_capable": item.ack_ecn_capable,
            "congestion_control": _congestion_control(lab, item.congestion_control, line_rate_bps),
        }
        for item in data_classes(lab)
    ]


def _congestion_control(lab: Lab, control: Algorithm, line_rate_bps: int) -> dict[str, Any]:
    if isinstance(control, Swift):
        packet = {"packet_bytes": lab.transport.mtu_bytes}
        return _in_picoseconds(control.model_dump()) | packet
    if isinstance(control, FixedRate):
        rate = None if control.rate_gbps is None else round(control.rate_gbps * 1e9)
        return {"algorithm": "fixed_rate", "rate_bps": rate}
    resolved = control.resolve(line_rate_bps)
    return {"algorithm": "dcqcn"} | _in_picoseconds(
        {key: item.value for key, item in resolved.items()}
    )


def _notification_point(lab: Lab) -> dict[str, Any]:
    resolved = lab.notification_point.resolve(notification_preset(lab))
    values = {key: item.value for key, item in resolved.items()}
    return {"enabled": lab.notification_point.enabled} | _in_picoseconds(values)


def _in_picoseconds(values: dict[str, Any]) -> dict[str, Any]:
    """Every `_ns` value as `_ps`."""
    return {
        f"{key[:-3]}_ps" if key.endswith("_ns") else key: (
            value * 1000 if key.endswith("_ns") else value
        )
        for key, value in values.items()
    }
