"""Whether a prediction fits this machine's memory, before it begins."""

from pathlib import Path

from dataplane.errors import InputError, Problem
from emulator.job import Job

__all__ = ["available_bytes", "check_memory", "needed_bytes"]

_ENGINE_PER_PROGRAM_BYTE = 2
"""The engine's copy of a program with its state and records; measured, rounded up."""
_QUEUE_PAIR_BYTES = 8_192
"""Both halves of a connection at both ends with timers and congestion control; measured."""
_FLOW_BYTES = 900
"""A connection as a flow, with its places on links; measured, rounded up."""
_SAMPLE_BYTES = 30
"""One sample of a link, queue or queue pair, idle ones counted in; measured, rounded up."""
_BUSY_PRIORITIES = 2
"""Queues per port that ever hold something: data and notifications."""
_MOST_SAMPLED_QPS = 4096
_FLOW_LINK_BYTES = 80
"""One flow on one link: its entry in a table that is half full."""
_LINKS_PER_QP = 12
"""Links that data and acknowledgements of a queue pair cross in a three-tier fabric."""


def check_memory(job: Job) -> None:
    """Raise `InputError` when the job needs more memory than there is."""
    needed, available = needed_bytes(job), available_bytes()
    if available is not None and needed > available:
        what = f"needs about {needed / 2**30:.1f} GiB, {available / 2**30:.1f} GiB are available"
        remedy = "use fewer --iterations, a smaller trace, or a smaller telemetry.max_samples"
        if job.request.model == "packets":
            remedy += ", or predict with --model fluid, which needs less"
        raise InputError(Problem(str(job.loaded.path), what, remedy, "memory of the prediction"))


def needed_bytes(job: Job) -> int:
    """Estimate of what the engine takes beside the programs that exist already."""
    programs = sum(program.nbytes for program in job.programs)
    pairs = sum(len(set(program.peer.tolist())) for program in job.programs)
    qps = pairs * job.lab.transport.qps_per_peer
    ports = 2 * len(job.loaded.fabric.links)
    if job.request.model == "fluid":
        samples = ports * job.lab.telemetry.max_samples * _SAMPLE_BYTES
        return _ENGINE_PER_PROGRAM_BYTE * programs + qps * _FLOW_BYTES + samples
    series = ports * (1 + _BUSY_PRIORITIES) + min(qps, _MOST_SAMPLED_QPS)
    samples = series * job.lab.telemetry.max_samples * _SAMPLE_BYTES
    flows = qps * _LINKS_PER_QP * _FLOW_LINK_BYTES if job.lab.telemetry.flow_paths else 0
    return _ENGINE_PER_PROGRAM_BYTE * programs + qps * _QUEUE_PAIR_BYTES + samples + flows


def available_bytes() -> int | None:
    """Memory that a new process may take, within the control group's limit; `None`: unknown."""
    known = [value for value in (_free_bytes(), _group_bytes()) if value is not None]
    return min(known) if known else None


def _free_bytes() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _group_bytes() -> int | None:
    """What is left under the limit of this control group (version 2)."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        used = int((group / "memory.current").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return None if limit == "max" else max(int(limit) - used, 0)
