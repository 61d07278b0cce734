"""A prediction ends, is the same every time, conserves bytes, and keeps records when it fails."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dataplane.errors import InputError
from emulator import memory
from emulator.cli import main
from emulator.commands import execution
from emulator.control.outcome import RunFailed, RunInterrupted
from emulator.job import Job, JobRequest, build_job
from emulator.predict import predict
from emulator.progress import ProgressPoint
from metrics.records import load


@pytest.fixture(scope="module")
def demo() -> Job:
    return build_job(JobRequest(lab="loopback-clos"))


def test_the_same_seed_gives_the_same_records_bit_for_bit(demo: Job) -> None:
    first, second = predict(demo), predict(demo)
    for table in ("ops", "links", "queues", "qps"):
        for name, column in first[table].items():
            np.testing.assert_array_equal(column, second[table][name], f"{table}.{name}")


def test_another_seed_takes_other_paths() -> None:
    request = JobRequest(lab="loopback-clos", profile="all-to-all")
    ends = [
        predict(build_job(JobRequest(**(_fields(request) | {"seed": seed}))))["ops"]["end_ps"]
        for seed in (1, 2)
    ]
    assert not np.array_equal(ends[0], ends[1])


def _fields(request: JobRequest) -> dict[str, Any]:
    return {name: getattr(request, name) for name in JobRequest.__dataclass_fields__}


def test_progress_counts_up_to_all_operations(demo: Job) -> None:
    points: list[ProgressPoint] = []
    predict(demo, on_progress=points.append)
    done = [point.operations_done for point in points]
    assert done == sorted(done)
    assert points[-1].operations_done == points[-1].operations_total > 0


def test_a_job_larger_than_the_memory_is_refused_with_the_number(
    demo: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory, "available_bytes", lambda: 2**20)
    with pytest.raises(InputError, match=r"needs about \d+\.\d GiB, 0\.0 GiB are available"):
        predict(demo)


def test_ctrl_c_keeps_the_records_so_far(demo: Job) -> None:
    def interrupt(_point: ProgressPoint) -> None:
        raise KeyboardInterrupt

    with pytest.raises(RunInterrupted) as caught:
        predict(demo, on_progress=interrupt)
    assert caught.value.records is not None
    assert len(caught.value.records["ops"]["op"]) == sum(map(len, demo.programs))


def test_a_job_that_can_t_go_on_names_ranks_nodes_and_peers() -> None:
    """Nothing is acknowledged within a nanosecond-sized timeout: queue pairs fail, the job ends."""
    overrides = ("transport.retransmission_timeout_ns=1000", "transport.retry_count=0")
    job = build_job(JobRequest(lab="loopback-clos", overrides=overrides))
    with pytest.raises(RunFailed, match=r"stalled at .*rank \d (send|recv) with rank \d") as caught:
        predict(job)
    assert caught.value.records is not None


Predicted = Callable[..., tuple[int, Path]]


@pytest.fixture
def predicted(tmp_path: Path) -> Predicted:
    """Run the command and return its exit status and the run directory."""

    def run(*arguments: str) -> tuple[int, Path]:
        out = tmp_path / "run"
        return main(["predict", *arguments, "--out", str(out), "--quiet"]), out

    return run


def test_messages_as_nccl_cuts_them_carry_the_same_bytes(predicted: Predicted) -> None:
    """16 MiB around 8 ranks: 14 steps of 2 MiB in 2 slices; even so no faster than the ideal."""
    change = ("--set", "collectives.messages=nccl")
    status, out = predicted("loopback-clos", "--profile", "all-reduce,repeats=1", *change)
    assert status == 0
    records = load(out)
    assert records.run["byte_conservation"]["holds"]
    assert records.flows["size_bytes"].unique().to_list() == [2**20]
    assert len(records.flows) == 8 * 14 * 2
    assert records.collectives["ideal_ratio"][0] <= 1


def test_each_channel_has_a_queue_pair_of_its_own() -> None:
    """2 channels: of 4 queue pairs to a peer two are used; a channel's slices keep to one."""
    overrides = (
        "collectives.messages=nccl", "transport.qps_per_peer=4", "transport.qp_distribution=channel"
    )  # fmt: skip
    request = JobRequest("loopback-clos", overrides, profile="all-reduce,repeats=1")
    qps = predict(build_job(request))["qps"]
    assert len(set(zip(qps["source_rank"], qps["qp"], strict=True))) == 8 * 2


@pytest.mark.parametrize("distribution", ["round_robin", "split"])
def test_clear_to_send_messages_are_no_bytes_of_a_collective(
    predicted: Predicted, distribution: str
) -> None:
    """One for each message; bytes are conserved, and the clear-to-send messages counted apart."""
    settings = ("clear_to_send=true", "qps_per_peer=4", f"qp_distribution={distribution}")
    changes = [part for setting in settings for part in ("--set", f"transport.{setting}")]
    status, out = predicted("loopback-clos", "--profile", "all-to-all,repeats=1", *changes)
    assert status == 0
    records = load(out)
    check = records.run["byte_conservation"]
    assert check["complete"]
    assert check["holds"]
    assert check["clear_to_send_messages"] == len(records.flows)
    assert check["nic_received_bytes"] == records.flows["size_bytes"].sum()


def test_the_command_writes_records_and_report_and_names_them(
    predicted: Predicted, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out = predicted("loopback-clos")
    told = capsys.readouterr().out
    assert status == 0
    assert f"report:  {out / 'report.html'}" in told
    assert "all-reduce" in told
    run = load(out).run
    assert run["command"] == "predict"
    assert run["ops_done"] == run["ops_total"]
    assert run["byte_conservation"]["holds"]


def test_json_is_one_object_on_stdout(
    predicted: Predicted, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out = predicted("single-switch", "--json")
    document = json.loads(capsys.readouterr().out)
    assert status == 0
    assert document["directory"] == str(out)
    assert {row["kind"] for row in document["collectives"]} == {"all_reduce", "all_to_all"}
    assert all(row["incomplete"] == 0 for row in document["collectives"])


def test_a_failed_prediction_is_exit_status_1_and_keeps_its_records(
    predicted: Predicted, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out = predicted(
        "loopback-clos",
        "--set=transport.retransmission_timeout_ns=1000",
        "--set=transport.retry_count=0",
    )
    told = capsys.readouterr().err
    assert status == 1
    assert "stalled" in told
    assert f"records so far: {out}" in told
    assert load(out).run["outcome"].startswith("stalled")


def test_an_interrupted_prediction_is_exit_status_130(
    predicted: Predicted, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Interrupting(execution.ProgressDisplay):
        def update(self, point: ProgressPoint) -> None:
            if point.phase == "predicting":
                raise KeyboardInterrupt

    monkeypatch.setattr(execution, "ProgressDisplay", Interrupting)
    status, out = predicted("loopback-clos")
    assert status == 130
    assert load(out).run["outcome"] == "interrupted"


def test_a_second_prediction_into_the_same_directory_is_refused(predicted: Predicted) -> None:
    assert predicted("loopback-clos")[0] == 0
    assert predicted("loopback-clos")[0] == 2
