"""Each class of data packets has tags and congestion control; one that names none has the lab's."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dataplane.errors import InputError
from emulator.doctor import Level, diagnose
from emulator.job import JobRequest, build_job
from emulator.lab import load
from emulator.lab.sources import sourced_tables
from emulator.predict import predict
from metrics.report.facts import run_facts

LAB = """\
name: classes
topology: {kind: clos, leaves: 1, spines: 0, hosts_per_leaf: 4, host_link: {rate_gbps: 100}}
congestion_control: {algorithm: dcqcn, preset: paper, min_rate_bps: 1_000_000_000}
traffic_classes:
  further:
    - name: experts
      collective: all_to_all
      dscp: 30
      priority: 4
      congestion_control: {algorithm: swift, base_target_delay_ns: 20_000}
    - name: small
      max_size_bytes: 1000
      dscp: 34
      priority: 5
      congestion_control: {algorithm: dcqcn, rpg_min_rate: 2000, clamp_tgt_rate: 1}
    - {name: plain, group: none, dscp: 36, priority: 5}
"""


@pytest.fixture
def lab(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str = LAB) -> str:
        path = tmp_path / "classes.yaml"
        path.write_text(text)
        return str(path)

    return write


def test_a_class_without_congestion_control_has_the_lab_s(lab: Callable[[str], str]) -> None:
    job = build_job(JobRequest(lab=lab(LAB), profile="all-reduce"))
    first, further = job.config["congestion_control"], job.config["further_classes"]
    controls = [item["congestion_control"] for item in further]
    assert [control["algorithm"] for control in controls] == ["swift", "dcqcn", "dcqcn"]
    assert controls[2] == first
    assert first["min_rate_bps"] == 1_000_000_000


def test_a_class_takes_a_preset_with_overrides_in_mlx5_s_names(lab: Callable[[str], str]) -> None:
    control = build_job(JobRequest(lab=lab(LAB), profile="all-reduce")).config["further_classes"][1]
    assert control["congestion_control"]["min_rate_bps"] == 2_000_000_000
    assert control["congestion_control"]["clamp_target_rate"] == "always"
    assert control["congestion_control"]["additive_increase_bps"] == 5_000_000


def test_the_data_class_can_override_the_lab_s_congestion_control(
    lab: Callable[[str], str],
) -> None:
    override = "traffic_classes.data.congestion_control={algorithm: fixed_rate, rate_gbps: 10}"
    job = build_job(JobRequest(lab=lab(LAB), profile="all-reduce", overrides=[override]))
    assert job.config["congestion_control"] == {"algorithm": "fixed_rate", "rate_bps": 10**10}
    assert job.config["further_classes"][2]["congestion_control"]["algorithm"] == "dcqcn"


def test_a_setting_of_a_class_can_be_changed_on_the_command_line(lab: Callable[[str], str]) -> None:
    path = "traffic_classes.further.1.congestion_control"
    loaded = load(lab(LAB), [f"{path}.rpg_ai_rate=40", f"{path}.rpg_min_rate=3000"])
    values = sourced_tables(loaded)["traffic_classes.small.congestion_control"]
    assert values["additive_increase_bps"].value == 40_000_000
    assert values["min_rate_bps"].value == 3_000_000_000


def test_run_json_has_the_resolved_profile_of_each_class(lab: Callable[[str], str]) -> None:
    job = build_job(JobRequest(lab=lab(LAB), profile="all-reduce"))
    settings = json.loads(json.dumps(job.run_info))["settings"]
    assert settings["congestion_control"]["algorithm"][0] == "dcqcn"
    swift = settings["traffic_classes.experts.congestion_control"]
    assert swift["base_target_delay_ns"] == [20_000, "lab file"]
    assert swift["beta"][1].startswith("our choice")
    small = settings["traffic_classes.small.congestion_control"]
    assert small["g"][1].startswith("ConnectX-5 firmware default")
    assert small["min_rate_bps"] == [2_000_000_000, "lab file"]


def test_messages_take_the_first_class_that_matches(lab: Callable[[str], str]) -> None:
    job = build_job(JobRequest(lab=lab(LAB), profile="moe-training"))
    of_kind = dict(job.compiled.instances.select("kind", "traffic_class").unique().iter_rows())
    assert of_kind == {"all_to_all": "experts", "all_reduce": "data"}
    for program in job.programs:
        names = job.compiled.instances["traffic_class"].to_list()
        messages = np.flatnonzero(program.kind <= 1)
        expected = [int(names[program.instance[op]] == "experts") for op in messages]
        assert program.traffic_class[messages].tolist() == expected
    assert any("class plain carries no" in text for text in job.run_info["warnings"])


def test_each_class_is_paced_by_its_own_congestion_control(lab: Callable[[str], str]) -> None:
    fixed = "{algorithm: fixed_rate, rate_gbps: %d}"
    overrides = [
        f"congestion_control={fixed % 20}",
        f"traffic_classes.further.0.congestion_control={fixed % 5}",
    ]
    request = JobRequest(lab=lab(LAB), profile="moe-training", overrides=overrides, size_scale=0.01)
    rates = predict(build_job(request))["qps"]
    seen = {int(n): set(rates["current_rate_bps"][rates["traffic_class"] == n]) for n in (0, 1)}
    assert seen == {0: {20 * 10**9}, 1: {5 * 10**9}}


def test_the_report_names_the_congestion_control_of_each_class(lab: Callable[[str], str]) -> None:
    job = build_job(JobRequest(lab=lab(LAB), profile="all-reduce"))
    facts = run_facts({"job": job.config})
    assert facts["Congestion control"] == "data: dcqcn, experts: swift, small: dcqcn, plain: dcqcn"


@pytest.mark.parametrize(
    ("override", "what"),
    [
        ("traffic_classes.further.0.collective=alltoall", "no collective is called so"),
        ("traffic_classes.further.1.name=experts", "which another class has"),
        ("traffic_classes.further.1.name=data", "which another class has"),
        ("traffic_classes.further.0.dscp=26", "give one DSCP one priority"),
        ("traffic_classes.further.1.min_size_bytes=2000", "above max_size_bytes 1000"),
        ("traffic_classes.further.1.congestion_control.rpg_min_rate=200000", "slowest NIC link"),
        ("traffic_classes.further.1.congestion_control.rpg_threshold=99", "from 0 to 31"),
        ("traffic_classes.further.1.congestion_control.rpg_treshold=9", "did you mean"),
        ("traffic_classes.further.0.congestion_control.max_window_packets=1.0", "max_window"),
    ],
)
def test_what_is_wrong_with_a_class_is_told_with_its_place(
    lab: Callable[[str], str], override: str, what: str
) -> None:
    with pytest.raises(InputError) as caught:
        load(lab(LAB), [override])
    assert what in str(caught.value)
    assert "traffic_classes.further" in str(caught.value)


def test_the_doctor_looks_at_each_class(lab: Callable[[str], str]) -> None:
    off = "traffic_classes.further.1.ecn_capable=false"
    minimum = "traffic_classes.further.1.congestion_control.rpg_min_rate=1"
    found = {item.rule: item for item in diagnose(load(lab(LAB), [off, minimum]))}
    assert found["small packets are ECN-capable"].level is Level.WRONG
    assert "traffic_classes.further.1.ecn_capable" in found["small packets are ECN-capable"].remedy
    starving = found["small: the minimum rate can still be marked"]
    assert starving.level is Level.WARNING
    assert "traffic_classes.further.1.congestion_control.min_rate_bps" in starving.remedy
    assert found["the minimum rate can still be marked"].level is Level.GOOD
    assert found["experts: every packet is acknowledged"].level is Level.WARNING
