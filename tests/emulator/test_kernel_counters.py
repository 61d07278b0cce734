"""A run in a lab of namespaces keeps what the kernel counted, also when it fails."""

import pytest

from emulator.control.outcome import EngineRecords, RunFailed
from emulator.kernel_counters import with_kernel_counters
from emulator.lab import load
from tests.emulator.namespaces.labs import lab_up, needs_root, udp_socket


def test_other_labs_have_no_such_counters() -> None:
    records: EngineRecords = {"counters": {"nics": {}}}
    assert with_kernel_counters(load("loopback-clos"), lambda: records) is records


@pytest.mark.privileged
@needs_root
def test_what_the_kernel_counted_stands_beside_what_the_engine_did() -> None:
    with lab_up() as layout:
        loaded = load("netns-clos", [f"name={layout.lab}"])
        sender = udp_socket(layout, "host0")

        def run() -> EngineRecords:
            for _ in range(10):
                sender.sendto(bytes(100), (layout.hosts["host1"].address, 4791))
            return {"counters": {"nics": {"tx_packets": [10]}}}

        def fail() -> EngineRecords:
            failure = RunFailed("stalled")
            failure.records = run()
            raise failure

        kernel = with_kernel_counters(loaded, run)["counters"]["kernel"]
        with pytest.raises(RunFailed) as caught:
            with_kernel_counters(loaded, fail)
        sender.close()
    sent = dict(zip(zip(kernel["node"], kernel["port"], strict=True), kernel["tx_packets"],
                    strict=True))  # fmt: skip
    assert (sent["host0", 0], sent["leaf0", 1]) == (10, 10)
    assert caught.value.records is not None
    again = caught.value.records["counters"]
    assert again["nics"] == {"tx_packets": [10]}
    assert again["kernel"]["tx_packets"][0] == 10
