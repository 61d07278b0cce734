"""The exporter: families, exact quantiles, a taken port, a real Prometheus that scrapes it."""

import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest

from dataplane.errors import InputError
from metrics.catalogue import CATALOGUE, METRICS, series_names
from metrics.exporter import Exporter
from tests.metrics.synthetic import Run, moe_run, snapshot_of


@pytest.fixture
def run() -> Run:
    return moe_run(iterations=4)


@pytest.fixture
def exporter(run: Run) -> Iterator[Exporter]:
    served = Exporter(
        0,
        config=run.config,
        programs=run.programs,
        instances=run.instances,
        time_dilation=2000,
        labels={"command": "run", "lab": "loopback-clos", "run": "r1"},
    )
    yield served
    served.close()


def page(exporter: Exporter) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{exporter.port}/metrics") as answer:
        return str(answer.read().decode())


def value(text: str, series: str) -> float:
    """The value of one series, labels in the order of the page."""
    (line,) = [line for line in text.splitlines() if line.startswith(series + " ")]
    return float(line.rsplit(" ", 1)[1])


def first(run: Run, share: float) -> dict[str, Any]:
    """The operations that end in the first `share` of the run."""
    ops = run.engine["ops"]
    mask = ops["end_ps"] <= np.quantile(ops["end_ps"], share)
    return {name: values[mask] for name, values in ops.items()}


def rest(run: Run, share: float) -> dict[str, Any]:
    """The other operations."""
    ops = run.engine["ops"]
    mask = ops["end_ps"] > np.quantile(ops["end_ps"], share)
    return {name: values[mask] for name, values in ops.items()}


def test_every_exported_family_is_in_the_catalogue_and_the_reverse(
    run: Run, exporter: Exporter
) -> None:
    """Names on the page are those of the catalogue."""
    exporter.update(snapshot_of(run), run.engine["ops"])
    lines = page(exporter).splitlines()
    names = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert names == {metric.name for metric in METRICS}


def test_collectives_complete_only_with_their_last_operation(run: Run, exporter: Exporter) -> None:
    """Half of the operations give fewer than half of the collectives, all give all."""
    series = (
        "rankwire_collective_completion_time_exact_seconds_count"
        '{kind="all_reduce",ranks="5-8",size="1 MiB to 16 MiB"}'
    )
    exporter.update(snapshot_of(run, 0.5), first(run, 0.5))
    half = value(page(exporter), series)
    exporter.update(snapshot_of(run), rest(run, 0.5))
    assert 0 < half <= 12
    assert value(page(exporter), series) == 24


def test_quantiles_are_exact_and_absent_with_too_few_samples(run: Run, exporter: Exporter) -> None:
    """The median gauge is the nearest-rank sample; 24 collectives give no p99."""
    exporter.update(snapshot_of(run), run.engine["ops"])
    text = page(exporter)
    labels = 'ranks="5-8",size="1 MiB to 16 MiB"'
    stem = "rankwire_collective_completion_time_exact_seconds"
    ops = run.engine["ops"]
    instance = np.concatenate([program.instance for program in run.programs])
    times = []
    for row in run.instances.filter(kind="all_reduce").iter_rows(named=True):
        mine = instance == row["instance"]
        times.append(int(ops["end_ps"][mine].max() - ops["start_ps"][mine].min()))
    assert (
        value(text, f'{stem}{{kind="all_reduce",quantile="0.5",{labels}}}')
        == sorted(times)[11] / 1e12
    )
    assert f'{stem}{{kind="all_reduce",quantile="0.99"' not in text


