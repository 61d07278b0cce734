"""Every setting of a queue can be given for a single priority."""

from pathlib import Path
from typing import Any

import pytest

from dataplane.errors import InputError
from emulator.job_config import job_config
from emulator.lab import load, load_lab
from emulator.lab.sources import sourced_tables

PRIORITY_4 = (
    "{priority: 4, marks: true, kmin_bytes: 1000, kmax_bytes: 2000, pmax_ratio: 0.5, "
    "drops_not_ect: true, lossless: true, dynamic_threshold_alpha: 0.25, xoff_bytes: 90000, "
    "xon_offset_bytes: 3000, reserved_bytes: 4000, headroom_bytes: 70000, watched: false, "
    "strict: true, weight: 9}"
)


def priorities(*changes: str) -> list[dict[str, Any]]:
    loaded = load("single-switch", changes)
    switch = job_config(loaded.lab, loaded.fabric, seed=1)["switches"][0]
    return list(switch["priorities"])


def test_one_priority_has_settings_of_its_own_and_leaves_the_others_theirs() -> None:
    before = priorities("pfc.watchdog={}")
    after = priorities("pfc.watchdog={}", f"switches.queues=[{PRIORITY_4}]")
    assert after[4] == {
        "lossless": True,
        "watched": False,
        "strict": True,
        "weight": 9,
        "ecn": {"kmin_bytes": 1000, "kmax_bytes": 2000, "pmax_ratio": 0.5, "drops_not_ect": True},
        "dynamic_threshold_alpha": 0.25,
        "xoff_bytes": 90_000,
        "xon_offset_bytes": 3_000,
        "headroom_bytes": 70_000,
        "reserved_bytes": 4_000,
    }
    assert [after[n] for n in range(8) if n != 4] == [before[n] for n in range(8) if n != 4]


def test_a_priority_can_be_taken_out_of_what_holds_for_all() -> None:
    out = "{priority: 3, marks: false, lossless: false}"
    data = priorities(f"switches.queues=[{out}]")[3]
    assert (data["ecn"], data["lossless"], data["headroom_bytes"]) == (None, False, 0)
    cnp = priorities("switches.queues=[{priority: 6, strict: false, weight: 3}]")[6]
    assert (cnp["strict"], cnp["weight"]) == (False, 3)


def test_headroom_of_single_priorities_is_set_aside() -> None:
    def shared(*changes: str) -> int:
        loaded = load("single-switch", changes)
        switch = job_config(loaded.lab, loaded.fabric, seed=1)["switches"][0]
        return int(switch["buffer_bytes"])

    more = "{priority: 4, lossless: true, headroom_bytes: 70000}"
    assert shared() - shared(f"switches.queues=[{more}]") == 8 * 70_000


def test_reservations_are_set_aside_and_may_differ_by_priority() -> None:
    def switch(*changes: str) -> dict[str, Any]:
        loaded = load("single-switch", changes)
        config: dict[str, Any] = job_config(loaded.lab, loaded.fabric, seed=1)["switches"][0]
        return config

    changes = ("pfc.reserved_bytes=9000", "switches.queue_reserved_bytes=1000",
               "switches.queues=[{priority: 5, reserved_bytes: 700}]")  # fmt: skip
    kept = switch(*changes)
    reserved = [priority["reserved_bytes"] for priority in kept["priorities"]]
    assert reserved == [1000, 1000, 1000, 9000, 1000, 700, 1000, 1000]
    assert switch()["buffer_bytes"] - kept["buffer_bytes"] == 8 * sum(reserved)


def test_a_buffer_smaller_than_what_it_sets_aside_is_refused_in_one_message() -> None:
    changes = ["switches.buffer_bytes=1000000", "pfc.reserved_bytes=100000",
               "pfc.headroom_bytes=50000", "switches.queue_reserved_bytes=2000"]  # fmt: skip
    with pytest.raises(InputError) as caught:
        load_lab("single-switch", changes)
    assert len(caught.value.problems) == 1
    told = str(caught.value)
    assert "sets aside 400000 for headroom (50000 per port and lossless priority)" in told
    assert "and 912000 for reservations (114000 per port)" in told


def test_thresholds_of_a_priority_are_shown_with_their_source() -> None:
    loaded = load("single-switch", [f"switches.queues=[{PRIORITY_4}]"])
    told = sourced_tables(loaded)["switches.ecn, priority 4"]
    assert (told["kmin_bytes"].value, told["kmin_bytes"].source) == (1000, "lab file")


@pytest.mark.parametrize(
    ("queues", "told"),
    [
        ("{priority: 1}, {priority: 1}", "queues.1.priority: is 1, as before"),
        ("{priority: 3, kmin_bytes: 9, kmax_bytes: 8}", "queues.0.kmin_bytes: is 9, above"),
        ("{priority: 3, xoff_bytes: 9}", "queues.0.xon_offset_bytes: is 16384, above xoff_bytes 9"),
        ("{priority: 8}", "queues.0.priority: is 8; give 7 or less"),
    ],
)
def test_what_cannot_be_is_refused(queues: str, told: str) -> None:
    with pytest.raises(InputError) as caught:
        load_lab("single-switch", [f"switches.queues=[{queues}]"])
    assert told in str(caught.value)


def test_settings_of_queues_are_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs" / "labs.md").read_text()
    assert "### `switches.queues`" in page
