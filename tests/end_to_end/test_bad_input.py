"""Wrong input is one clear line per problem on stderr: what, where, and what would be right.

Exit status 2, no traceback, and nothing is left: no process, no run directory.
"""

import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.end_to_end.commands import rankwire
from traffic_profiles.chakra import TraceBuilder
from traffic_profiles.chakra.node_types import CollectiveType, NodeType
from traffic_profiles.chakra.writer import TraceNode, write_trace

ALL_REDUCE = CollectiveType.ALL_REDUCE
LAB = "single-switch"


@dataclass(frozen=True, slots=True)
class Wrong:
    """A command with something wrong in its input, and what it must say."""

    words: Sequence[str]
    said: Sequence[str]


Case = Callable[[Path], Wrong]


def job(directory: Path, ranks: int = 2) -> list[TraceBuilder]:
    """One empty trace per rank."""
    directory.mkdir(exist_ok=True)
    return [TraceBuilder() for _ in range(ranks)]


def write(directory: Path, builders: Sequence[TraceBuilder]) -> Path:
    """Write one file per rank."""
    for rank, builder in enumerate(builders):
        builder.write(directory / f"job.{rank}.et")
    return directory


def good_job(directory: Path, ranks: int = 2) -> Path:
    """A job with nothing wrong: one all-reduce."""
    builders = job(directory, ranks)
    for builder in builders:
        builder.collective("ar", ALL_REDUCE, 4096)
    return write(directory, builders)


def run_of(traces: Path, *more: str) -> list[str]:
    return ["run", LAB, "--trace", str(traces), *more]


def missing_rank(tmp: Path) -> Wrong:
    traces = good_job(tmp / "t", 4)
    (traces / "job.2.et").unlink()
    return Wrong(run_of(traces), [str(traces), "rank 2"])


def truncated_file(tmp: Path) -> Wrong:
    traces = good_job(tmp / "t")
    file = traces / "job.1.et"
    file.write_bytes(file.read_bytes()[:-3])
    return Wrong(run_of(traces), [str(file), "byte ", "truncated", "copy or write the file again"])


def cycle(tmp: Path) -> Wrong:
    traces = good_job(tmp / "t")
    nodes = [
        TraceNode(1, "a", NodeType.COMP, duration_us=1, data_deps=(2,)),
        TraceNode(2, "b", NodeType.COMP, duration_us=1, data_deps=(1,)),
    ]
    write_trace(traces / "job.1.et", nodes)
    return Wrong(run_of(traces), [f"{traces / 'job.1.et'}: rank 1", "cycle", "'a'", "'b'"])


def dangling_parents(tmp: Path) -> Wrong:
    """They are dropped and counted; with --strict they are errors."""
    builders = job(tmp / "t")
    for builder in builders:
        builder.collective("ar", ALL_REDUCE, 4096, after=[77])
    traces = write(tmp / "t", builders)
    return Wrong(run_of(traces, "--strict"), [str(traces / "job.0.et"), "rank 1", "node 77"])


def unknown_group(tmp: Path) -> Wrong:
    builders = job(tmp / "t")
    for builder in builders:
        builder.collective("ar", ALL_REDUCE, 4096, group="tensor")
    traces = write(tmp / "t", builders)
    return Wrong(run_of(traces), [str(traces), "'tensor'", "--group-file", "--world-group"])


def send_without_receive(tmp: Path) -> Wrong:
    builders = job(tmp / "t")
    builders[0].send("give", 1, 100, tag=5)
    builders[1].compute("idle", 1)
    traces = write(tmp / "t", builders)
    return Wrong(run_of(traces), [str(traces), "rank 0", "rank 1", "'give'", "100 bytes"])


def send_and_receive_of_different_sizes(tmp: Path) -> Wrong:
    builders = job(tmp / "t")
    builders[0].send("give", 1, 100, tag=5)
    builders[1].receive("take", 0, 200, tag=5)
    traces = write(tmp / "t", builders)
    return Wrong(run_of(traces), ["'give'", "'take'", "100", "200"])