def test_utilisation_is_that_since_the_last_update(run: Run, exporter: Exporter) -> None:
    """Bits of the second half over the line rate times its length."""
    exporter.update(snapshot_of(run, 0.5), first(run, 0.5))
    later = snapshot_of(run)
    links = later["links"]
    links["tx_bytes"] = snapshot_of(run, 0.5)["links"]["tx_bytes"] + np.uint64(10**6)
    links["tx_packets"] = snapshot_of(run, 0.5)["links"]["tx_packets"] + np.uint64(240)
    exporter.update(later, rest(run, 0.5))
    passed = (later["now_ps"] - snapshot_of(run, 0.5)["now_ps"]) / 1e12
    labels = 'destination="leaf0:0",link="host0-leaf0",source="host0"'
    used = value(page(exporter), f"rankwire_link_utilisation_ratio{{{labels}}}")
    assert used == pytest.approx((10**6 + 4800) * 8 / (4e11 * passed))


def test_a_snapshot_without_tables_keeps_the_last_ones(run: Run, exporter: Exporter) -> None:
    """Very large fabrics report totals only on the way; links and queues stay on the page."""
    totals = ("now_ps", "ops_done", "ops_total", "bytes_delivered", "events")
    early = snapshot_of(run, 0.5)
    exporter.update({name: early[name] for name in totals}, first(run, 0.5))
    assert "rankwire_link_utilisation_ratio" not in page(exporter)
    exporter.update(early, {name: values[:0] for name, values in run.engine["ops"].items()})
    late = snapshot_of(run)
    exporter.update({name: late[name] for name in totals}, rest(run, 0.5))
    text = page(exporter)
    assert value(text, "rankwire_operations_completed_total") == late["ops_done"]
    assert "rankwire_link_utilisation_ratio{" in text


def test_idle_queues_have_no_series(run: Run, exporter: Exporter) -> None:
    """Only queues that have held something are exported."""
    exporter.update(snapshot_of(run), run.engine["ops"])
    text = page(exporter)
    assert 'rankwire_queue_max_depth_bytes{node="leaf0",port="8",priority="3"}' in text
    assert 'priority="7"' not in text


