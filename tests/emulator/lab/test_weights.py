"""Weighted ECMP, hash fields and seeds, and headroom pools: from the lab file to the engine."""

from collections import Counter
from typing import Any

import pytest

from dataplane.errors import InputError
from emulator.job import JobRequest, build_job
from emulator.job_config import job_config
from emulator.lab import load, load_lab
from emulator.predict import predict

UNEVEN = """\
name: uneven
topology:
  kind: explicit
  nics: [{name: a}, {name: b}, {name: c}, {name: d}]
  switches: [{name: left, ports: 8}, {name: right, ports: 8}]
  links:
    - {ends: [a, "left:0"], rate_gbps: 100}
    - {ends: [b, "left:1"], rate_gbps: 100}
    - {ends: [c, "right:0"], rate_gbps: 100}
    - {ends: [d, "right:1"], rate_gbps: 100}
    - {ends: ["left:2", "right:2"], rate_gbps: 400}
    - {ends: ["left:3", "right:3"], rate_gbps: 100}
"""


@pytest.fixture
def uneven(tmp_path: Any) -> str:
    path = tmp_path / "uneven.yaml"
    path.write_text(UNEVEN)
    return str(path)


def switches(lab: str, *changes: str) -> list[dict[str, Any]]:
    loaded = load(lab, changes)
    return list(job_config(loaded.lab, loaded.fabric, seed=1)["switches"])


def places(lab: str, *changes: str) -> Counter[int]:
    """How often each port of the first switch stands in the route to the last NIC."""
    return Counter(switches(lab, *changes)[0]["routes"][3])


def test_equal_weights_name_each_port_once(uneven: str) -> None:
    assert places(uneven) == {2: 1, 3: 1}


def test_weights_by_rate_are_the_smallest_whole_numbers_in_proportion(uneven: str) -> None:
    assert places(uneven, "switches.path_selection.weighting=rate") == {2: 4, 3: 1}


def test_a_link_that_is_named_has_its_own_weight(uneven: str) -> None:
    names = [link.name for link in load(uneven).fabric.links]
    change = f"switches.path_selection.link_weights={{'{names[5]}': 3, '*': 2}}"
    assert places(uneven, change) == {2: 2, 3: 3}


def test_flows_spread_in_proportion_to_the_weights(uneven: str) -> None:
    changes = ("switches.path_selection.weighting=rate", "transport.qps_per_peer=64",
               "transport.qp_distribution=split")  # fmt: skip
    request = JobRequest(uneven, changes, profile="all-to-all,repeats=1")
    sent: Counter[int] = Counter()
    links = predict(build_job(request))["links"]
    for link, size in zip(links["link"], links["data_bytes"], strict=True):
        sent[int(link)] += int(size)
    share = sent[4] / (sent[4] + sent[5])
    assert 0.72 < share < 0.88


def test_without_ports_in_the_hash_all_queue_pairs_of_two_nics_take_one_way(uneven: str) -> None:
    def ways(*fields: str) -> int:
        changes = ("transport.qps_per_peer=16", "transport.qp_distribution=split",
                   f"switches.path_selection.hash_fields=[{', '.join(fields)}]")  # fmt: skip
        request = JobRequest(uneven, changes, profile="all-to-all,repeats=1")
        paths = predict(build_job(request))["flow_links"]
        columns = ("source_rank", "destination_rank", "link", "direction")
        crossed = zip(*(paths[name].tolist() for name in columns), strict=True)
        return len({place for place in crossed if place[2:] in ((4, 0), (5, 0))})

    assert ways("source_address", "destination_address") == 4
    assert ways("source_address", "destination_address", "source_port") == 8


def test_a_switch_has_the_seed_that_it_is_given(uneven: str) -> None:
    made = switches(uneven, "switches.path_selection.hash_seeds={l*: 7}")
    assert made[0]["ecmp_seed"] == 7
    assert made[1]["ecmp_seed"] == switches(uneven)[1]["ecmp_seed"]


def test_a_pool_takes_the_place_of_all_headrooms(uneven: str) -> None:
    each = "switches.pfc.headroom_bytes=40000"
    own = switches(uneven, each)[0]
    pooled = switches(uneven, each, "switches.pfc.headroom_pool_bytes=100000")[0]
    by_ratio = switches(uneven, each, "switches.pfc.headroom_oversubscription=2")[0]
    assert own["headroom_pool_bytes"] is None
    assert pooled["headroom_pool_bytes"] == 100_000
    assert by_ratio["headroom_pool_bytes"] == 4 * 40_000 // 2
    assert own["buffer_bytes"] == 67_108_864 - 4 * 40_000
    assert pooled["buffer_bytes"] == 67_108_864 - 100_000
    assert pooled["priorities"][3]["headroom_bytes"] == 40_000


def test_a_pool_has_one_size(uneven: str) -> None:
    changes = ["pfc.headroom_pool_bytes=1", "pfc.headroom_oversubscription=2"]
    with pytest.raises(InputError, match="headroom_oversubscription: is given beside"):
        load_lab(uneven, changes)
