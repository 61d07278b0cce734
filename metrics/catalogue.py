"""Every metric that a run exports, once: name, kind, unit, labels, denominator and meaning.

The exporter, the dashboards and docs/metrics.md are checked against this list. Names follow the
Prometheus rules; NIC counters keep the stems of the kernel's hw_counters. Times are emulated
unless the name says wall. Nothing here knows how a value is obtained.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["CATALOGUE", "METRICS", "PREFIX", "Metric", "series_names"]

PREFIX = "rankwire_"
Kind = Literal["counter", "gauge", "histogram", "summary"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric family."""

    name: str
    """Full name; a counter's ends in `_total`."""
    kind: Kind
    unit: str
    """Unit of the values: `seconds`, `bytes`, `packets`, `ratio`, ..."""
    help: str
    """One sentence."""
    labels: tuple[str, ...] = ()
    denominator: str = ""
    """What a ratio is divided by."""


_GROUP = ("kind", "ranks", "size")
_LINK = ("link", "source", "destination")
_QUEUE = ("node", "port", "priority")
_NIC = ("nic", "rank")
_PAUSE = ("switch", "port", "priority", "paused")
_CHOICE = ("switch", "group", "port", "link")


def _counter(stem: str, unit: str, text: str, labels: tuple[str, ...] = ()) -> Metric:
    return Metric(f"{PREFIX}{stem}_total", "counter", unit, text, labels)


def _gauge(
    stem: str, unit: str, text: str, labels: tuple[str, ...] = (), denominator: str = ""
) -> Metric:
    return Metric(f"{PREFIX}{stem}", "gauge", unit, text, labels, denominator)


def _histogram(stem: str, unit: str, text: str, labels: tuple[str, ...]) -> Metric:
    return Metric(f"{PREFIX}{stem}", "histogram", unit, text, labels)


def _summary(stem: str, unit: str, text: str, labels: tuple[str, ...]) -> Metric:
    return Metric(f"{PREFIX}{stem}", "summary", unit, text, labels)


