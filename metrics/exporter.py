"""`/metrics` of a running job. The only module that imports prometheus_client.

Values come from `metrics.live`, names and texts from `metrics.catalogue`.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import polars as pl
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.registry import Collector

from dataplane.errors import InputError, Problem
from metrics.analysis.quantiles import QUANTILES, quantile
from metrics.catalogue import CATALOGUE, PREFIX
from metrics.live import BUCKETS_SECONDS, Classified, LiveJob
from metrics.live_fabric import LINK_CHANGES, EqualCostPorts, LivePauses
from metrics.records.operations import ProgramLike
from metrics.records.series import fabric_names

__all__ = ["QUEUE_LIMIT", "Exporter"]

QUEUE_LIMIT = 4096
"""Most queues that are exported; only queues that have held something count."""

_NIC_COUNTERS = {
    "nic_np_ecn_marked_roce_packets": "ecn_marked_packets",
    "nic_np_cnp_sent": "cnps_sent",
    "nic_rp_cnp_handled": "cnps_handled",
    "nic_retransmitted_payload_bytes": "data_payload_bytes_retransmitted",
    "nic_out_of_sequence": "out_of_sequence",
    "nic_packet_seq_err": "packet_seq_err",
    "nic_duplicate_request": "duplicate_requests",
    "nic_local_ack_timeout_err": "local_ack_timeout_err",
    "nic_rx_icrc_encapsulated": "rx_icrc_errors",
    "nic_payload_mismatches": "payload_mismatches",
}
"""Stem of the metric to the engine's column."""
_QUEUE_COUNTERS = {
    "queue_ecn_marked_packets": "marked_packets",
    "queue_dropped_packets": "dropped_packets",
    "queue_wred_dropped_packets": "wred_dropped_packets",
    "pause_frames_sent": "pause_frames_sent",
    "pause_frames_received": "pause_frames_received",
}
_Samples = Iterable[tuple[Sequence[str], float]]


class Exporter:
    """Serves the state of one job over HTTP until `close`.

    `config` is the job configuration that the dataplane takes; `labels` are the values of
    `rankwire_run_info`. Port 0 takes any free port; `port` tells which. Raises `InputError` when
    the port is taken.
    """

    def __init__(
        self,
        port: int,
        *,
        config: Mapping[str, Any],
        programs: Sequence[ProgramLike],
        instances: pl.DataFrame,
        time_dilation: float = 1.0,
        labels: Mapping[str, str] | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        fabric = fabric_names(config)
        job = LiveJob(programs, instances, fabric.links["rate_bps"].to_numpy())
        self._collector = _JobCollector(job, fabric.links, config, time_dilation, labels or {})
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self._collector)
        try:
            self._server, self._thread = start_http_server(port, address, registry)
        except (OSError, OverflowError) as error:
            raise InputError(_port_problem(address, port, error)) from error
        self.port = int(self._server.server_port)

    def update(self, snapshot: Mapping[str, Any], completed: Mapping[str, Any]) -> None:
        """Take the engine's totals, and the operations completed since the last call."""
        self._collector.update(snapshot, completed)

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _JobCollector(Collector):
    """Turns the live state into metric families at every scrape."""

    def __init__(
        self,
        job: LiveJob,
        links: pl.DataFrame,
        config: Mapping[str, Any],
        time_dilation: float,
        labels: Mapping[str, str],
    ) -> None:
        self._lock = threading.Lock()
        self._job = job
        self._links = links.select("name", "source", "destination").rows()
        self._nics = [(nic["name"], str(nic["rank"])) for nic in config["nics"]]
        self._nodes = {
            False: [nic["name"] for nic in config["nics"]],
            True: [switch["name"] for switch in config["switches"]],
        }
        self._choices = EqualCostPorts(config)
        self._pauses = LivePauses(config)
        self._link_names = [link["name"] for link in config["links"]]
        self._time_dilation = time_dilation
        self._info = [labels.get(name, "") for name in CATALOGUE[f"{PREFIX}run_info"].labels]

    def update(self, snapshot: Mapping[str, Any], completed: Mapping[str, Any]) -> None:
        with self._lock:
            self._job.update(snapshot, completed)

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            families = list(self._families())
        yield from families

    def _families(self) -> Iterator[Metric]:
        yield _family("run_info", [(self._info, 1.0)])
        yield _family("time_dilation_ratio", [((), self._time_dilation)])
        yield from self._progress()
        yield from _pooled("collective_completion_time", self._job.collectives)
        yield from _pooled("flow_completion_time", self._job.flows)
        for table, families in (
            ("links", self._link_families),
            ("link_changes", self._change_families),
            ("queues", self._queue_families),
            ("pauses", self._pause_families),
            ("nics", self._nic_families),
        ):
            if table in self._job.snapshot:
                yield from families()

    def _progress(self) -> Iterator[Metric]:
        snapshot = self._job.snapshot
        yield _family("emulated_time_seconds", [((), snapshot.get("now_ps", 0) / 1e12)])
        if "lateness_p99_ns" in snapshot:
            lateness = [((), snapshot["lateness_p99_ns"] / 1e9)]
            yield _family("dispatch_lateness_p99_seconds", lateness)
            yield _family("late_frames", [((), snapshot["late_frames"])])
        yield _family("operations", [((), snapshot.get("ops_total", 0))])
        yield _family("operations_completed", [((), snapshot.get("ops_done", 0))])
        yield _family("payload_delivered_bytes", [((), snapshot.get("bytes_delivered", 0))])
        yield _family("engine_events", [((), snapshot.get("events", 0))])

    def _link_families(self) -> Iterator[Metric]:
        links = self._job.snapshot["links"]
        for stem, column in (("bytes", "tx_bytes"), ("packets", "tx_packets")):
            yield _family(f"link_transmitted_{stem}", _zipped(self._links, links[column]))
        yield _family("link_utilisation_ratio", _zipped(self._links, self._job.utilisation))
        yield _family("ecmp_share_ratio", self._choices.shares(links["tx_bytes"]))
        yield _family("ecmp_ports_not_exported", [((), self._choices.left_out)])
        if "expected_bytes" in links:
            yield _family("link_flows", _zipped(self._links, links["flows"]))
            expected = links["expected_bytes"]
            yield _family("link_expected_bytes", _zipped(self._links, expected))
            yield _family("ecmp_expected_share_ratio", self._choices.shares(expected))

    def _change_families(self) -> Iterator[Metric]:
        """Nothing where no events are to happen."""
        changes = {name: np.asarray(v) for name, v in self._job.snapshot["link_changes"].items()}
        if not len(changes["down"]):
            return
        is_up = np.where(changes["down"] > changes["up"], 0.0, 1.0)
        yield _family("link_up", _zipped([(name,) for name in self._link_names], is_up))
        counted = (
            ((name, change), float(count))
            for change in LINK_CHANGES
            for name, count in zip(self._link_names, changes[change], strict=True)
        )
        yield _family("link_changes", counted)
        lost = np.stack([changes["lost_packets_from_a"], changes["lost_packets_from_b"]], axis=1)
        yield _family("link_lost_packets", _zipped(self._links, lost.reshape(-1)))

    def _pause_families(self) -> Iterator[Metric]:
        table = self._job.snapshot["pauses"]
        yield _family("pauses", self._pauses.counts(table, QUEUE_LIMIT))

    def _queue_families(self) -> Iterator[Metric]:
        queues = self._job.snapshot["queues"]
        used = np.flatnonzero(_ever_used(queues, self._job.watermarks))
        shown = used[:QUEUE_LIMIT]
        names = [self._queue_labels(queues, index) for index in shown]
        yield _family("queues_not_exported", [((), len(used) - len(shown))])
        for stem, values in (
            ("queue_depth_bytes", queues["depth_bytes"]),
            ("queue_max_depth_bytes", self._job.watermarks),
            ("queue_paused_seconds", np.asarray(queues["paused_ps"]) / 1e12),
            *((stem, queues[column]) for stem, column in _QUEUE_COUNTERS.items()),
        ):
            yield _family(stem, _zipped(names, np.asarray(values)[shown]))

    def _queue_labels(self, queues: Mapping[str, Any], index: int) -> tuple[str, str, str]:
        node = self._nodes[bool(queues["is_switch"][index])][int(queues["node"][index])]
        return (node, str(queues["port"][index]), str(queues["priority"][index]))

    def _nic_families(self) -> Iterator[Metric]:
        nics = self._job.snapshot["nics"]
        for stem, column in _NIC_COUNTERS.items():
            if column in nics:
                yield _family(stem, _zipped(self._nics, nics[column]))


