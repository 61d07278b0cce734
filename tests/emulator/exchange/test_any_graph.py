"""Any explicit topology comes back from either format with its binding, down to every name."""

from pathlib import Path
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emulator.exchange import EXPORT_FORMATS, export_lab, import_lab
from emulator.lab import load

RATES = st.sampled_from([25, 100, 400, 800, 12.5])
DELAYS = st.integers(0, 10_000)


@st.composite
def labs(draw: st.DrawFn) -> dict[str, Any]:
    """A lab of a random tree of switches with more links on it, and hosts of one to three NICs."""
    switches = draw(st.integers(1, 5))
    used = [0] * switches

    def port(switch: int) -> str:
        used[switch] += draw(st.integers(1, 2))
        return f"s{switch}:{used[switch] - 1}"

    def link(a: str, b: str) -> dict[str, Any]:
        return {"ends": [a, b], "rate_gbps": draw(RATES), "delay_ns": draw(DELAYS)}

    trunks = [(draw(st.integers(0, i - 1)), i) for i in range(1, switches)]
    pairs = st.tuples(st.integers(0, switches - 1), st.integers(0, switches - 1))
    trunks += [pair for pair in draw(st.lists(pairs, max_size=3)) if pair[0] != pair[1]]
    links = [link(port(a), port(b)) for a, b in trunks]
    nics = []
    for host in range(draw(st.integers(1, 4))):
        for number in range(draw(st.integers(1, 3))):
            name = f"h{host}.{number}" if draw(st.booleans()) else f"nic{len(nics)}x"
            nics.append({"name": name, "host": f"box{host}", "rank": len(nics)})
            links.append(link(name, port(draw(st.integers(0, switches - 1)))))
    draw(st.randoms(use_true_random=False)).shuffle(links)
    nodes = [{"name": f"s{i}", "ports": max(used[i], 1) + 1} for i in range(switches)]
    topology = {"kind": "explicit", "nics": nics, "switches": nodes, "links": links}
    return {"name": "any", "topology": topology, "switches": {"buffer_bytes": 2**34}}


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(lab=labs(), file_format=st.sampled_from(EXPORT_FORMATS))
def test_it_comes_back(tmp_path: Path, lab: dict[str, Any], file_format: str) -> None:
    (tmp_path / "lab.yaml").write_text(yaml.safe_dump(lab))
    loaded = load(tmp_path / "lab.yaml")
    made = export_lab(loaded, file_format)
    (tmp_path / "file.yaml").write_text(made.text)
    (tmp_path / "binding.yaml").write_text(made.binding_text)
    back = import_lab(tmp_path / "file.yaml", tmp_path / "binding.yaml")
    linked = {
        end.index for link in loaded.fabric.links for end in (link.a, link.b) if end.is_switch
    }
    if len(linked) == len(loaded.fabric.switches):
        assert back.fabric == loaded.fabric
    assert back.fabric.nics == loaded.fabric.nics
    assert len(back.fabric.links) == len(loaded.fabric.links)