METRICS: tuple[Metric, ...] = (
    _gauge("run_info", "one", "Facts of the run as labels; the value is 1.",
           ("command", "lab", "run")),
    _gauge("emulated_time_seconds", "seconds", "Emulated time since the start of the job."),
    _gauge("time_dilation_ratio", "ratio", "How much slower than emulated time the wall clock "
           "is asked to run.", denominator="emulated time"),
    _gauge("dispatch_lateness_p99_seconds", "seconds", "How late events are handled, wall time: "
           "the largest 99th percentile of all agents."),
    _counter("late_frames", "frames", "Frames that came over their wires after their time of "
             "arrival."),
    _gauge("operations", "operations", "Operations of all programs."),
    _counter("operations_completed", "operations", "Operations that have completed."),
    _counter("payload_delivered_bytes", "bytes", "Payload that arrived in order at its receiver."),
    _counter("engine_events", "events", "Events that the engine has processed."),
    _histogram("collective_completion_time_seconds", "seconds",
               "Collective completion time: last end over all ranks less first start.", _GROUP),
    _summary("collective_completion_time_exact_seconds", "seconds",
             "Exact nearest-rank quantiles of the collective completion time; a quantile is absent "
             "with fewer than 1 / (1 - quantile) samples.", _GROUP),
    _histogram("flow_completion_time_seconds", "seconds",
               "Flow completion time: a message's posting to its acknowledgement.", ("size",)),
    _summary("flow_completion_time_exact_seconds", "seconds",
             "Exact nearest-rank quantiles of the flow completion time; a quantile is absent with "
             "fewer than 1 / (1 - quantile) samples.", ("size",)),
    _counter("link_transmitted_bytes", "bytes", "Frames sent on a link direction, FCS included.",
             _LINK),
    _counter("link_transmitted_packets", "packets", "Frames sent on a link direction.", _LINK),
    _gauge("link_utilisation_ratio", "ratio", "Bits sent since the last update, preambles and gaps "
           "included.", _LINK, "line rate times emulated time since the last update"),
    _gauge("link_flows", "flows", "Flows that have crossed a link direction, acknowledgements "
           "included; pauses are one more.", _LINK),
    _counter("link_expected_bytes", "bytes", "Of what the NICs have sent, what routes and the "
             "switches' hash lead over a link direction.", _LINK),
    _gauge("ecmp_share_ratio", "ratio", "What an equal-cost port of a switch carried.", _CHOICE,
           "bytes of all ports of the group"),
    _gauge("ecmp_expected_share_ratio", "ratio", "What routes and hash lead over an equal-cost "
           "port of a switch.", _CHOICE, "expected bytes of all ports of the group"),
    _gauge("ecmp_ports_not_exported", "ports", "Equal-cost ports that are left out because of the "
           "limit on series."),
    _gauge("link_up", "one", "1 while a link carries frames, 0 while an event has it down; only "
           "of labs with events of links.", ("link",)),
    _counter("link_changes", "changes", "What events did to a link: down, up or rate.",
             ("link", "change")),
    _counter("link_lost_packets", "packets", "Frames lost with a link that went down, on it or "
             "waiting for it.", _LINK),
    _gauge("queue_depth_bytes", "bytes", "Bytes in an egress queue at the last update.", _QUEUE),
    _gauge("queue_max_depth_bytes", "bytes", "Largest depth of an egress queue since the start "
           "(watermark).", _QUEUE),
    _counter("queue_ecn_marked_packets", "packets", "Packets that a queue marked CE.", _QUEUE),
    _counter("queue_dropped_packets", "packets", "Packets that a queue dropped.", _QUEUE),
    _counter("queue_wred_dropped_packets", "packets", "Those of the dropped packets that were not "
             "ECN-capable where they would have been marked.", _QUEUE),
    _counter("pause_frames_sent", "frames", "Pause frames (PFC) sent by a port for a priority, "
             "resumptions included.", _QUEUE),
    _counter("pause_frames_received", "frames", "Pause frames (PFC) received by a port for a "
             "priority, resumptions included.", _QUEUE),
    _counter("queue_paused_seconds", "seconds", "Emulated time in which the neighbour paused a "
             "priority of a port.", _QUEUE),
    _counter("pauses", "pauses", "Times that a switch began to pause the neighbour at a port: who "
             "paused whom.", _PAUSE),
    _gauge("queues_not_exported", "queues", "Queues with traffic that are left out because of the "
           "limit on series."),
    _counter("nic_np_ecn_marked_roce_packets", "packets", "CE-marked RoCE packets that the "
             "notification point received.", _NIC),
    _counter("nic_np_cnp_sent", "packets", "Congestion notification packets sent.", _NIC),
    _counter("nic_rp_cnp_handled", "packets", "Congestion notification packets that the reaction "
             "point handled.", _NIC),
    _counter("nic_retransmitted_payload_bytes", "bytes", "Payload sent again.", _NIC),
    _counter("nic_out_of_sequence", "packets", "Packets that arrived out of sequence.", _NIC),
    _counter("nic_packet_seq_err", "packets", "Sequence-error NAKs received by the requester.",
             _NIC),
    _counter("nic_duplicate_request", "packets", "Requests that arrived again.", _NIC),
    _counter("nic_local_ack_timeout_err", "timeouts", "Retransmission timers that expired.", _NIC),
    _counter("nic_rx_icrc_encapsulated", "packets", "Packets with a wrong ICRC.", _NIC),
    _counter("nic_payload_mismatches", "packets", "Packets whose payload was not what was sent.",
             _NIC),
)  # fmt: skip
"""All metric families, in the order of the exporter's page."""

CATALOGUE: Mapping[str, Metric] = {metric.name: metric for metric in METRICS}
"""The metric families by name."""


def series_names(metric: Metric) -> tuple[str, ...]:
    """Names of the series that a family has at a scrape."""
    if metric.kind == "histogram":
        return tuple(f"{metric.name}_{part}" for part in ("bucket", "sum", "count"))
    if metric.kind == "summary":
        return (metric.name, f"{metric.name}_sum", f"{metric.name}_count")
    return (metric.name,)
