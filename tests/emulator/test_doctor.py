"""The doctor tells what a lab that loads will still do wrong."""

from pathlib import Path

import pytest

from emulator.doctor import Level, diagnose
from emulator.lab import list_labs, load


def levels(lab: str, *overrides: str) -> dict[str, Level]:
    return {item.rule: item.level for item in diagnose(load(lab, overrides))}


@pytest.mark.parametrize("name", sorted(list_labs()))
def test_no_shipped_lab_has_anything_wrong(name: str) -> None:
    # A broker of somebody's own is not here.
    assert Level.WRONG not in levels(name, "control.broker=embedded").values()


def test_a_lab_whose_agents_run_elsewhere_says_nothing_of_this_machine() -> None:
    rules = levels("connectx-8", "control.broker=embedded")
    assert not {"the time dilation fits this machine", "every agent has a processor"} & set(rules)


@pytest.mark.parametrize(
    ("override", "rule", "level"),
    [
        ("traffic_classes.data_ecn_capable=false", "data packets are ECN-capable", Level.WRONG),
        ("ecn.priorities=[0]", "the priority of data is marked", Level.WRONG),
        ("ecn.drops_not_ect=true", "packets of data are marked rather than dropped", Level.GOOD),
        ("traffic_classes.cnp={dscp: 26, priority: 3}", "notifications are never paused", 2),
        ("switches.strict_priorities=[]", "notifications go first", Level.WARNING),
        ("pfc.priorities=[4]", "the DSCP of data is lossless in the fabric", Level.WARNING),
        ("ecn={kmin_bytes: 4000000, kmax_bytes: 5000000}", "marking begins before pausing", 2),
        ("pfc.headroom_bytes=1000", "headroom holds what is in flight", Level.WRONG),
        ("pfc.xon_offset_bytes=100", "resuming is two packets below pausing", Level.WARNING),
        ("dcqcn.min_rate_bps=1000000", "the minimum rate can still be marked", Level.WARNING),
        ("dcqcn.min_rate_bps=90000000000", "all senders at their minimum fit one link", 2),
        ("np.enabled=false", "receivers notify", Level.WRONG),
        ("dcqcn.rearms_pacer=false", "a waiting packet takes a changed rate", Level.WARNING),
        ("dcqcn={algorithm: dcqcn, alpha_fraction_bits: 10}", "the estimate can grow to 1", 1),
        ("dcqcn={algorithm: dcqcn, alpha_fraction_bits: 16}", "the estimate can grow to 1", 0),
        ("time_dilation=1", "the time dilation fits this machine", Level.WARNING),
        ("control.broker=mqtt://127.0.0.1:1", "the broker answers", Level.WRONG),
        ("switches.path_selection.mode=packet", "reordering is no loss", Level.WARNING),
        ("switches.path_selection.mode=packet", "reordering is no congestion", Level.WARNING),
        ("congestion_control={algorithm: swift}", "every packet is acknowledged", Level.WARNING),
        ("congestion_control={algorithm: fixed_rate}", "senders react to congestion", 1),
        ("namespaces={}", "the namespaces do what the lab asks for", Level.WARNING),
        ("dcqcn.preset=irdma", "the preset is exact", Level.WARNING),
    ],
)
def test_a_rule_that_doesn_t_hold_is_told(override: str, rule: str, level: Level | int) -> None:
    assert levels("loopback-clos", override)[rule] == Level(level)


def test_packets_that_a_queue_drops_because_it_cannot_mark_them_are_told() -> None:
    classes = "traffic_classes={data_ecn_capable: false, acknowledgement: {ecn_capable: false}}"
    found = levels("loopback-clos", "ecn.drops_not_ect=true", classes)
    for what in ("packets", "acknowledgements"):
        assert found[f"{what} of data are marked rather than dropped"] is Level.WARNING


