"""What the drivers of real interfaces carry between two network namespaces, against peers.

* `udp`: iperf3 over UDP with datagrams of the same size, and the least C that uses segmentation
  offload at both ends (`bench/peers/udp_pair.c`).
* `af_packet`: the least C that uses the rings of packet sockets (`bench/peers/packet_ring.c`),
  which have no segmentation offload.
* `af_xdp`: the least C that uses AF_XDP sockets in native mode (`bench/peers/xdp_pair.c`).

Each is a sender and a receiver that stay on a processor each. Drivers are given prepared frames;
what arrives is counted and not decoded, like the peers'. All take turns, in one order and then in
the other, after a turn that is not counted. Beside the payload that arrived stands the processor
time of both sides for each gigabyte of it. Needs root.

    python -m bench.drivers [--json]
"""

import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dataplane
from bench._cable import (
    INTERFACE,
    AbsentError,
    End,
    Sides,
    cable,
    compiled,
    on_processor,
    processors,
    side_by_side,
)
from bench._report import Figure, Ratio, Report, ratios, show

ROUNDS = 8
"""Even, so that both orders are as frequent."""
SECONDS = 1.0
"""Whole: iperf3 takes no fraction."""
TIMEOUT_S = 20.0
PAYLOADS_BYTES = (1024, 4096)
ROCE_BYTES = 16
"""BTH and ICRC around the payload of a datagram."""
LEAST_OF_IPERF3 = 1.0
LEAST_OF_C = 0.8


@dataclass(frozen=True)
class Carried:
    """What arrived."""

    datagrams_per_s: float
    processor_s_per_gigabyte: float


Ends = tuple[End, End]
Way = Callable[[Ends, int], Carried]


def main() -> int:
    """Measure and print; 1 below the shares that are promised."""
    return show("Drivers between two namespaces.", measure)


def measure() -> Report:
    """Every driver beside its peers, or remarks on what is absent."""
    report = Report("RoCEv2 datagrams over a veth pair, a processor for each side")
    with tempfile.TemporaryDirectory() as directory:
        try:
            with cable() as ends:
                for payload_bytes in PAYLOADS_BYTES:
                    compare(report, ends, payload_bytes, *ways(report, Path(directory)))
        except AbsentError as absent:
            report.remarks.append(f"{absent}: left out")
    report.remarks = list(dict.fromkeys(report.remarks))
    return report


def ways(report: Report, directory: Path) -> tuple[dict[str, Way], dict[str, Way]]:
    """The drivers, and the peers that are there."""
    drivers: dict[str, Way] = {name: driver(name) for name in DRIVERS}
    peers: dict[str, Way] = {}
    for name, make in (
        (IPERF3, iperf3),
        (WITH_OFFLOAD, lambda: udp_pair(compiled("udp_pair", directory))),
        (PACKET_RINGS, lambda: raw_pair(compiled("packet_ring", directory))),
        (XDP_RINGS, lambda: raw_pair(compiled("xdp_pair", directory))),
    ):
        try:
            peers[name] = make()
        except AbsentError as absent:
            report.remarks.append(f"{name}: {absent}: left out")
    return drivers, peers


DRIVERS = ("udp", "af_packet", "af_xdp")
IPERF3 = "iperf3 over UDP"
WITH_OFFLOAD = "a minimal C pair with offload"
PACKET_RINGS = "a minimal C pair of packet rings"
XDP_RINGS = "a minimal C pair of AF_XDP"
TARGETS = (
    ("udp", IPERF3, LEAST_OF_IPERF3),
    ("udp", WITH_OFFLOAD, LEAST_OF_C),
    ("af_packet", PACKET_RINGS, LEAST_OF_C),
    ("af_xdp", XDP_RINGS, LEAST_OF_C),
)


def compare(
    report: Report,
    ends: Ends,
    payload_bytes: int,
    drivers: dict[str, Way],
    peers: dict[str, Way],
) -> None:
    """All of them in turns, with one size."""
    everyone = beside_peers(drivers | peers)
    carried: dict[str, list[Carried]] = {name: [] for name in everyone}
    for way in everyone.values():
        way(ends, payload_bytes)
    for number in range(ROUNDS):
        for name in list(everyone)[:: 1 if number % 2 == 0 else -1]:
            carried[name].append(everyone[name](ends, payload_bytes))
    for name, rounds in carried.items():
        add_figures(report, f"{name}, {payload_bytes} B", payload_bytes, rounds)
    for name, peer, least in TARGETS:
        if peer in carried:
            shares = ratios(*(speeds(carried[side]) for side in (name, peer)))
            report.ratios.append(Ratio(f"{name}, {payload_bytes} B", peer, shares, at_least=least))


def beside_peers(everyone: dict[str, Way]) -> dict[str, Way]:
    """Each driver next to those that it is compared with, so that little changes between them."""
    names = [name for driver, peer, _ in TARGETS for name in (peer, driver)]
    return {name: everyone[name] for name in dict.fromkeys(names) if name in everyone}


