"""Records and exporter with the real engine: what is measured agrees with theory and itself."""

from pathlib import Path

import numpy as np
import pytest

import dataplane
from emulator.job import Job, JobRequest, build_job
from emulator.predict import predict
from metrics.compare import compare
from metrics.exporter import Exporter
from metrics.records import RunRecords, verify_bytes, write_records
from tests.metrics.test_exporter import page, value


def job(lab: str, profile: str) -> Job:
    return build_job(JobRequest(lab=lab, profile=profile))


def recorded(work: Job, directory: Path) -> RunRecords:
    """Predict a job and write its records."""
    return write_records(
        directory,
        run=work.run_info,
        programs=work.programs,
        instances=work.compiled.instances,
        config=work.config,
        engine=predict(work),
        row_names=work.row_names,
        lanes=work.compiled.lanes,
    )


@pytest.mark.parametrize("profile", ["all-reduce", "all-to-all", "permutation"])
def test_what_nothing_disturbs_is_within_one_per_cent_of_the_ideal(
    tmp_path: Path, profile: str
) -> None:
    """One switch, no sharing of queues: the closed form holds, and nothing beats it."""
    records = recorded(job("single-switch", profile), tmp_path)
    verify_bytes(records)
    ratios = records.collectives["ideal_ratio"].to_numpy()
    assert ratios.min() > 0.99
    assert ratios.max() <= 1.0
    assert records.flows["slowdown"].to_numpy().min() >= 1.0
    assert records.links["utilisation_ratio"].to_numpy().max() <= 1.0


def test_the_timeline_and_the_flows_lie_inside_the_run(tmp_path: Path) -> None:
    """Nothing starts before 0 or ends after the end; arrivals lie before acknowledgements."""
    records = recorded(job("loopback-clos", "moe-training"), tmp_path)
    end_ns = records.run["emulated_ns"]
    for table in (records.timeline, records.flows, records.collectives):
        assert table["start_ns"].to_numpy().min() >= 0
        assert table["end_ns"].to_numpy().max() <= end_ns
    assert records.links["tx_bytes"].sum() > 2 * records.flows["size_bytes"].sum()


def test_a_prediction_repeated_is_the_same(tmp_path: Path) -> None:
    """Same job, same seed: no error at all."""
    work = job("loopback-clos", "moe-training")
    result = compare(recorded(work, tmp_path / "a"), recorded(work, tmp_path / "b"))
    assert result.agrees
    assert {row["worst_error_ratio"] for row in result.errors} == {0.0}
    assert result.totals[0] == result.totals[1]
    assert not result.differing


def test_the_exporter_ends_with_what_the_records_say(tmp_path: Path) -> None:
    """Fed step by step, it has the records' counts, bytes and completion times at the end."""
    work = job("loopback-clos", "moe-training")
    engine = dataplane.Emulation(work.config_json, work.native_programs())
    exporter = Exporter(
        0, config=work.config, programs=work.programs, instances=work.compiled.instances
    )
    try:
        done = False
        while not done:
            done = engine.advance(None, 50_000)
            exporter.update(engine.snapshot(), engine.completed())
        text = page(exporter)
    finally:
        exporter.close()
    records = write_records(
        tmp_path,
        run={},
        programs=work.programs,
        instances=work.compiled.instances,
        config=work.config,
        engine=engine.records(),
    )
    assert value(text, "rankwire_operations_completed_total") == records.run["ops_total"]
    sent = sum(
        float(line.rsplit(" ", 1)[1]) for line in lines(text, "link_transmitted_bytes_total")
    )
    assert sent == records.links["tx_bytes"].sum()
    marks = lines(text, "queue_ecn_marked_packets_total")
    assert sum(float(line.rsplit(" ", 1)[1]) for line in marks) == (
        records.queues["marked_packets"].sum()
    )
    (median,) = [
        line
        for line in lines(text, "collective_completion_time_exact_seconds")
        if 'kind="all_to_all",quantile="0.5"' in line
    ]
    times = np.sort(records.collectives.filter(kind="all_to_all")["completion_time_ns"].to_numpy())
    assert float(median.rsplit(" ", 1)[1]) * 1e9 == pytest.approx(times[7], abs=1)


def lines(text: str, stem: str) -> list[str]:
    """The lines of one series."""
    return [line for line in text.splitlines() if line.startswith(f"rankwire_{stem}{{")]