def _ever_used(queues: Mapping[str, Any], watermarks: Any) -> Any:
    """Queues that have held, marked, dropped or paused anything."""
    used = np.asarray(watermarks) > 0
    for column in _QUEUE_COUNTERS.values():
        used = used | (np.asarray(queues[column]) > 0)
    return used


def _zipped(labels: Sequence[tuple[str, ...]], values: Any) -> _Samples:
    """Label values with their numbers."""
    return zip(labels, np.asarray(values, dtype=np.float64).tolist(), strict=True)


def _family(stem: str, samples: _Samples) -> Metric:
    """A counter or gauge of the catalogue by the stem of its name."""
    described = CATALOGUE.get(f"{PREFIX}{stem}") or CATALOGUE[f"{PREFIX}{stem}_total"]
    family: CounterMetricFamily | GaugeMetricFamily
    kind = CounterMetricFamily if described.kind == "counter" else GaugeMetricFamily
    family = kind(described.name, described.help, labels=described.labels)
    for labels, value in samples:
        family.add_metric(list(labels), value)
    return family


def _pooled(stem: str, pool: Classified) -> Iterator[Metric]:
    """Histogram and exact quantiles of classified completion times."""
    described, exact = (CATALOGUE[f"{PREFIX}{stem}_{part}seconds"] for part in ("", "exact_"))
    histogram = HistogramMetricFamily(described.name, described.help, labels=described.labels)
    summary = SummaryMetricFamily(exact.name, exact.help, labels=exact.labels)
    limits = [*(f"{limit:g}" for limit in BUCKETS_SECONDS), "+Inf"]
    for number, labels in enumerate(pool.labels):
        ordered = pool.ordered(number)
        if len(ordered) == 0:
            continue
        total = float(pool.sums[number])
        running = np.cumsum(pool.buckets[number]).tolist()
        histogram.add_metric(labels, list(zip(limits, running, strict=True)), total)
        for share in QUANTILES.values():
            value = quantile(ordered, share)
            if value is not None:
                named = dict(zip(exact.labels, labels, strict=True))
                summary.add_sample(exact.name, {**named, "quantile": f"{share:g}"}, value)
        summary.add_metric(labels, count_value=len(ordered), sum_value=total)
    yield histogram
    yield summary


def _port_problem(address: str, port: int, error: Exception) -> Problem:
    """Why the exporter can't listen."""
    return Problem(
        source="--metrics-port",
        place=f"{address}:{port}",
        what=f"the metrics port can't be opened ({error})",
        remedy="give a port that is free, or 0 for any free one",
    )
