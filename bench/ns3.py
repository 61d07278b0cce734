"""Speed of jobs in virtual time against ns-3, the field's packet simulator.

Both carry the same flows of the same number of packets over the same links: leaves of eight hosts
and eight spines, 400 Gb/s. A packet takes as long on a line in both. rankwire's hosts are RoCEv2
endpoints that acknowledge and react to marks, its switches mark, pause and hash; ns-3's send bare
UDP packets at the line rate, over point-to-point links, IPv4 and queues without a limit, and look
routes up in a table of ours (`bench/peers/ns3_peer.cc`), so that it does less for each packet.

A packet hop is a packet handed to the node at the end of a link; rankwire has some that ns-3 has
not, acknowledgements, notifications and pauses, so the time that the same data takes stands beside.
An event is what either side takes from its queue of events and handles. Both have one thread; rates
are per second of processor time, which other work on the machine disturbs less than wall time.

    python -m bench.ns3 [--json]

It needs g++ and Debian's libns3-dev, and says so where they are absent.
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dataplane
from bench._patterns import Pattern, clos_config, incast, permutation, programs
from bench._report import Figure, Ratio, Report, ratios, show
from metrics.analysis.bandwidth import PACKET_OVERHEAD_BYTES

HOSTS = 32
MESSAGE_BYTES = 16 << 20
MTU_BYTES = 4096
ROUNDS = 7
LEAST_RATIO = 10.0
LINE_RATE_BPS = 400_000_000_000

PEER = Path(__file__).parent / "peers" / "ns3_peer.cc"
LIBRARIES = ("point-to-point", "internet", "network", "core")
HEADER = Path("/usr/include/ns3/point-to-point-module.h")
NS3_OVERHEAD_BYTES = 30
"""Around a UDP payload on ns-3's point-to-point link: IPv4 20, UDP 8, PPP 2; there is no gap."""


class AbsentError(Exception):
    """What ns-3's side needs is not installed."""


@dataclass(frozen=True)
class Carried:
    """One side's measure of one job."""

    wall_s: float
    processor_s: float
    events: int
    packet_hops: int
    emulated_s: float


def main() -> int:
    """Measure and print; 1 below the target."""
    return show("Speed of jobs in virtual time against ns-3.", measure)


def measure() -> Report:
    """Both patterns on both sides, in turns."""
    report = Report(
        f"packet hops and events per second of processor time, {HOSTS} hosts, "
        f"{MESSAGE_BYTES >> 20} MiB from each sender in packets of {MTU_BYTES} B payload"
    )
    with tempfile.TemporaryDirectory() as directory:
        try:
            program = built(Path(directory))
        except AbsentError as absent:
            report.remarks.append(f"{absent}: left out")
            return report
        for name, pattern in (
            ("permutation", permutation(HOSTS)),
            (f"{HOSTS - 1}:1 incast", incast(HOSTS)),
        ):
            add_pattern(report, name, pattern, program)
    return report


def built(directory: Path) -> Path:
    """ns-3's side, compiled and linked; raises `AbsentError`."""
    compiler = shutil.which("g++")
    if compiler is None:
        raise AbsentError("g++ is not installed")
    if not HEADER.exists():
        raise AbsentError("ns-3 is not installed (Debian: libns3-dev, by `make bench-packages`)")
    program = directory / "ns3_peer"
    libraries = [f"-lns3-{name}" for name in LIBRARIES]
    command = [compiler, "-std=c++17", "-O3", "-o", str(program), str(PEER), *libraries]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        first = next((line for line in done.stderr.splitlines() if "error" in line), "no reason")
        raise AbsentError(f"ns-3's side can't be built with the ns-3 that is installed ({first})")
    return program


