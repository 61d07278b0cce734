"""What is told of NICs that RDMA devices carry."""

import base64

import numpy as np
import pytest

from metrics.records.adapters import ADAPTER_SCHEMA, adapter_table
from metrics.records.findings import adapter_findings, link_rates_bps
from metrics.report.adapter_table import by_counter
from metrics.report.charts.adapters import COUNTER_LIMIT, device_counters


def test_counters_of_devices_become_columns() -> None:
    """A counter that did not move is left out; a device without it has 0."""
    rows = {
        "nic": [1, 1, 4, 4],
        "name": ["sent_pkts", "out_of_seq_request", "sent_pkts", "np_cnp_sent"],
        "value": [10, 0, 30, 5],
    }
    expected = {"nic": [1, 4], "sent_pkts": [10, 30], "np_cnp_sent": [0, 5]}
    assert by_counter(rows) == expected
    assert by_counter({}) == {}
    assert by_counter({"nic": [0], "name": ["sent_pkts"], "value": [0]}) == {}


def test_a_run_says_what_it_did_not_see() -> None:
    """Packets of an adapter are its own business; damaged messages are everybody's."""
    assert list(adapter_findings({}, {}, {})) == []
    unseen, damaged = adapter_findings({"nic": [0, 1], "payload_mismatches": [0, 3]}, {}, {})
    assert unseen.startswith("2 NICs are RDMA devices: packets, marks")
    assert damaged.startswith("3 messages ended with other bytes")


@pytest.mark.parametrize(("lab_gbps", "is_told"), [(100, False), (99.5, False), (400, True)])
def test_a_port_of_another_rate_than_its_link_is_told(lab_gbps: float, is_told: bool) -> None:
    """Nothing paces an adapter: whatever is compared with the link's rate would be wrong."""
    ports = {"n0": {"driver": "verbs", "port_rate_bps": 100 * 10**9}, "n1": {"driver": "udp"}}
    rates_bps = {name: round(lab_gbps * 1e9) for name in ports}
    found = list(adapter_findings({}, ports, rates_bps))
    assert ["the port of n0 runs at 100 Gb/s, the lab" in text for text in found] == [
        True
    ] * is_told


@pytest.mark.parametrize("told", ["100 Gb/s", "", 1.5, None])
def test_a_rate_that_is_no_whole_number_is_none(told: object) -> None:
    """Agents tell it, and the records of a run are worth more than a warning."""
    assert list(adapter_findings({}, {"n0": {"port_rate_bps": told}}, {"n0": 10**11})) == []


def test_many_ports_of_another_rate_are_one_warning() -> None:
    """Eight are named."""
    ports = {f"n{n}": {"port_rate_bps": 10**11} for n in range(64)}
    (found,) = adapter_findings({}, ports, dict.fromkeys(ports, 4 * 10**11))
    assert "the port of n0, n1, n2, n3, n4, n5, n6, n7 and 56 more runs at 100 Gb/s" in found


def test_the_rate_of_a_nics_link_is_found_at_either_end() -> None:
    """Links between switches are nobody's."""
    nic, switch = {"node": {"nic": 0}}, {"node": {"switch": 0}}
    links = [
        {"a": switch, "b": nic, "rate_bps": 25},
        {"a": switch, "b": switch, "rate_bps": 100},
        {"a": {"node": {"nic": 1}}, "b": switch, "rate_bps": 50},
    ]
    config = {"nics": [{"name": "n0"}, {"name": "n1"}], "links": links}
    assert link_rates_bps(config) == {"n0": 25, "n1": 50}


def samples(*rows: tuple[int, int, str, int]) -> dict[str, np.ndarray]:
    """Columns of (time_ps, nic, name, value) as the engine gives them."""
    time_ps, nic, name, value = zip(*rows, strict=True)
    return {
        "time_ps": np.array(time_ps, np.uint64),
        "nic": np.array(nic, np.uint32),
        "name": np.array(name),
        "value": np.array(value, np.uint64),
    }


def test_samples_have_names_and_nanoseconds() -> None:
    """And no row where there is no device."""
    table = adapter_table(samples((5000, 1, "sent_pkts", 3)), ["n0", "n1"])
    assert table.rows() == [(5, "n1", "sent_pkts", 3)]
    assert table.schema == adapter_table({}, []).schema == ADAPTER_SCHEMA


def unpacked(values: dict[str, str]) -> np.ndarray:
    """Return the numbers that Plotly would draw."""
    return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"])


def test_the_chart_sums_the_last_values_of_all_devices() -> None:
    """One that has not moved keeps what it had; congestion comes before what grew most."""
    rows = (
        (1000, 0, "sent_pkts", 10),
        (1000, 1, "sent_pkts", 20),
        (2000, 0, "sent_pkts", 30),
        (2000, 1, "np_cnp_sent", 1),
    )
    chart = device_counters(adapter_table(samples(*rows), ["n0", "n1"]))
    assert chart is not None
    assert [line["name"] for line in chart.data] == ["np_cnp_sent", "sent_pkts"]
    assert [list(unpacked(line["y"])) for line in chart.data] == [[1], [30, 50]]
    assert "2 of 2 counters" in chart.note
    assert device_counters(adapter_table({}, [])) is None


def test_the_chart_has_few_counters() -> None:
    """Adapters have a hundred."""
    rows = [(1000, 0, f"counter{n}", n) for n in range(1, 100)]
    chart = device_counters(adapter_table(samples(*rows), ["n0"]))
    assert chart is not None
    assert len(chart.data) == COUNTER_LIMIT
    assert chart.data[0]["name"] == "counter99"