def add_figures(report: Report, what: str, payload_bytes: int, rounds: Sequence[Carried]) -> None:
    """Goodput, packets and cost."""
    goodput = [speed * payload_bytes * 8e-9 for speed in speeds(rounds)]
    cost = [round_.processor_s_per_gigabyte for round_ in rounds]
    report.figures += [
        Figure(what, "Gb/s", goodput),
        Figure(f"{what}, packets", "packets/s", speeds(rounds)),
        Figure(f"{what}, processors", "s/GB", cost),
    ]


def speeds(rounds: Sequence[Carried]) -> list[float]:
    """Datagrams per second of each round."""
    return [round_.datagrams_per_s for round_ in rounds]


def driver(name: str) -> Way:
    """Two ports of a driver."""

    def way(ends: Ends, payload_bytes: int) -> Carried:
        specs = [
            json.dumps(
                {
                    "driver": name,
                    "address": own.address,
                    "interface": INTERFACE,
                    "namespace": own.namespace,
                    "destinations": [other.address],
                    "ip_packet_bytes": payload_bytes + ROCE_BYTES + 28,
                    "source_ports": [0xC000],
                }
            )
            for own, other in (ends, ends[::-1])
        ]
        pumped = dataplane.pump_ports(*specs, payload_bytes, SECONDS, processors())
        received, seconds = pumped["received_frames"], pumped["receiving_s"]
        processor_s = pumped["sender_processor_s"] + pumped["receiver_processor_s"]
        return carried_of(received, seconds, processor_s, payload_bytes)

    return way


def udp_pair(program: str) -> Way:
    """The least C with segmentation offload."""

    def way(ends: Ends, payload_bytes: int) -> Carried:
        words = (ends[1].address, str(payload_bytes + ROCE_BYTES), str(SECONDS))
        return of_sides(
            side_by_side(
                ends[1].command(program, "receive", *words),
                ends[0].command(program, "send", *words),
                TIMEOUT_S,
            ),
            payload_bytes,
        )

    return way


def raw_pair(program: str) -> Way:
    """The least C that makes whole frames."""

    def way(ends: Ends, payload_bytes: int) -> Carried:
        words = (INTERFACE, str(payload_bytes + ROCE_BYTES), str(SECONDS))
        places = (ends[1].mac, ends[0].address, ends[1].address)
        return of_sides(
            side_by_side(
                ends[1].command(program, "receive", *words),
                ends[0].command(program, "send", *words, *places),
                TIMEOUT_S,
            ),
            payload_bytes,
        )

    return way


def of_sides(sides: Sides, payload_bytes: int) -> Carried:
    """What a pair of peers carried."""
    processor_s = sides.sent["processor_s"] + sides.received["processor_s"]
    received = sides.received
    return carried_of(received["datagrams"], received["seconds"], processor_s, payload_bytes)


def iperf3() -> Way:
    """iperf3 over UDP, as fast as it can."""
    program = shutil.which("iperf3")
    if program is None:
        raise AbsentError("iperf3 is not installed")

    def way(ends: Ends, payload_bytes: int) -> Carried:
        senders, receivers = processors()
        with on_processor(receivers):
            server = subprocess.Popen(
                ends[1].command(program, "--server", "--one-off", "--forceflush", "--json"),
                stdout=subprocess.DEVNULL,
            )
        size = ["--length", str(payload_bytes + ROCE_BYTES), "--time", f"{SECONDS:g}"]
        client = [program, "--client", ends[1].address, "--udp", "--bitrate", "0", "--json", *size]
        try:
            with on_processor(senders):
                result = connected(ends[0].command(*client))
        finally:
            server.kill()
            server.wait()
        total, used = result["sum"], result["cpu_utilization_percent"]
        arrived = total["packets"] - total["lost_packets"]
        processor_s = (used["host_total"] + used["remote_total"]) / 100 * total["seconds"]
        return carried_of(arrived, total["seconds"], processor_s, payload_bytes)

    return way


def connected(command: list[str]) -> dict[str, Any]:
    """Call the client until the server listens; what it says at its end."""
    for _ in range(20):
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )
        end: dict[str, Any] = json.loads(done.stdout or "{}").get("end", {})
        if "sum" in end:
            return end
        time.sleep(0.1)
    raise AbsentError(f"iperf3 does not reach its server: {done.stdout[-200:]}")


def carried_of(datagrams: float, seconds: float, processor_s: float, payload_bytes: int) -> Carried:
    """Per second and per gigabyte."""
    gigabytes = max(datagrams * payload_bytes * 1e-9, 1e-9)
    return Carried(datagrams / max(seconds, 1e-9), processor_s / gigabytes)


if __name__ == "__main__":
    raise SystemExit(main())
