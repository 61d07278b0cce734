"""Runs whose network is real: NICs on interfaces of the operating system, switches of nobody's."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from dataplane.errors import InputError
from emulator.cli import main
from emulator.control.outcome import ControlReport
from emulator.controller import plan_run, run
from emulator.job import Job, JobRequest, build_job
from emulator.lab import load
from emulator.namespaces import counters, difference, lay_out
from emulator.namespaces.state import is_up
from emulator.ports import port_descriptions
from metrics.records import load as load_records
from tests.emulator.namespaces.labs import lab_up, needs_root

LOOPBACK: dict[str, Any] = {
    "name": "udp-on-loopback",
    "topology": {
        "kind": "explicit",
        "nics": [{"name": f"n{rank}", "address": f"127.83.0.{rank + 1}"} for rank in range(4)],
        "switches": [{"name": "s0", "ports": 4}],
        "links": [{"ends": [f"n{rank}", f"s0:{rank}"], "rate_gbps": 100} for rank in range(4)],
    },
    "driver": "udp",
    "agents": {"count": 2},
    "time_dilation": 1000,
    "default_profile": "all-to-all",
}
"""Four NICs on loopback addresses: no privilege, no namespace."""

SMALL = ("--size-scale", "0.01", "--quiet")


def lab_file(directory: Path, **changes: Any) -> str:
    """Write the loopback lab with changes; returns its path."""
    path = directory / "lab.yaml"
    path.write_text(yaml.safe_dump(LOOPBACK | changes), encoding="utf-8")
    return str(path)


def small_job(lab: str, *overrides: str) -> Job:
    return build_job(JobRequest(lab=lab, size_scale=0.01, overrides=overrides))


def totals(table: dict[str, Any]) -> dict[str, int]:
    return {name: int(sum(values)) for name, values in table.items() if name != "nic"}


def expect_all_arrived(records: Any, sent_packets: int) -> None:
    """Every frame that a NIC sent is one that a port received, whole and valid."""
    ports = totals(records["ports"])
    assert ports["frames_sent"] == ports["frames_received"] == sent_packets
    assert ports["bytes_sent"] == ports["bytes_received"]
    troubles = (
        *("decode_errors", "icrc_errors", "unexpected_sources", "misaddressed", "send_errors"),
        "untimed_frames",
    )
    assert {name: ports[name] for name in troubles} == dict.fromkeys(troubles, 0)


@pytest.mark.slow
def test_a_job_runs_over_udp_without_any_privilege(tmp_path: Path) -> None:
    """From the lab file to the report; its switch is carried by nobody."""
    out = tmp_path / "run"
    assert main(["run", lab_file(tmp_path), *SMALL, "--out", str(out)]) == 0
    ran = load_records(out).run
    assert ran["ops_done"] == ran["ops_total"] > 0
    assert ran["byte_conservation"]["holds"]
    expect_all_arrived(ran["counters"], sum(ran["counters"]["nics"]["tx_packets"]))
    assert "wires" not in ran["counters"]
    assert ran["ports"]["n0"] | {"max_frame_bytes": 0} == {
        "driver": "udp",
        "interface": "",
        "max_frame_bytes": 0,
        "max_burst_packets": 64,
        "has_segmentation": True,
        "has_coalescing": True,
        "has_ecn": True,
        "carries_ethernet_header": False,
        "has_identification": False,
        "invariant_crc": "sender",
        "timestamps": "kernel",
        "queues": 0,
        "xdp_mode": "",
        "has_zero_copy": False,
    }
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "<h3>Ports</h3>" in page
    assert "<h3>What the ports can do</h3>" in page


@pytest.mark.slow
@pytest.mark.privileged
@needs_root
@pytest.mark.parametrize("driver", ["udp", "af_packet", "af_xdp"])
def test_a_job_runs_between_namespaces_and_the_kernel_counts_the_same(driver: str) -> None:
    """Interfaces of the hosts counted the bytes that the ports did.

    With an XDP program in its driver, veth counts what comes without the Ethernet header.
    """
    with lab_up("time_dilation=2000") as layout:
        overrides = (f"name={layout.lab}", "time_dilation=2000", f"driver={driver}")
        job = small_job("netns-clos", *overrides)
        before = counters(layout)
        reports: list[ControlReport] = []
        records = run(job, on_report=reports.append)
        counted = difference(before, counters(layout))
    told = reports[0].ports
    assert set(told) == {f"host{n}" for n in range(8)}
    assert {(port["driver"], port["timestamps"]) for port in told.values()} == {(driver, "kernel")}
    modes = {port["xdp_mode"] for port in told.values()}
    assert modes == {"native" if driver == "af_xdp" else ""}
    nics = records["counters"]["nics"]
    expect_all_arrived(records["counters"], int(nics["tx_packets"].sum()))
    kernel = {port.node: port for port in counted if not port.is_switch}
    ports = records["counters"]["ports"]
    uncounted = 14 if driver == "af_xdp" else 0
    for index, nic in enumerate(job.config["nics"]):
        seen = kernel[nic["name"]]
        rx_bytes = seen.rx_bytes + uncounted * seen.rx_packets
        assert (seen.tx_bytes, seen.tx_packets, rx_bytes, seen.rx_packets) == tuple(
            int(ports[name][index])
            for name in ("bytes_sent", "frames_sent", "bytes_received", "frames_received")
        )


def test_a_lab_of_namespaces_has_to_be_up() -> None:
    """Said before anything starts."""
    job = small_job("netns-clos", "name=test-never-up")
    assert not is_up(lay_out(job.loaded))
    with pytest.raises(InputError, match=r"is not up.*rankwire lab up netns-clos"):
        plan_run(job, join_timeout_s=1, stall_timeout_s=1)


def test_agents_carry_the_nics_and_nobody_the_switches(tmp_path: Path) -> None:
    """Spawned agents on loopback need no more than the default limits."""
    plan = plan_run(small_job(lab_file(tmp_path)), join_timeout_s=1, stall_timeout_s=1)
    assert plan.agents == {"agent-0": ["n0", "n1"], "agent-1": ["n2", "n3"]}
    assert plan.agent_limits == {"agent-0": {}, "agent-1": {}}
    ports = plan.document("agent-1").ports
    assert ports is not None
    assert {name: port["address"] for name, port in ports.items()} == {
        "n2": "127.83.0.3",
        "n3": "127.83.0.4",
    }


@pytest.mark.privileged
@needs_root
def test_spawned_agents_may_use_their_own_namespaces_up_to_their_rate() -> None:
    """And nothing else: their files say so."""
    with lab_up() as layout:
        job = small_job("netns-clos", f"name={layout.lab}", "agents.count=8")
        limits = plan_run(job, join_timeout_s=1, stall_timeout_s=1).agent_limits
    assert limits["agent-3"] == {
        "allowed_prefixes": ["127.0.0.0/8", "198.18.0.0/15"],
        "interfaces": [f"rw-{layout.lab}-host3/eth0"],
        "rate_cap_bps": 100_000_000,
    }


def interfaces(**last: Any) -> dict[str, Any]:
    places = {f"n{n}": {"address": f"192.0.2.{n + 1}", "interface": "ens1"} for n in range(4)}
    return places | {"n3": places["n3"] | last}


def test_nics_may_have_drivers_of_their_own(tmp_path: Path) -> None:
    """An RDMA device at one end, the soft endpoint at the other."""
    agents = {"spawn": False, "placement": {"a": ["n0", "n1"], "b": ["n2", "n3"]}}
    mixed = lab_file(
        tmp_path, interfaces=interfaces(driver="verbs"), agents=agents, time_dilation=1
    )
    ports = port_descriptions(load(mixed))
    assert ports is not None
    assert [ports[f"n{n}"]["driver"] for n in range(4)] == ["udp", "udp", "udp", "verbs"]


def test_interfaces_give_nics_their_addresses_on_real_hosts(tmp_path: Path) -> None:
    """Agents with files of their own carry them."""
    agents = {"spawn": False, "placement": {"a": ["n0", "n1"], "b": ["n2", "n3"]}}
    lab = lab_file(tmp_path, interfaces=interfaces(namespace="blue"), agents=agents)
    job = small_job(lab, "control.broker=mqtt://127.0.0.1:1883")
    assert [nic["address"] for nic in job.config["nics"]][3] == "192.0.2.4"
    ports = port_descriptions(job.loaded)
    assert ports is not None
    assert ports["n3"] == {
        "driver": "udp",
        "max_burst_packets": 64,
        "xdp_mode": "any",
        "busy_poll_us": 0,
        "address": "192.0.2.4",
        "interface": "ens1",
        "namespace": "blue",
    }


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"driver": "wire", "interfaces": interfaces()}, "the driver is wire"),
        ({"interfaces": interfaces()}, "a spawned agent sends to loopback and namespaces only"),
        ({"interfaces": {"n9": {}}}, "is no NIC of the topology"),
        ({"interfaces": interfaces(address="192.0.2.1")}, "192.0.2.1, which n0 has"),
        ({"interfaces": interfaces(address="224.0.0.1")}, "the IPv4 address of one host"),
        ({"interfaces": interfaces(interface=None)}, "do not say where n3 is"),
        ({"impairments": [{"links": "*", "loss_ratio": 0.1}]}, "the network is real"),
        ({"interfaces": interfaces(driver="verbs")}, "n3 is an adapter with a rate of its own"),
        (
            {
                "driver": "verbs",
                "interfaces": interfaces(driver="udp", namespace="blue"),
                "transport": {"loss_recovery": "selective_repeat"},
            },
            "but n0 is an RDMA device",
        ),
        ({"interfaces": interfaces(driver="verbs", namespace="blue")}, "ip netns exec"),
        ({"agents": {"placement": {"a": ["n0", "n1", "n2", "n3", "s0"]}}}, "s0, which is no NIC"),
        ({"agents": {"count": 5}}, "the lab has 4 NICs"),
    ],
)
def test_what_is_wrong_with_a_real_network_is_said(
    tmp_path: Path, changes: dict[str, Any], what: str
) -> None:
    """With all other problems of the lab."""
    with pytest.raises(InputError) as caught:
        load(lab_file(tmp_path, **changes))
    assert what in str(caught.value)