def test_the_paper_s_alpha_period_must_exceed_the_notification_interval() -> None:
    found = levels("incast-8", "dcqcn.alpha_update_period_ns=40000")
    assert found["alpha decays slower than notifications come"] is Level.WARNING


def test_oversubscription_is_told() -> None:
    found = levels("loopback-clos", "topology.fabric_link.parallel=1")
    assert found["the fabric is non-blocking"] is Level.WARNING


RING = """\
name: ring
topology:
  kind: explicit
  nics: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}]
  switches:
    - {name: s0, ports: 3}
    - {name: s1, ports: 3}
    - {name: s2, ports: 3}
    - {name: s3, ports: 3}
    - {name: s4, ports: 3}
  links:
    - {ends: [a, "s0:0"], rate_gbps: 100}
    - {ends: [b, "s1:0"], rate_gbps: 100}
    - {ends: [c, "s2:0"], rate_gbps: 100}
    - {ends: [d, "s3:0"], rate_gbps: 100}
    - {ends: [e, "s4:0"], rate_gbps: 100}
    - {ends: ["s0:1", "s1:2"], rate_gbps: 100}
    - {ends: ["s1:1", "s2:2"], rate_gbps: 100}
    - {ends: ["s2:1", "s3:2"], rate_gbps: 100}
    - {ends: ["s3:1", "s4:2"], rate_gbps: 100}
"""


def test_a_ring_of_switches_can_deadlock_and_a_line_can_t(tmp_path: Path) -> None:
    path = tmp_path / "ring.yaml"
    path.write_text(RING)
    assert levels(str(path))["pauses can't wait in a circle"] is Level.GOOD
    path.write_text(RING + '    - {ends: ["s4:1", "s0:2"], rate_gbps: 100}\n')
    assert levels(str(path))["pauses can't wait in a circle"] is Level.WARNING


def fabric_of_four_leaves(directory: Path, *without: str, extra: str = "") -> Path:
    """Four leaves with a host each under two spines, without some links by their ends."""
    ends = [(f"h{i}", f"leaf{i}:0") for i in range(4)]
    ends += [(f"leaf{i}:{1 + j}", f"spine{j}:{i}") for i in range(4) for j in range(2)]
    links = [f"[{a!r}, {b!r}]" for a, b in ends if not {a, b} & set(without)]
    lines = "".join(f"    - {{ends: {pair}, rate_gbps: 100}}\n" for pair in links)
    names = ", ".join(f"{{name: h{i}}}" for i in range(4))
    switches = ", ".join(f"{{name: {name}, ports: 8}}" for name in (
        *(f"leaf{i}" for i in range(4)), "spine0", "spine1", *extra.split()))  # fmt: skip
    path = directory / "lab.yaml"
    path.write_text(
        f"name: four\ntopology:\n  kind: explicit\n  nics: [{names}]\n"
        f"  switches: [{switches}]\n  links:\n{lines}"
    )
    return path


def test_a_regular_fabric_has_its_cables_in_order(tmp_path: Path) -> None:
    found = levels(str(fabric_of_four_leaves(tmp_path)))
    assert found["every switch is on a path"] is Level.GOOD
    assert found["switches of a tier are wired alike"] is Level.GOOD


def test_a_missing_uplink_is_told_with_both_rates(tmp_path: Path) -> None:
    lab = fabric_of_four_leaves(tmp_path, "spine1:2")
    told = {item.rule: item for item in diagnose(load(lab))}["switches of a tier are wired alike"]
    assert told.level is Level.WARNING
    assert told.finding == "leaf2 has 100 Gb/s to the tier above, most of its tier 200"


def test_a_switch_that_no_path_uses_is_told(tmp_path: Path) -> None:
    lab = fabric_of_four_leaves(tmp_path, extra="spare")
    told = {item.rule: item for item in diagnose(load(lab))}["every switch is on a path"]
    assert told.level is Level.WARNING
    assert told.finding == "no shortest path between two NICs uses spare"
