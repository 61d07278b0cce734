"""The section of counters: those of NICs, wires and ports, of switches, and the kernel's."""

from collections.abc import Mapping
from typing import Any, Final

from metrics.records import RunRecords
from metrics.records.switch_findings import port_names
from metrics.report import tables
from metrics.report.adapter_table import by_counter
from metrics.report.chart_block import chart_block
from metrics.report.charts import adapters, marks
from metrics.report.kernel_table import kernel_table
from metrics.report.markup import Raw, element
from metrics.report.port_table import port_table

__all__ = ["counter_section"]


_DEVICE_NOTE: Final = (
    "How much each counter of the device and its port grew from the opening to the end of the run, "
    "by the kernel's names; NICs on one port have the same."
)


def counter_section(records: RunRecords) -> tuple[str, Raw]:
    """Title and body."""
    run = records.run
    parts = []
    for title, table, members in (
        ("NICs", "nics", "nics"),
        ("Wires", "wires", "links"),
        ("Ports", "ports", "nics"),
        ("RDMA devices, by rankwire", "adapters", "nics"),
        ("Impairments", "impairments", "links"),
        ("Lost with links", "link_losses", "links"),
    ):
        names = [member["name"] for member in run["job"][members]]
        body = tables.counter_table(run.get("counters", {}).get(table, {}), names)
        if body is not None:
            parts += [element("h3", title), body]
        if table == "ports" and (able := port_table(run.get("ports", {}))) is not None:
            parts += [element("h3", "What the ports can do"), able]
    names = [nic["name"] for nic in run["job"]["nics"]]
    counted = by_counter(run.get("counters", {}).get("adapter_counters", {}))
    body = tables.counter_table(counted, names)
    if body is not None:
        chart = chart_block(adapters.device_counters(records.adapters), "No samples over time.")
        heading = element("h3", "RDMA devices, by the kernel")
        note = element("p", _DEVICE_NOTE, class_="note")
        parts += [heading, body, note, element("div", chart, class_="charts")]
    body = _switch_ports(run)
    if body is not None:
        parts += [element("h3", "Switch ports"), body]
    return "Counters", Raw("".join(parts) + _kernel(records))


def _switch_ports(run: Mapping[str, Any]) -> Raw | None:
    """Sum and largest of every counter of switch ports."""
    counted = run.get("counters", {}).get("switch_ports", {})
    names = port_names(counted, [switch["name"] for switch in run["job"]["switches"]])
    values = {name: counts for name, counts in counted.items() if name not in {"switch", "port"}}
    return tables.counter_table(values, names)


def _kernel(records: RunRecords) -> Raw:
    """What the kernel counted at the ports of a lab of namespaces; nothing for other runs."""
    counters = records.run.get("counters", {})
    kernel = counters.get("kernel")
    if not kernel:
        return Raw("")
    body, note = kernel_table(kernel, counters.get("ports", {}))
    chart = chart_block(marks.marks_by_depth(kernel, records.run["job"]))
    parts = [
        element("h3", "Network, counted by the kernel"),
        body,
        element("p", note, class_="note"),
    ]
    return Raw("".join(parts) + element("div", chart, class_="charts"))
