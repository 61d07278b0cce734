"""A named kind of switch fills in what a lab file leaves out, and says where each value is from."""

from pathlib import Path
from typing import get_args

import pytest

from dataplane.errors import InputError
from emulator.cli import main
from emulator.job import JobRequest, build_job
from emulator.job_config import job_config
from emulator.lab import load, load_lab
from emulator.lab.sources import sourced_tables
from emulator.lab.switches import Switches
from emulator.predict import predict
from emulator.switch_presets import SWITCH_KINDS

LAB = """\
name: kinds
topology:
  kind: clos
  leaves: 1
  spines: 0
  hosts_per_leaf: 4
  host_link: {rate_gbps: 400}
"""


@pytest.fixture
def lab(tmp_path: Path) -> str:
    path = tmp_path / "kinds.yaml"
    path.write_text(LAB)
    return str(path)


def preset(name: str) -> str:
    return f"switches.preset={name}"


def test_a_lab_file_takes_exactly_the_kinds_that_there_are() -> None:
    literal = get_args(Switches.model_fields["preset"].annotation)[0]
    assert set(get_args(literal)) == set(SWITCH_KINDS)


@pytest.mark.parametrize("name", SWITCH_KINDS)
def test_every_value_of_a_kind_holds_and_is_shown_with_its_source(name: str, lab: str) -> None:
    loaded = load(lab, [preset(name)])
    kind = SWITCH_KINDS[name]
    told = sourced_tables(loaded)
    rows = {**told["switches"], **{f"pfc.{k}": v for k, v in told["switches.pfc"].items()}}
    sources = {item.source for item in rows.values()}
    for path, item in kind.values.items():
        assert item.source in sources, path
    assert rows["buffer_bytes"].value == kind.values["buffer_bytes"].value
    assert kind.modelled_on in rows["preset"].source


def test_the_engine_gets_the_preset_resolved(lab: str) -> None:
    loaded = load(lab, [preset("sonic-tomahawk5")])
    switch = job_config(loaded.lab, loaded.fabric, seed=1)["switches"][0]
    assert switch["headroom_pool_bytes"] == 22_010_624
    reserved = [priority["reserved_bytes"] for priority in switch["priorities"]]
    assert reserved == [18_796 if n in (3, 4) else 1_778 for n in range(8)]
    assert switch["buffer_bytes"] == 164_505_640 - 22_010_624 - 4 * sum(reserved)
    assert switch["priorities"][3]["ecn"]["drops_not_ect"] is False
    assert switch["dynamic_threshold_alpha"] == 1.0
    assert switch["pfc_watchdog"]["action"] == "drop"
    lossless = [priority["lossless"] for priority in switch["priorities"]]
    assert [n for n in range(8) if lossless[n]] == [3, 4]
    assert [p["weight"] for p in switch["priorities"]][2:5] == [14, 15, 15]
    assert not any(p["strict"] for p in switch["priorities"])
    assert switch["priorities"][4]["ecn"]["kmin_bytes"] == 1_048_576


def test_what_the_lab_file_gives_comes_before_the_preset(lab: str) -> None:
    changes = [preset("sonic-tomahawk5"), "switches.buffer_bytes=50000000", "ecn.kmin_bytes=9000",
               "pfc.watchdog=null", "pfc.headroom_oversubscription=4"]  # fmt: skip
    loaded = load(lab, changes)
    switches = loaded.lab.switches
    assert switches.buffer_bytes == 50_000_000
    assert switches.pfc.watchdog is None
    assert switches.pfc.headroom_pool_bytes is None
    told = sourced_tables(loaded)
    assert told["switches"]["buffer_bytes"].source == "lab file"
    assert told["switches.ecn"]["kmin_bytes"].source == "lab file"
    assert told["switches.ecn"]["kmax_bytes"].value == 2_097_152
    assert told["switches.pfc"]["headroom_pool_bytes"].value == 4 * 2 * 445_770 // 4


def test_an_unknown_kind_is_refused_with_the_known_ones(lab: str) -> None:
    with pytest.raises(InputError, match=r"switches\.preset: is 'tomahawk'.*sonic-tomahawk5"):
        load_lab(lab, [preset("tomahawk")])


@pytest.mark.parametrize("name", SWITCH_KINDS)
def test_an_all_to_all_crosses_switches_of_that_kind_without_a_drop(name: str, lab: str) -> None:
    request = JobRequest(lab, (preset(name),), profile="all-to-all,repeats=1", size_scale=0.5)
    engine = predict(build_job(request))
    assert engine["counters"]["switch_ports"]["dropped_packets"].sum() == 0


def test_lab_show_prints_the_kind_and_its_values(
    lab: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lab", "show", lab, "--set", preset("cumulus-spectrum")]) == 0
    told = capsys.readouterr().out
    assert "modelled on NVIDIA SN2700" in told
    assert "102528" in told
