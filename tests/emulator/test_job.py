"""A job is read, bound, validated, compiled and placed before anything starts."""

import json
from pathlib import Path

import pytest

from dataplane.errors import InputError
from emulator.job import JobRequest, build_job
from traffic_profiles.profiles import generate


def refused(request: JobRequest) -> str:
    with pytest.raises(InputError) as caught:
        build_job(request)
    return str(caught.value)


def test_the_default_profile_has_a_rank_for_every_nic() -> None:
    job = build_job(JobRequest(lab="loopback-clos"))
    assert [program.rank for program in job.programs] == list(range(8))
    assert job.run_info["profile"] == "moe-training"
    assert set(job.compiled.instances["kind"]) == {"all_reduce", "all_to_all"}


def test_a_trace_directory_is_recorded_file_by_file(tmp_path: Path) -> None:
    generate("all-reduce", tmp_path, ranks=4)
    job = build_job(JobRequest(lab="loopback-clos", trace=tmp_path))
    files = job.run_info["trace_files"]
    assert [file["rank"] for file in files] == [0, 1, 2, 3]
    assert all(len(file["sha256"]) == 64 and file["nodes"] > 0 for file in files)
    assert job.run_info["trace"] == str(tmp_path)
    assert job.run_info["profile"] is None


def test_what_is_recorded_is_json_and_complete_enough_to_repeat_the_job() -> None:
    overrides = ("ecn.kmin_bytes=1000", "control.broker=mqtt://user:secret@127.0.0.1:1883")
    job = build_job(JobRequest(lab="loopback-clos", overrides=overrides, seed=7))
    text = json.dumps(job.run_info)
    assert job.run_info["seed"] == 7
    assert job.run_info["settings"]["switches.ecn"]["kmin_bytes"] == [1000, "lab file"]
    assert job.run_info["lab_resolved"]["switches"]["ecn"]["kmin_bytes"] == 1000
    assert "secret" not in text


def test_the_same_request_gives_the_same_job() -> None:
    first, second = (build_job(JobRequest(lab="loopback-clos", seed=3)) for _ in range(2))
    assert first.config_json == second.config_json
    for one, other in zip(first.programs, second.programs, strict=True):
        assert (one.size_bytes == other.size_bytes).all()
        assert (one.deps == other.deps).all()


def test_a_lab_rule_chooses_the_algorithm() -> None:
    rule = "collectives.rules=[{collective: all_reduce, algorithm: halving_doubling}]"
    job = build_job(JobRequest(lab="loopback-clos", overrides=(rule,)))
    reduces = job.compiled.instances.filter(job.compiled.instances["kind"] == "all_reduce")
    assert set(reduces["algorithm"]) == {"halving_doubling"}


def test_parameters_of_a_profile_follow_its_name() -> None:
    job = build_job(JobRequest(lab="loopback-clos", profile="moe-training,layers=2"))
    assert job.run_info["profile_parameters"]["layers"] == 2


def test_a_shuffled_placement_moves_ranks_by_the_seed_and_keeps_every_one() -> None:
    request = JobRequest(lab="loopback-clos", overrides=("placement.order=shuffled",), seed=5)
    ranks = [nic["rank"] for nic in build_job(request).config["nics"]]
    assert sorted(ranks) == list(range(8))
    assert ranks != list(range(8))


def test_listed_nics_carry_the_first_ranks() -> None:
    request = JobRequest(lab="loopback-clos", overrides=("placement.nics=[host4, host0]",))
    nics = {nic["name"]: nic["rank"] for nic in build_job(request).config["nics"]}
    assert (nics["host4"], nics["host0"]) == (0, 1)
    assert sorted(nics.values()) == list(range(8))


def test_a_compute_scale_of_zero_leaves_communication_only() -> None:
    job = build_job(JobRequest(lab="loopback-clos", compute_scale=0.0))
    assert all(int(program.duration_ps.sum()) == 0 for program in job.programs)
    assert job.run_info["compute_scale"] == 0


def test_more_ranks_than_nics_are_refused(tmp_path: Path) -> None:
    generate("all-reduce", tmp_path, ranks=5)
    said = refused(JobRequest(lab="explicit-example", trace=tmp_path))
    assert "has 4 NICs" in said
    assert "has 5 ranks" in said


@pytest.mark.parametrize(
    ("profile", "said"),
    [
        ("moe", "there is no profile 'moe'"),
        ("moe-training,layers", "no KEY=VALUE form"),
        ("moe-training,layers=x", "not a number"),
    ],
)
def test_a_wrong_profile_is_refused(profile: str, said: str) -> None:
    assert said in refused(JobRequest(lab="loopback-clos", profile=profile))


def test_a_profile_of_too_many_operations_is_refused_by_its_name() -> None:
    said = refused(JobRequest("loopback-clos", profile="moe-training,layers=3", iterations=10**6))
    assert said.startswith("profile moe-training,layers=3: the programs would have ")


def test_a_missing_trace_directory_is_refused(tmp_path: Path) -> None:
    said = refused(JobRequest(lab="loopback-clos", trace=tmp_path / "none"))
    assert str(tmp_path / "none") in said


def test_a_job_carries_the_doctors_warnings_about_its_network() -> None:
    """A record must say by itself that its setting is one that the field knows to fail."""
    request = JobRequest(
        lab="incast-8",
        overrides=["dcqcn.min_rate_bps=1000000", "traffic_classes.data_ecn_capable=false"],
        profile="incast,size_bytes=1000,repeats=1",
    )
    warnings = "\n".join(build_job(request).run_info["warnings"])
    assert "the minimum rate can still be marked" in warnings
    assert "data packets are ECN-capable" in warnings


def test_a_wise_lab_adds_no_warning_of_the_doctor() -> None:
    request = JobRequest(lab="incast-8", profile="incast,size_bytes=1000,repeats=1")
    assert not any("it does not hold" in text for text in build_job(request).run_info["warnings"])
