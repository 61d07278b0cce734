"""What the ports of a real network can do, as the report shows it."""

from typing import Any

from metrics.report.port_table import port_table

UDP: dict[str, Any] = {
    "driver": "udp",
    "interface": "",
    "max_frame_bytes": 4214,
    "max_burst_packets": 64,
    "has_segmentation": True,
    "has_coalescing": True,
    "has_ecn": True,
    "has_identification": False,
    "invariant_crc": "sender",
    "timestamps": "kernel",
    "queues": 0,
    "xdp_mode": "",
    "has_zero_copy": False,
}
XDP = UDP | {
    "driver": "af_xdp",
    "interface": "eth0",
    "has_segmentation": False,
    "has_identification": True,
    "timestamps": "hardware",
    "queues": 4,
    "xdp_mode": "native",
    "has_zero_copy": True,
}


def cells(ports: dict[str, Any]) -> str:
    shown = port_table(ports)
    assert shown is not None
    return shown[shown.index("<tbody>") :]


def test_an_emulated_fabric_has_no_ports() -> None:
    assert port_table({}) is None


def test_what_a_port_lacks_is_not_shown_as_a_figure() -> None:
    """The kernel's stack serves the queues of `udp`; there is no program."""
    shown = cells({"host0": UDP})
    assert shown.count(">n/a<") == 3
    assert "4\u202f214 B" in shown
    assert ">64<" in shown
    assert "rankwire, identification guessed" in shown


def test_mode_copies_queues_and_times_of_af_xdp_are_told() -> None:
    shown = cells({"host0": XDP})
    for text in (">native, zero-copy<", ">4<", ">hardware<", ">no<", ">rankwire<"):
        assert text in shown


def test_words_in_the_place_of_numbers_are_no_numbers() -> None:
    """Agents tell them; nothing else of the table is lost."""
    odd = {"max_frame_bytes": "long", "queues": float("nan"), "max_burst_packets": None}
    shown = cells({"host0": UDP | odd})
    assert "long" not in shown
    assert ">udp<" in shown


def test_a_port_of_another_version_is_shown_as_far_as_it_is_known() -> None:
    assert ">verbs<" in cells({"host0": {"driver": "verbs", "invariant_crc": "hardware"}})
