"""The sets of traces over real interfaces: a routed Clos of namespaces, every driver of one host.

Every set runs over `udp`; those that take seconds also over `af_packet` and `af_xdp`.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from emulator.commands.execution import run_document, store
from emulator.controller import run
from emulator.kernel_counters import with_kernel_counters
from emulator.namespaces import Layout
from metrics.records import verify_bytes
from metrics.report import write_report
from tests.emulator.namespaces.labs import lab_up, needs_root
from tests.end_to_end.trace_sets import SETS, TraceSet, assert_bytes_conserved, assert_complete

pytestmark = [pytest.mark.slow, pytest.mark.privileged, needs_root]

DILATION = 2000
"""200 Mb/s for each NIC."""
SHORTER = {
    "megatron_tp8": {"size_scale": 0.0005, "compute_scale": 0.0005},
    "sizes_above_4_gib": {"size_scale": 0.0001, "compute_scale": 0.001},
}
"""Scales at which a set takes a second or two."""
OVER_RAW_FRAMES = ("stage_dp2tp2pp2", "sizes_above_4_gib")


def in_namespaces(name: str) -> TraceSet:
    """The set as it is run here."""
    known = SETS[name]
    return replace(known, dilation=DILATION, shortened=SHORTER.get(name, known.shortened))


@pytest.fixture(scope="module")
def eight_hosts() -> Iterator[Layout]:
    with lab_up(f"time_dilation={DILATION}") as layout:
        yield layout


def expect_a_complete_run(
    traces: Path, out: Path, layout: Layout, trace_set: TraceSet, driver: str
) -> None:
    """Run to the report, and hold order, bytes, and what the kernel counted."""
    overrides = (f"name={layout.lab}", f"driver={driver}")
    job = trace_set.job(traces, lab="netns-clos", overrides=overrides, **trace_set.shortened)
    engine = with_kernel_counters(job.loaded, lambda: run(job))
    assert_complete(job, engine["ops"])
    assert_bytes_conserved(job, engine)
    facts = {"outcome": "complete", "wall_seconds": 0.0, "started_at": ""}
    verify_bytes(store(out, job, engine, run_document(job, "run", facts)))
    page = write_report(out).read_text(encoding="utf-8")
    counted = page[page.index("Bytes of all hosts: ") :].split("</p>")[0]
    assert counted.count("by the drivers: the same") == 2, counted


@pytest.mark.parametrize("name", [name for name in SETS if SETS[name].ranks <= 8])
def test_every_set_runs_over_udp(
    name: str, sample_traces: Path, eight_hosts: Layout, tmp_path: Path
) -> None:
    expect_a_complete_run(sample_traces, tmp_path, eight_hosts, in_namespaces(name), "udp")


@pytest.mark.parametrize("driver", ["af_packet", "af_xdp"])
@pytest.mark.parametrize("name", OVER_RAW_FRAMES)
def test_small_sets_run_over_whole_frames(
    name: str, driver: str, sample_traces: Path, eight_hosts: Layout, tmp_path: Path
) -> None:
    expect_a_complete_run(sample_traces, tmp_path, eight_hosts, in_namespaces(name), driver)


def test_sixteen_ranks_run_on_sixteen_hosts(sample_traces: Path, tmp_path: Path) -> None:
    trace_set = in_namespaces("all_to_all_16")
    with lab_up(*trace_set.overrides) as layout:
        expect_a_complete_run(sample_traces, tmp_path, layout, trace_set, "udp")
