"""End-to-end goodput of the soft RNIC over a wire, against bare datagrams and iperf3.

A NIC writes to another: payload is sent in RoCEv2 packets of 4096 bytes, encoded with ICRC,
received, verified and acknowledged, on two processors. The peers carry datagrams of the same size
as its frames on the same processors: a loop that only calls `sendmmsg` and `recvmmsg`, and iperf3
over UDP. Only payload that arrived counts, of each datagram as many bytes as RoCEv2 leaves for it.

    python -m bench.goodput [--json]
"""

import contextlib
import json
import shutil
import socket
import subprocess
from typing import Any

import dataplane
from bench._report import Figure, Ratio, Report, ratios, show
from bench._wires import DATAGRAM_BYTES, PAYLOAD_BYTES, carry, direct_config, on_core_pair

ROUNDS = 5
SECONDS = 1.0
GBPS_PER_PACKET_PER_S = PAYLOAD_BYTES * 8e-9


def main() -> int:
    """Measure and print."""
    return show("Goodput of the soft RNIC.", measure)


def measure() -> Report:
    """All of them in turns."""
    iperf3 = shutil.which("iperf3")
    config = direct_config()
    ours, bare, peer = [], [], []
    with on_core_pair():
        for _ in range(ROUNDS):
            ours.append(carry(config, (["host0"], ["host1"]), SECONDS).data_packets_per_s)
            bare.append(dataplane.loopback_datagrams_per_s(DATAGRAM_BYTES, SECONDS))
            if iperf3 is not None:
                peer.append(iperf3_datagrams_per_s(iperf3))
    report = Report(
        measures=f"payload in datagrams of {DATAGRAM_BYTES} B end to end, on two processors",
        figures=[figure("soft RNIC to soft RNIC", ours), figure("bare sendmmsg/recvmmsg", bare)],
        ratios=[Ratio("goodput", "the same bytes in a bare loop", ratios(ours, bare))],
    )
    if peer:
        report.figures.append(figure("iperf3 over UDP", peer))
        report.ratios.append(Ratio("goodput", "iperf3 over UDP", ratios(ours, peer)))
    else:
        report.remarks.append("iperf3 is not installed: left out")
    return report


def figure(what: str, packets_per_s: list[float]) -> Figure:
    """Datagrams per second as Gb/s of payload."""
    return Figure(what, "Gb/s", [rate * GBPS_PER_PACKET_PER_S for rate in packets_per_s])


def iperf3_datagrams_per_s(iperf3: str) -> float:
    """What arrives of as many datagrams as iperf3 can send, at its server's count."""
    port = str(free_port())
    server = subprocess.Popen(
        [iperf3, "--server", "--one-off", "--forceflush", "--bind", "127.0.0.1", "--port", port],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        any("listening" in line for line in server.stdout or ())
        client = ["--client", "127.0.0.1", "--port", port, "--udp", "--bitrate", "0", "--json"]
        size = ["--length", str(DATAGRAM_BYTES), "--time", f"{SECONDS:g}"]
        done = subprocess.run([iperf3, *client, *size], check=True, capture_output=True, text=True)
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(5.0)
        server.kill()
        server.wait()
    result: dict[str, Any] = json.loads(done.stdout)["end"]["sum"]
    return float((result["packets"] - result["lost_packets"]) / result["seconds"])


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    raise SystemExit(main())