def a_collective_that_one_rank_never_issues(tmp: Path) -> Wrong:
    builders = job(tmp / "t", 3)
    for builder in builders:
        builder.collective("first", ALL_REDUCE, 4096)
    for builder in builders[:2]:
        builder.collective("second", ALL_REDUCE, 8192)
    traces = write(tmp / "t", builders)
    return Wrong(run_of(traces), [str(traces), "rank 2", "'second'"])


def collectives_of_different_sizes(tmp: Path) -> Wrong:
    builders = job(tmp / "t")
    for rank, builder in enumerate(builders):
        builder.collective("sum", ALL_REDUCE, 4096 * (rank + 1))
    traces = write(tmp / "t", builders)
    return Wrong(run_of(traces), [str(traces), "rank 0", "rank 1", "4096", "8192"])


def more_ranks_than_nics(tmp: Path) -> Wrong:
    return Wrong(run_of(good_job(tmp / "t", 9)), ["9", "8"])


def no_traces(tmp: Path) -> Wrong:
    (tmp / "t").mkdir()
    return Wrong(run_of(tmp / "t"), [str(tmp / "t")])


def lab_with(topology: str) -> Case:
    """A lab of two NICs and a switch."""

    def case(tmp: Path) -> Wrong:
        file = tmp / "lab.yaml"
        file.write_text(topology)
        return Wrong(["run", str(file), "--trace", str(good_job(tmp / "t"))], [f"{file}: line "])

    return case


EXPLICIT = """\
name: pair
topology:
  kind: explicit
  nics: [{name: left}, {name: right}]
  switches: [{name: tor, ports: 4}]
  links:
    - {ends: [left, "tor:0"], rate_gbps: 100, delay_ns: 500}
    - {ends: [right, "tor:0"], rate_gbps: 100, delay_ns: 500}
"""


def switch_port_used_twice(tmp: Path) -> Wrong:
    wrong = lab_with(EXPLICIT)(tmp)
    return Wrong(wrong.words, [*wrong.said, "port 0 of tor", "line 8"])


def explicit_with(was: str, wrong: str, *said: str) -> Case:
    """The lab of two NICs and a switch with something in it replaced."""

    def case(tmp: Path) -> Wrong:
        text = EXPLICIT.replace('right, "tor:0"', 'right, "tor:1"').replace(was, wrong, 1)
        told = lab_with(text)(tmp)
        return Wrong(told.words, [*told.said, *said])

    return case


def unreachable_rank(tmp: Path) -> Wrong:
    text = EXPLICIT.replace('right, "tor:0"', 'right, "row:0"').replace(
        "[{name: tor, ports: 4}]", "[{name: tor, ports: 4}, {name: row, ports: 4}]"
    )
    told = lab_with(text)(tmp)
    return Wrong(told.words, [*told.said, "no path from tor to right (rank 1)"])


SECOND_LINK = '    - {ends: [right, "tor:1"], rate_gbps: 100, delay_ns: 500}\n'
BAD_TOPOLOGIES = {
    "disconnected_host": explicit_with(SECOND_LINK, "", "leaves right without a link"),
    "unequal_link_ends": explicit_with(
        "{name: right}", "{name: right, rate_gbps: 400}", "unequal rates", "right has 400", "100"
    ),
    "unreachable_rank": unreachable_rank,
    "link_to_itself": explicit_with('right, "tor:1"', '"tor:1", "tor:2"', "connect tor to itself"),
    "buffer_below_headrooms": explicit_with(
        "topology:", "switches: {buffer_bytes: 20000}\ntopology:", "20000", "tor sets aside"
    ),
}


def unknown_key(tmp: Path) -> Wrong:
    text = EXPLICIT.replace('right, "tor:0"', 'right, "tor:1"') + "swiches: {}\n"
    wrong = lab_with(text)(tmp)
    return Wrong(wrong.words, [*wrong.said, "swiches", "did you mean switches?"])


