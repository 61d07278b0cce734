"""What is told of NICs that RDMA devices carry."""

from metrics.records.findings import adapter_findings
from metrics.report.adapter_table import by_counter


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
    assert list(adapter_findings({})) == []
    unseen, damaged = adapter_findings({"nic": [0, 1], "payload_mismatches": [0, 3]})
    assert unseen.startswith("2 NICs are RDMA devices")
    assert damaged.startswith("3 messages ended with other bytes")
