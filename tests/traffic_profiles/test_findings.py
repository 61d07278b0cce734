"""What binding counts, and says in words."""

from tests.conftest import REPOSITORY
from traffic_profiles.chakra import NodeType
from traffic_profiles.findings import SENTENCES


def kernel(builder, name, **attributes):
    """Add a device computation."""
    attributes = {"is_cpu_op": False} | attributes
    builder.add(name, NodeType.COMP, duration_us=1, attributes=attributes)


def test_kernels_that_look_like_communication_are_counted(job):
    """A library whose kernel names hide type and size: the traffic is missing from the trace."""
    made = job(1)
    for name in ("ncclDevKernel_Generic", "RCCL_kernel", "ncc", "gemm_nccl"):
        kernel(made.ranks[0], name)
    kernel(made.ranks[0], "nccl:all_reduce", is_cpu_op=True)
    report = made.bind().report
    assert report.counts["untyped_communication_kernels"] == 2
    sentence = "communication kernels have no type or size and were taken as delays (2)"
    assert sentence in report.warnings


def test_only_what_occurs_is_said(job):
    """A clean job has nothing to report but what it is."""
    made = job(2)
    for builder in made.ranks:
        builder.process_groups({"w": []}, world_size=2)
        builder.collective("x", 0, 8, group="w")
    assert made.bind().report.warnings == []


def test_a_job_without_communication_says_so(job):
    """It runs, and measures nothing."""
    made = job(1)
    made.ranks[0].compute("c", 1)
    assert made.bind().report.counts["jobs_without_communication"] == 1


def test_the_manual_explains_every_count():
    """`docs/traces.md` has a row for each, in the same words."""
    manual = (REPOSITORY / "docs" / "traces.md").read_text(encoding="utf-8")
    for name, sentence in SENTENCES.items():
        assert f"| `{name}` | {sentence.format(count='N')} |" in manual
