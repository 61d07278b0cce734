"""A lab file is read whole: every problem is told at once, with file, line, key and remedy."""

from collections.abc import Callable
from pathlib import Path

import pytest

from dataplane.errors import InputError
from emulator.lab import list_labs, load, load_lab

MINIMAL = """\
name: small
topology:
  kind: clos
  leaves: 1
  spines: 0
  hosts_per_leaf: 2
  host_link: {rate_gbps: 100}
"""


@pytest.fixture
def lab_file(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "lab.yaml"
        path.write_text(text)
        return path

    return write


def problems(path: Path | str, *overrides: str) -> list[str]:
    """What is wrong, one line per problem."""
    with pytest.raises(InputError) as caught:
        load_lab(path, overrides)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("name", sorted(list_labs()))
def test_a_shipped_lab_has_the_name_of_its_file_and_nothing_wrong(name: str) -> None:
    loaded = load(name)
    assert loaded.lab.name == name
    assert loaded.lab.description


def test_the_smallest_lab_needs_a_name_and_a_topology(lab_file: Callable[[str], Path]) -> None:
    lab = load_lab(lab_file(MINIMAL))
    assert lab.traffic_classes.data.priority == 3
    assert lab.traffic_classes.cnp.dscp == 48


def test_all_problems_are_told_at_once_with_line_and_remedy(
    lab_file: Callable[[str], Path],
) -> None:
    wrong = MINIMAL.replace("leaves", "leafs").replace("hosts_per_leaf: 2", "hosts_per_leaf: '2'")
    path = lab_file(wrong)
    told = problems(path)
    assert f"{path}: line 2: topology.leaves: is missing; add `leaves:`" in told
    assert f"{path}: line 4: topology.leafs: is not a known key; did you mean leaves?" in told
    assert any("line 6: topology.hosts_per_leaf: is '2'; write a whole number" in t for t in told)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n", "is not a mapping"),
        ("", "is not a mapping"),
        ("name: [\n", "is not YAML"),
        ("name: a\nname: b\n", "line 2: name: is given twice"),
        ("? [a]\n: b\n", "has the key"),
    ],
)
def test_a_file_that_is_no_yaml_mapping_is_one_problem(
    lab_file: Callable[[str], Path], text: str, said: str
) -> None:
    assert said in problems(lab_file(text))[0]


def test_an_unknown_lab_names_the_nearest_one() -> None:
    told = problems("loopback-clso")
    assert told == ["loopback-clso: there is no lab of this name; did you mean loopback-clos?"]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert "there is no such file" in problems(tmp_path / "none.yaml")[0]


def test_kmin_above_kmax_names_the_option_that_did_it() -> None:
    told = problems("loopback-clos", "ecn.kmin_bytes=9000000")
    assert told[0].startswith("--set ecn.kmin_bytes=9000000: switches.ecn.kmin_bytes: is 9000000")


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("ecn.kmn_bytes=1", "did you mean switches.ecn.kmin_bytes?"),
        ("kmin_bytes=1", "did you mean switches.ecn.kmin_bytes?"),
        ("nonsense", "has no path=value form"),
        ("agents.count=500", "give 256 or less"),
        ("agents.count=200", "the lab has 12 nodes"),
        ("switches.buffer_bytes=100000", "sets aside"),
        ("topology.spines=0", "leaves them unconnected"),
        ("topology.pods=2", "leaves them unconnected"),
        ("topology.cores_per_spine=1", "topology.core_link: is missing"),
        ("topology.nics_per_host=3", "give a multiple of nics_per_host"),
        ("traffic_classes.cnp.dscp=26", "give one DSCP one priority"),
        ("dcqcn.min_rate_bps=500000000000", "above the slowest NIC link"),
        ("dcqcn.rpg_gd=16", "from 0 to 15"),
        ("impairments=[{opcodes: [RC_SEND_LATS]}]", "did you mean RC_SEND_LAST?"),
        ("np.cnp_dscp=64", "from 0 to 63"),
        ("dcqcn.dce_tcp_g=1024", "from 0 to 1023"),
        ("congestion_control={algorithm: swift, max_window_packets: 1}", "is 10, and max_window"),
        ("control.broker=http://x", "is 'http://x'"),
        ("name=A b", "is 'A b'"),
    ],
)
def test_an_impossible_value_is_refused(override: str, said: str) -> None:
    assert said in problems("loopback-clos", override)[0]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ('topology.links.0.ends=["left1", "west:0"]', "port 0 of left1, which links.0 uses"),
        ('topology.links.4.ends=["west:3", "east:0"]', "port 0 of east, which links.2 uses"),
        ('topology.links.4.ends=["west:3", "west:2"]', "connect west to itself"),
        ('topology.links.4.ends=["west:9", "east:3"]', "is port 9 of west, which has 4"),
        ('topology.links.4.ends=["middle:0", "east:3"]', "names the node middle"),
        ('topology.links.4.ends=["west", "east:3"]', "write node:port"),
        ("topology.nics.1.name=left0", "which another node has"),
        ("topology.nics.1.address=198.18.1.1", "which another NIC has"),
        ("topology.nics.1.address=10.0.0.1", "outside the lab's ranges"),
        ("topology.nics.1.rank=0", "which left0 carries already"),
        ("topology.nics.3.rank=9", "lack rank 3"),
        ("agents.placement={a: [west, left0, left1, east, right0]}", "gives no agent to right1"),
        ("agents.placement.west-agent=[west, left0, left1, east]", "which west-agent carries"),
    ],
)
def test_an_impossible_explicit_topology_is_refused(override: str, said: str) -> None:
    assert any(said in line for line in problems("explicit-example", override))


def test_a_cut_fabric_names_the_unreachable_ranks(lab_file: Callable[[str], Path]) -> None:
    text = Path(list_labs()["explicit-example"]).read_text()
    cut = "\n".join(line for line in text.splitlines() if "west:3" not in line)
    told = problems(lab_file(cut))
    assert "give no path from west to right0 (rank 2), right1 (rank 3)" in told[0]


def test_a_nic_without_a_link_is_named(lab_file: Callable[[str], Path]) -> None:
    text = Path(list_labs()["explicit-example"]).read_text()
    cut = "\n".join(line for line in text.splitlines() if "ends: [right1" not in line)
    assert "leaves right1 without a link" in problems(lab_file(cut))[0]


def test_an_override_replaces_what_the_file_says_under_another_name() -> None:
    lab = load_lab("loopback-clos", ["dcqcn.min_rate_bps=5000000"])
    assert lab.congestion_control.model_dump()["min_rate_bps"] == 5_000_000


def test_an_impairment_of_no_link_is_told_with_links_that_there_are(
    lab_file: Callable[[str], Path],
) -> None:
    path = lab_file(MINIMAL + "impairments:\n  - {links: trunk-*, loss_ratio: 0.1}\n")
    (told,) = problems(path)
    assert "impairments.0.links: is trunk-*, which no link matches" in told
