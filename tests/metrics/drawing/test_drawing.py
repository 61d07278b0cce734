"""The drawing of a network: every node and link is there, and a large network stays readable."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import pytest

from metrics.drawing import draw_network
from metrics.drawing.layout import FEWER_BOXES, Layout, arrange
from metrics.drawing.network import network_of, tiers
from metrics.drawing.scale import colour_at

SVG = "{http://www.w3.org/2000/svg}"


def link(name: str, a: dict[str, int], b: dict[str, int], gbps: int = 400) -> dict[str, Any]:
    ends = {side: {"node": node, "port": 0} for side, node in (("a", a), ("b", b))}
    return {"name": name, **ends, "rate_bps": gbps * 10**9, "delay_ps": 500_000}


def clos(leaves: int, spines: int, hosts: int, parallel: int = 1) -> dict[str, Any]:
    """Configuration of a two-tier Clos; `hosts` on each leaf."""
    nics = [{"name": f"host{i}", "rank": i} for i in range(leaves * hosts)]
    names = [f"leaf{i}" for i in range(leaves)] + [f"spine{i}" for i in range(spines)]
    links = [
        link(f"host{i}-leaf{i // hosts}", {"nic": i}, {"switch": i // hosts})
        for i in range(len(nics))
    ]
    links += [
        link(f"leaf{i}-spine{j}.{k}", {"switch": i}, {"switch": leaves + j}, 800)
        for i in range(leaves)
        for j in range(spines)
        for k in range(parallel)
    ]
    return {"nics": nics, "switches": [{"name": name} for name in names], "links": links}


def ring(size: int) -> dict[str, Any]:
    """Configuration of switches in a ring, a NIC on each; the first link is slower."""
    around = [
        link(f"s{i}", {"switch": i}, {"switch": (i + 1) % size}, 100 if i == 0 else 400)
        for i in range(size)
    ]
    return {
        "nics": [{"name": f"n{i}", "rank": i} for i in range(size)],
        "switches": [{"name": f"s{i}"} for i in range(size)],
        "links": [*(link(f"n{i}", {"nic": i}, {"switch": i}) for i in range(size)), *around],
    }


def drawn(config: dict[str, Any], **options: Any) -> ET.Element:
    return ET.fromstring(draw_network(config, **{"title": "pod", **options}))  # noqa: S314


def texts(root: ET.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def pointed(root: ET.Element) -> list[str]:
    """What is said when a line or a square is pointed at."""
    return [group.findtext(f"{SVG}title", "") for group in root.iter(f"{SVG}g")]


def boxes(layout: Layout) -> Iterator[tuple[float, float, float, float]]:
    for row in layout.rows:
        for box in row:
            yield box.x, box.y, box.x + box.width, box.y + box.height


def test_every_switch_and_nic_of_a_small_network_is_named_with_its_rank() -> None:
    said = texts(drawn(clos(2, 2, 4)))
    names = {f"host{i}" for i in range(8)} | {"leaf0", "leaf1", "spine0", "spine1"}
    assert names <= set(said)
    assert {f"rank {i}" for i in range(8)} <= set(said)


def test_tiers_and_their_links_are_labelled_with_rates() -> None:
    said = texts(drawn(clos(2, 2, 4, parallel=2)))
    assert {
        "2 spines",
        "2 leaves",
        "8 links, 800 Gb/s, 500 ns",
        "8 links, 400 Gb/s, 500 ns",
    } <= set(said)


def test_links_side_by_side_are_one_line() -> None:
    said = pointed(drawn(clos(2, 1, 1, parallel=3)))
    assert "leaf0 \u2013 spine0: 3 \u00d7 800 Gb/s" in said


def test_the_tiers_of_three_are_told_by_distance_from_the_nics() -> None:
    config = clos(2, 2, 1)
    config["switches"].append({"name": "core0"})
    config["links"] += [
        link("u0", {"switch": 2}, {"switch": 4}),
        link("u1", {"switch": 3}, {"switch": 4}),
    ]
    network = network_of(config)
    named = [[network.name(switch) for switch in row] for row in tiers(network)]
    assert named == [["leaf0", "leaf1"], ["spine0", "spine1"], ["core0"]]


def test_every_direction_has_the_colour_of_its_utilisation_at_the_end_that_sends() -> None:
    config = clos(1, 0, 2)
    shares = {("host0-leaf0", 0): 1.0, ("host0-leaf0", 1): 0.28, ("host1-leaf0", 0): 0.0}
    root = drawn(config, utilisation=shares)
    strokes = [path.get("stroke") for path in root.iter(f"{SVG}path")]
    assert strokes == [colour_at(share) for share in (0.0, 0.0, 1.0, 0.28)]
    assert "host0 \u2013 leaf0: 400 Gb/s; host0 to leaf0 100.0 %, back 28.0 %" in pointed(root)


def test_the_scale_ends_where_little_used_links_can_be_told_apart() -> None:
    root = drawn(clos(1, 0, 2), utilisation={("host0-leaf0", 0): 0.04, ("host1-leaf0", 0): 0.01})
    strokes = {path.get("stroke") for path in root.iter(f"{SVG}path")}
    assert strokes == {colour_at(0.8), colour_at(0.2), colour_at(0.0)}
    assert {"0 %", "2.5 %", "5 %"} <= set(texts(root))
    assert any("colours up to 5 %" in text for text in texts(root))


def test_a_line_of_several_links_has_their_mean() -> None:
    shares = {("leaf0-spine0.0", 1): 0.5, ("leaf0-spine0.1", 1): 0.1}
    said = pointed(drawn(clos(1, 1, 1, parallel=2), utilisation=shares))
    assert any(text.endswith("leaf0 to spine0 0.0 %, back 30.0 %") for text in said)


@pytest.mark.parametrize(("leaves", "spines", "hosts"), [(8, 4, 8), (16, 8, 16), (32, 32, 32)])
def test_many_nics_are_squares_below_their_leaf(leaves: int, spines: int, hosts: int) -> None:
    root = drawn(clos(leaves, spines, hosts), utilisation={("host3-leaf0", 0): 0.9})
    said = pointed(root)
    assert any(text.startswith("host3, rank 3; sent to the fabric 90.0 %") for text in said)
    assert sum(", rank " in text for text in said) == leaves * hosts
    assert f"ranks 0\u2013{hosts - 1}" in texts(root)


def test_a_large_network_has_a_bounded_number_of_boxes_and_elements() -> None:
    config = clos(128, 64, 4)
    layout = arrange(network_of(config))
    assert [len(row) for row in layout.rows] == [0, FEWER_BOXES, FEWER_BOXES]
    text = draw_network(config, title="pod", utilisation={})
    assert "leaf0 to leaf7" in text
    assert text.count("<path") < 60
    assert len(text) < 400_000
    assert len(draw_network(clos(256, 64, 16), title="pod", utilisation={})) < 400_000


def test_the_busiest_line_is_drawn_last() -> None:
    config = clos(2, 2, 1)
    busy = ("leaf0-spine0.0", 0)
    last = list(drawn(config, utilisation={busy: 0.8}).iter(f"{SVG}path"))[-2:]
    assert colour_at(0.8) in {path.get("stroke") for path in last}


def test_idle_lines_of_a_large_network_lie_below_and_are_paler() -> None:
    busy = ("leaf0-spine0.0", 0)
    paths = list(drawn(clos(20, 10, 2), utilisation={busy: 0.8}).iter(f"{SVG}path"))
    assert [path.get("stroke") for path in paths] == [colour_at(0.0), colour_at(0.8)]
    assert [path.get("opacity") for path in paths] == ["0.45", "0.85"]


@pytest.mark.parametrize("config", [clos(2, 2, 4), clos(8, 4, 8), clos(40, 20, 2), ring(6)])
def test_no_two_boxes_overlap_and_all_are_inside(config: dict[str, Any]) -> None:
    layout = arrange(network_of(config))
    placed = list(boxes(layout))
    for index, (left, top, right, bottom) in enumerate(placed):
        assert left >= layout.gutter
        assert right <= layout.width
        assert 0 < top < bottom <= layout.height
        for other in placed[index + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top


def test_links_within_a_row_are_labelled_when_their_rates_differ() -> None:
    said = texts(drawn(ring(6)))
    assert said.count("100 Gb/s") == 1
    assert said.count("400 Gb/s") == 5


def test_a_ring_closes_with_an_arc_below_the_title() -> None:
    root = drawn(ring(6))
    curves = [path.get("d", "") for path in root.iter(f"{SVG}path") if "Q" in path.get("d", "")]
    assert len(curves) == 2
    heights = [float(y) for curve in curves for y in re.findall(r",([-0-9.]+)", curve)]
    assert min(heights) > 51


@pytest.mark.parametrize("config", [clos(2, 2, 1), clos(20, 10, 2)])
def test_stressed_links_are_drawn_apart_and_on_top(config: dict[str, Any]) -> None:
    wanted = {"host0-leaf0", "leaf0-spine1.0"}
    paths = list(drawn(config, highlight=wanted).iter(f"{SVG}path"))
    assert paths[-1].get("class") == "hot"
    assert {path.get("class") for path in paths} == {"hot", "link"}


def test_two_nics_back_to_back_are_a_line() -> None:
    config = {
        "nics": [{"name": "left", "rank": 0}, {"name": "right", "rank": 1}],
        "switches": [],
        "links": [link("wire", {"nic": 0}, {"nic": 1}, 100)],
    }
    assert "left \u2013 right: 100 Gb/s" in pointed(drawn(config))


def test_it_is_described_for_those_who_cannot_see_it() -> None:
    root = drawn(clos(2, 2, 4), utilisation={("host1-leaf0", 1): 0.42})
    assert root.get("role") == "img"
    ids = {element.get("id") for element in root.iter()}
    assert set((root.get("aria-labelledby") or "").split()) <= ids
    words = root.findtext(f"{SVG}desc", "")
    assert "Tier 2: 2 spines. Tier 1: 2 leaves. Below them 8 NICs." in words
    assert "Busiest on average: leaf0 to host1, 42.0 %." in words


@pytest.mark.parametrize(
    ("theme", "follows", "page"), [("auto", True, "#ffffff"), ("light", False, "#ffffff"),
                                   ("dark", False, "#12181f")],
)  # fmt: skip
def test_themes(theme: str, follows: bool, page: str) -> None:
    style = drawn(clos(1, 0, 2), theme=theme).findtext(f"{SVG}style", "")
    assert ("prefers-color-scheme:dark" in style) is follows
    assert f"--page:{page}" in style.splitlines()[0]


def test_names_cannot_break_out_of_the_drawing() -> None:
    config = clos(1, 0, 2)
    config["nics"][0]["name"] = '</title><script>"&'
    root = drawn(config, title="<&>", utilisation={})
    assert not list(root.iter(f"{SVG}script"))
    assert '</title><script>"&' in texts(root)
