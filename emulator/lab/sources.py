"""Every value that a preset or formula decides, with its source: for `lab show` and `run.json`."""

from emulator.lab.documents import dotted
from emulator.lab.effective import (
    data_classes,
    ecn_priorities,
    headroom_bytes,
    headroom_pool_bytes,
    notification_preset,
    set_aside_bytes,
    shared_bytes,
    sourced_ecn,
)
from emulator.lab.loading import LoadedLab
from emulator.lab.model import Lab
from emulator.lab.switch_sources import preset_source, sourced_switches
from emulator.presets import Sourced

__all__ = ["sourced_tables"]


def sourced_tables(loaded: LoadedLab) -> dict[str, dict[str, Sourced]]:
    """Title -> parameter -> value with its source, for everything that a preset decides.

    `congestion_control` is that of the data class, `traffic_classes.NAME.congestion_control` that
    of a further one.
    """
    lab, fabric = loaded.lab, loaded.fabric
    line_rate_bps = min(link.rate_bps for link in fabric.nic_links.values())
    tables: dict[str, dict[str, Sourced]] = {}
    for item in data_classes(lab):
        title = "congestion_control"
        if item.name != "data":
            title = f"traffic_classes.{item.name}.congestion_control"
        control = item.congestion_control
        path = item.congestion_control_path
        is_given = len(path) > 1 or "congestion_control" in lab.model_fields_set
        place = f"lab file: {dotted(path)}" if is_given else "default"
        algorithm = {"algorithm": Sourced(control.algorithm, place)}
        tables[title] = algorithm | control.resolve(line_rate_bps)
    tables["notification_point"] = lab.notification_point.resolve(notification_preset(lab))
    tables["switches"] = sourced_switches(lab)
    tables["switches.ecn"] = sourced_ecn(lab, line_rate_bps)
    for queue in lab.switches.queues:
        if queue.priority in ecn_priorities(lab):
            title = f"switches.ecn, priority {queue.priority}"
            tables[title] = sourced_ecn(lab, line_rate_bps, queue.priority)
    if fabric.switches:
        formula = "formula of IEEE 802.1Q annex N" if _uses_formula(lab) else "lab file"
        formula = preset_source(lab, "pfc.headroom_bytes") or formula
        pool = headroom_pool_bytes(lab, fabric, 0)
        rest = "buffer without headrooms" if pool is None else "buffer without the headroom pool"
        if set_aside_bytes(lab, fabric, 0)[1]:
            rest += " and reservations"
        tables["switches.pfc"] = {
            "headroom_bytes": Sourced(headroom_bytes(lab, fabric, 0), formula),
            "headroom_pool_bytes": Sourced("none" if pool is None else pool, _pool_source(lab)),
            "shared_buffer_bytes": Sourced(shared_bytes(lab, fabric, 0), rest),
        }
    return tables


def _pool_source(lab: Lab) -> str:
    """Of the pool's size, or of there being none."""
    pfc = lab.switches.pfc
    keys = ("headroom_pool_bytes", "headroom_oversubscription")
    given = [key for key in keys if getattr(pfc, key) is not None]
    if not given:
        return "default: each ingress has its own headroom"
    return preset_source(lab, f"pfc.{given[0]}") or f"lab file: {given[0]}"


def _uses_formula(lab: Lab) -> bool:
    return lab.switches.pfc.headroom_bytes is None