def add_pattern(report: Report, name: str, pattern: Pattern, program: Path) -> None:
    """Measure one pattern, and the ratios."""
    config = clos_config(HOSTS, f"transport.mtu_bytes={MTU_BYTES}")
    description = program.parent / "network"
    description.write_text("\n".join([*network(json.loads(config)), *flows(pattern), "end\n"]))
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(predicted(config, pattern))
        theirs.append(ns3(program, description))
    for side, carried in (("rankwire", ours), ("ns-3", theirs)):
        report.figures += [
            Figure(f"{name}, {side}: packet hops", "/s", per_second(carried, "packet_hops")),
            Figure(f"{name}, {side}: events", "/s", per_second(carried, "events")),
            Figure(f"{name}, {side}: wall time", "s", [one.wall_s for one in carried]),
            Figure(f"{name}, {side}: packet hops", "", [carried[0].packet_hops]),
            Figure(f"{name}, {side}: emulated time", "ms", [carried[0].emulated_s * 1e3]),
        ]
    report.ratios += [
        Ratio(
            f"{name}, packet hops per second",
            "ns-3's",
            ratios(per_second(ours, "packet_hops"), per_second(theirs, "packet_hops")),
            at_least=LEAST_RATIO,
        ),
        Ratio(
            f"{name}, events per second",
            "ns-3's",
            ratios(per_second(ours, "events"), per_second(theirs, "events")),
        ),
        Ratio(
            f"{name}, ns-3 takes for the same data",
            "rankwire's processor time",
            ratios([one.processor_s for one in theirs], [one.processor_s for one in ours]),
        ),
    ]


def per_second(carried: list[Carried], what: str) -> list[float]:
    """A count per second of processor time, in each round."""
    return [getattr(one, what) / one.processor_s for one in carried]


def predicted(config: str, pattern: Pattern) -> Carried:
    """The pattern in virtual time here."""
    engine = dataplane.Emulation(config, programs(pattern, MESSAGE_BYTES))
    start_s, processor_start_s = time.perf_counter(), time.process_time()
    engine.advance()
    wall_s, processor_s = time.perf_counter() - start_s, time.process_time() - processor_start_s
    if not engine.is_done:
        raise SystemExit("the job stalled")
    nics = engine.records()["counters"]["nics"]
    if int(nics["data_payload_bytes_retransmitted"].sum()):
        raise SystemExit("packets were sent twice: the sides differ")
    snapshot = engine.snapshot()
    counts = (int(snapshot[name]) for name in ("events", "frames_delivered"))
    return Carried(wall_s, processor_s, *counts, emulated_s=int(snapshot["now_ps"]) * 1e-12)


def ns3(program: Path, description: Path) -> Carried:
    """The pattern in ns-3; nothing may be lost."""
    done = subprocess.run([program, description], check=True, stdout=subprocess.PIPE, text=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    sent = sum(sent_packets(description))
    if answer["packets_received"] != sent:
        raise SystemExit(f"ns-3 lost packets: {answer['packets_received']} of {sent} arrived")
    return Carried(
        answer["wall_seconds"],
        answer["processor_seconds"],
        answer["events"],
        answer["packet_hops"],
        answer["simulated_seconds"],
    )


def sent_packets(description: Path) -> Iterator[int]:
    """Packets of each flow of a description."""
    for line in description.read_text().splitlines():
        if line.startswith("flow"):
            yield int(line.split()[3])


def network(config: dict[str, Any]) -> Iterator[str]:
    """Nodes, links and routes as ns-3's side reads them; equal-cost ports by destination."""
    hosts = len(config["nics"])
    yield f"payload_bytes {MTU_BYTES + PACKET_OVERHEAD_BYTES - NS3_OVERHEAD_BYTES}"
    yield f"hosts {hosts} switches {len(config['switches'])}"
    peers: dict[tuple[int, int], int] = {}
    for link in config["links"]:
        ends = [(node_number(link[end], hosts), int(link[end]["port"])) for end in "ab"]
        for own, other in (ends, reversed(ends)):
            peers[own] = other[0]
        yield f"link {ends[0][0]} {ends[1][0]} {link['rate_bps']} {link['delay_ps']}"
    for index, switch in enumerate(config["switches"]):
        for host, ports in enumerate(switch["routes"]):
            port = ports[host % len(ports)]
            yield f"route {hosts + index} {host} {peers[hosts + index, port]}"
    for host in range(hosts):
        for other in range(hosts):
            yield f"route {host} {other} {peers[host, 0]}"


def node_number(end: dict[str, Any], hosts: int) -> int:
    """Hosts first, then switches."""
    node = end["node"]
    return int(node["nic"]) if "nic" in node else hosts + int(node["switch"])


def flows(pattern: Pattern) -> Iterator[str]:
    """Every message as packets at the line rate."""
    packets = -(-MESSAGE_BYTES // MTU_BYTES)
    for source, destinations in enumerate(pattern):
        for destination in destinations:
            yield f"flow {source} {destination} {packets} {LINE_RATE_BPS}"


if __name__ == "__main__":
    raise SystemExit(main())