def test_a_taken_port_is_an_input_error(run: Run) -> None:
    """The message names the port and the remedy."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(InputError, match=f"127.0.0.1:{port}.*free"):
            Exporter(port, config=run.config, programs=run.programs, instances=run.instances)


def needs(program: str) -> str:
    """Path of a program, or skip."""
    path = shutil.which(program)
    if path is None:
        pytest.skip(f"{program} is not installed")
    return path


def test_promtool_finds_nothing_to_complain_about(run: Run, exporter: Exporter) -> None:
    """Names, units and types follow the Prometheus rules."""
    exporter.update(snapshot_of(run), run.engine["ops"])
    check = subprocess.run(
        [needs("promtool"), "check", "metrics"],
        input=page(exporter),
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 0, check.stdout + check.stderr
    assert check.stdout + check.stderr == ""


def test_a_real_prometheus_scrapes_every_series(
    run: Run, exporter: Exporter, tmp_path: Path
) -> None:
    """A server with its own configuration and data directory stores what is on the page."""
    binary = needs("prometheus")
    exporter.update(snapshot_of(run), run.engine["ops"])
    config = {
        "global": {"scrape_interval": "1s"},
        "scrape_configs": [
            {
                "job_name": "rankwire",
                "static_configs": [{"targets": [f"127.0.0.1:{exporter.port}"]}],
            }
        ],
    }
    (tmp_path / "prometheus.yml").write_text(json.dumps(config), encoding="utf-8")
    port = free_port()
    server = subprocess.Popen(
        [
            binary,
            f"--config.file={tmp_path / 'prometheus.yml'}",
            f"--storage.tsdb.path={tmp_path / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        count = query(port, "count(rankwire_queue_depth_bytes)", deadline_s=30)
        assert count == 8
        total = query(port, "rankwire_operations_completed_total", deadline_s=5)
        assert total == len(run.engine["ops"]["op"])
        names = {name for metric in METRICS for name in series_names(metric)}
        stored = query(
            port, 'count(count by (__name__) ({job="rankwire",__name__=~"rankwire_.+"}))'
        )
        assert stored == len(names)
        for expression in dashboard_expressions():
            assert query(port, expression) is not None, expression
    finally:
        server.terminate()
        server.wait(10)


def dashboard_expressions() -> list[str]:
    """Every expression of the dashboards that needs no time to pass, with the job filled in."""
    found = []
    for path in (Path(__file__).resolve().parents[2] / "metrics" / "dashboards").glob("*.json"):
        for panel in json.loads(path.read_text(encoding="utf-8"))["panels"]:
            found += [target["expr"] for target in panel.get("targets", [])]
    return [text.replace("$job", "rankwire") for text in found if "rate(" not in text]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def query(port: int, expression: str, deadline_s: float = 5.0) -> float | None:
    """The value of an instant query, as soon as there is one."""
    url = f"http://127.0.0.1:{port}/api/v1/query?query={quote(expression)}"
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(url) as answer:
                result = json.load(answer)["data"]["result"]
            if result:
                return float(result[0]["value"][1])
        except OSError:
            pass
        time.sleep(0.2)
    return None


def test_the_catalogue_follows_the_naming_rules() -> None:
    """Counters end in _total; ratios name their denominator; help is a sentence."""
    for name, metric in CATALOGUE.items():
        assert name.startswith("rankwire_")
        assert name.endswith("_total") == (metric.kind == "counter")
        assert metric.help.endswith(".")
        assert bool(metric.denominator) == (metric.unit == "ratio")


def test_shares_of_equal_cost_ports_are_of_their_group(run: Run, exporter: Exporter) -> None:
    """A port's bytes over those of the group, and what the hash leads there beside it."""
    snapshot = snapshot_of(run)
    exporter.update(snapshot, run.engine["ops"])
    text = page(exporter)
    for stem, column in (("share", "tx_bytes"), ("expected_share", "expected_bytes")):
        found = [
            line
            for line in text.splitlines()
            if line.startswith(f"rankwire_ecmp_{stem}_ratio{{") and 'switch="leaf0"' in line
        ]
        assert len(found) == 2
        assert sum(float(line.rsplit(" ", 1)[1]) for line in found) == pytest.approx(1)
        names = [link["name"] for link in run.config["links"]]
        bytes_of = {}
        for line in found:
            link = line.split('link="')[1].partition('"')[0]
            bytes_of[link] = float(snapshot["links"][column][2 * names.index(link)])
        for line in found:
            link = line.split('link="')[1].partition('"')[0]
            share = bytes_of[link] / sum(bytes_of.values())
            assert float(line.rsplit(" ", 1)[1]) == pytest.approx(share)


def test_pauses_name_who_was_paused(run: Run, exporter: Exporter) -> None:
    """Ingresses that have paused nobody have no series."""
    exporter.update(snapshot_of(run), run.engine["ops"])
    lines = [x for x in page(exporter).splitlines() if x.startswith("rankwire_pauses_total{")]
    labels = 'paused="host0",port="0",priority="3",switch="leaf0"'
    assert lines == [f"rankwire_pauses_total{{{labels}}} 5.0"]


def test_links_are_up_unless_an_event_has_them_down(run: Run, exporter: Exporter) -> None:
    """Down counts against up; losses are those of the direction."""
    snapshot = snapshot_of(run)
    changes = snapshot["link_changes"]
    changes["down"][1], changes["up"][1], changes["lost_packets_from_b"][1] = 2, 1, 9
    exporter.update(snapshot, run.engine["ops"])
    text = page(exporter)
    name = run.config["links"][1]["name"]
    assert value(text, f'rankwire_link_up{{link="{name}"}}') == 0
    assert value(text, f'rankwire_link_up{{link="{run.config["links"][0]["name"]}"}}') == 1
    assert value(text, f'rankwire_link_changes_total{{change="down",link="{name}"}}') == 2
    lost = [x for x in text.splitlines() if x.startswith("rankwire_link_lost_packets_total{")]
    assert sum(float(line.rsplit(" ", 1)[1]) for line in lost) == 9
