"""A lab file chooses the algorithm of each collective by kind, size and group.

Group sizes are odd ones too, and no size is a multiple of anything.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from emulator.cli import main
from emulator.lab import list_labs
from metrics.records import RunRecords, load
from traffic_profiles.chakra import TraceBuilder
from traffic_profiles.chakra.node_types import CollectiveType
from traffic_profiles.collectives.expansion import ALGORITHMS

RANKS = 8
GROUPS = {"pair": [3, 6], "three": [0, 2, 7], "five": [1, 2, 4, 5, 6], "world": list(range(RANKS))}
KINDS = [kind for kind in ALGORITHMS if kind != "send_recv"]
SIZE_BYTES = 100_003


def write_traces(directory: Path, calls: Sequence[tuple[str, str, int]]) -> Path:
    """Traces whose ranks issue these (kind, group, size) in order."""
    directory.mkdir()
    for rank in range(RANKS):
        builder = TraceBuilder()
        builder.process_groups(GROUPS, world_size=RANKS)
        for kind, group, size_bytes in calls:
            if rank in GROUPS[group]:
                builder.collective(kind, CollectiveType[kind.upper()], size_bytes, group=group)
        builder.write(directory / f"job.{rank}.et")
    return directory


def predicted(directory: Path, rules: Sequence[Mapping[str, Any]], traces: Path) -> RunRecords:
    """Records of a prediction on a lab file with these rules."""
    lab = yaml.safe_load(list_labs()["single-switch"].read_text())
    file = directory / "lab.yaml"
    file.write_text(yaml.safe_dump(lab | {"collectives": {"rules": list(rules)}}))
    out = directory / "out"
    assert main(["predict", str(file), "--trace", str(traces), "--out", str(out), "--quiet"]) == 0
    return load(out)


@pytest.mark.parametrize("turn", range(max(map(len, ALGORITHMS.values()))))
def test_every_algorithm_can_be_chosen_for_any_group_and_size(turn: int, tmp_path: Path) -> None:
    """Each kind takes its next algorithm at every turn."""
    names = {kind: list(ALGORITHMS[kind]) for kind in KINDS}
    chosen = {kind: names[kind][turn % len(names[kind])] for kind in KINDS}
    calls = [
        (kind, group, SIZE_BYTES + index) for kind in KINDS for index, group in enumerate(GROUPS)
    ]
    rules = [{"collective": kind, "algorithm": name} for kind, name in chosen.items()]
    records = predicted(tmp_path, rules, write_traces(tmp_path / "traces", calls))
    assert len(records.collectives) == len(calls)
    assert records.collectives["complete"].all()
    assert dict(records.collectives.select("kind", "algorithm").unique().rows()) == chosen
    assert records.run["byte_conservation"]["holds"]


def test_size_and_group_decide(tmp_path: Path) -> None:
    """The first rule that matches holds; what none matches has its default."""
    rules = [
        {"collective": "all_reduce", "algorithm": "halving_doubling", "max_size_bytes": 1000},
        {"collective": "all_reduce", "algorithm": "direct", "group": "th*"},
        {"collective": "all_reduce", "algorithm": "ring", "min_ranks": 5, "max_ranks": 7},
    ]
    calls = [("all_reduce", "three", 1000), ("all_reduce", "three", 1001)]
    calls += [("all_reduce", "five", 1001), ("all_reduce", "world", 1001)]
    records = predicted(tmp_path, rules, write_traces(tmp_path / "traces", calls))
    chosen = records.collectives.select("group", "size_bytes", "algorithm").rows()
    assert sorted(chosen) == [
        ("five", 1001, "ring"),
        ("three", 1000, "halving_doubling"),
        ("three", 1001, "direct"),
        ("world", 1001, "double_binary_tree"),
    ]


def test_a_rule_can_be_set_for_one_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = "collectives.rules=[{collective: all_to_all, algorithm: linear}]"
    words = [
        "predict",
        "single-switch",
        "--profile=all-to-all",
        "--size-scale=0.01",
        "--set",
        rules,
    ]
    assert main([*words, "--out", str(tmp_path / "out"), "--json", "--quiet"]) == 0
    table = json.loads(capsys.readouterr().out)["collectives"]
    assert [row["algorithm"] for row in table] == ["linear"]
