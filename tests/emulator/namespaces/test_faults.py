"""Links that are pulled while a job runs over them, with real packets."""

import threading
import time

import pytest

from emulator.control.outcome import Progress, RunFailed
from emulator.controller import run
from emulator.job import Job, JobRequest, build_job
from emulator.namespaces import Layout, set_link
from tests.emulator.namespaces.labs import lab_up, needs_root

pytestmark = [pytest.mark.slow, pytest.mark.privileged, needs_root]

DILATION = "time_dilation=2000"
QUICK_TO_GIVE_UP = ("transport.retransmission_timeout_ns=200000", "transport.retry_count=2")


def job_on(layout: Layout, *overrides: str) -> Job:
    """An all-to-all in the lab that is up, some seconds long."""
    given = (f"name={layout.lab}", DILATION, *overrides)
    return build_job(
        JobRequest(lab="netns-clos", size_scale=0.3, overrides=given, profile="all-to-all")
    )


class AtFirstProgress:
    """Does something once, as soon as a run has begun to complete operations."""

    def __init__(self, *links: str, job: Job, plugs_in: bool) -> None:
        self._links, self._job, self._plugs_in = links, job, plugs_in
        self._thread = threading.Thread(target=self._pull)

    def __call__(self, progress: Progress) -> None:
        """Called some times a second, with how far the run is."""
        if progress.phase == "running" and not self._thread.is_alive() and not self.has_pulled:
            self._thread.start()

    @property
    def has_pulled(self) -> bool:
        """Whether it came to that."""
        return self._thread.ident is not None

    def _pull(self) -> None:
        for link in self._links:
            set_link(self._job.loaded, link, is_up=False, reroutes=False)
        if self._plugs_in:
            time.sleep(0.3)
            for link in self._links:
                set_link(self._job.loaded, link, is_up=True)


def test_a_job_recovers_from_a_pulled_link_by_retransmission() -> None:
    """Both links of a leaf to a spine: half of the flows lose what was on the way."""
    with lab_up(DILATION) as layout:
        job = job_on(layout)
        pulling = AtFirstProgress("leaf0-spine0.0", "leaf0-spine0.1", job=job, plugs_in=True)
        records = run(job, on_progress=pulling)
    assert pulling.has_pulled
    nics = records["counters"]["nics"]
    assert nics["retransmitted_packets"].sum() > 0
    sent_once = nics["data_payload_bytes_sent"] - nics["data_payload_bytes_retransmitted"]
    assert sent_once.sum() == nics["data_payload_bytes_received"].sum()
    never = 2**64 - 1
    assert (records["ops"]["end_ps"] != never).all()


def test_a_host_that_is_cut_off_ends_the_run_with_who_waits_for_whom() -> None:
    with lab_up(DILATION) as layout:
        job = job_on(layout, *QUICK_TO_GIVE_UP)
        pulling = AtFirstProgress("host3-leaf0", job=job, plugs_in=False)
        with pytest.raises(RunFailed) as caught:
            run(job, on_progress=pulling, stall_timeout_s=2)
    assert pulling.has_pulled
    assert "to rank 3 on host3" in str(caught.value)
    assert "no acknowledgement after all retries" in str(caught.value)
    assert caught.value.records is not None