def impossible_thresholds(tmp: Path) -> Wrong:
    words = [*run_of(good_job(tmp / "t")), "--set", "ecn.kmin_bytes=9000000"]
    return Wrong(words, ["--set ecn.kmin_bytes", "9000000", "kmax_bytes"])


def unknown_setting(tmp: Path) -> Wrong:
    words = [*run_of(good_job(tmp / "t")), "--set", "ecn.kmim_bytes=1"]
    return Wrong(words, ["kmim_bytes", "did you mean", "kmin_bytes"])


def broker_unreachable(tmp: Path) -> Wrong:
    words = [*run_of(good_job(tmp / "t")), "--set", "control.broker=mqtt://127.0.0.1:1"]
    return Wrong(words, ["127.0.0.1:1", "broker"])


def foreign_http_address(tmp: Path) -> Wrong:
    """An address that no interface of this machine has."""
    words = [*run_of(good_job(tmp / "t")), "--set", "control.http_address=203.0.113.7"]
    return Wrong(words, ["203.0.113.7"])


def occupied_directory(tmp: Path) -> Wrong:
    (tmp / "kept").mkdir()
    (tmp / "kept" / "notes.txt").write_text("mine")
    return Wrong([*run_of(good_job(tmp / "t")), "--out", "kept"], ["kept"])


CASES: Sequence[Case] = (
    missing_rank,
    truncated_file,
    cycle,
    dangling_parents,
    unknown_group,
    send_without_receive,
    send_and_receive_of_different_sizes,
    a_collective_that_one_rank_never_issues,
    collectives_of_different_sizes,
    more_ranks_than_nics,
    no_traces,
    switch_port_used_twice,
    unknown_key,
    impossible_thresholds,
    unknown_setting,
    broker_unreachable,
    foreign_http_address,
    occupied_directory,
)


@pytest.mark.parametrize(
    "case",
    [*CASES, *BAD_TOPOLOGIES.values()],
    ids=[*(case.__name__ for case in CASES), *BAD_TOPOLOGIES],
)
def test_wrong_input_is_told_before_anything_starts(case: Case, tmp_path: Path) -> None:
    wrong = case(tmp_path)
    ended = rankwire(*wrong.words, directory=tmp_path)
    assert_refused(ended.status, ended.err, wrong.said)
    assert ended.out == ""
    assert not list(tmp_path.glob("runs/*"))


def assert_refused(status: int, err: str, said: Sequence[str]) -> None:
    """Status 2 and one line per problem, with everything that must be said, and a remedy."""
    assert status == 2, err
    assert "Traceback" not in err
    lines = err.splitlines()
    assert all(line.startswith("rankwire: ") and "; " in line for line in lines), err
    assert len(lines) == len(set(lines)), err
    missing = [words for words in said if words not in err]
    assert not missing, err


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        yield holder.getsockname()[1]


def test_a_taken_metrics_port_is_told_before_anything_starts(
    taken_port: int, tmp_path: Path
) -> None:
    words = run_of(good_job(tmp_path / "t"), f"--metrics-port={taken_port}")
    ended = rankwire(*words, directory=tmp_path)
    assert_refused(ended.status, ended.err, [str(taken_port)])
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize(
    "words",
    [
        ["compare", "nowhere", "elsewhere"],
        ["report", "nowhere"],
        ["trace", "info", "nowhere"],
        ["trace", "validate", "nowhere"],
        ["sweep", "nowhere.yaml"],
        ["doctor", "nowhere"],
        ["lab", "check", "nowhere"],
        ["agent", "--config", "nowhere.yaml"],
    ],
    ids=" ".join,
)
def test_every_command_refuses_what_is_not_there(words: Sequence[str], tmp_path: Path) -> None:
    ended = rankwire(*words, directory=tmp_path)
    assert_refused(ended.status, ended.err, ["nowhere"])
    assert ended.out == ""
    assert list(tmp_path.iterdir()) == []
