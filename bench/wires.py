"""Datagrams per second of wires, as a share of what a minimal loop reaches on this machine.

The minimal loop is two threads of the native crate, one calling `sendmmsg` and one `recvmmsg`, with
everything prepared. The wires are two engines, one thread each, on the same two processors: a NIC
sends RoCEv2 packets with a 4096-byte payload, encoded with ICRC, to another that verifies and
acknowledges them. Once on a wire between the NICs, once over a virtual switch, where each packet
crosses two wires.

    python -m bench.wires [--json]
"""

import dataplane
from bench._report import Figure, Ratio, Report, ratios, show
from bench._wires import (
    DATAGRAM_BYTES,
    Carried,
    carry,
    direct_config,
    on_core_pair,
    switch_config,
)

ROUNDS = 7
SECONDS = 1.0
LEAST_SHARE = 0.6
LOOP = "a minimal sendmmsg/recvmmsg loop's"


def main() -> int:
    """Measure and print; 1 below the share that is promised."""
    return show("Wires against a minimal loop.", measure)


def measure() -> Report:
    """All three in turns."""
    direct, switched = direct_config(), switch_config()
    minimal, wire, through = [], [], []
    with on_core_pair():
        for _ in range(ROUNDS):
            minimal.append(dataplane.loopback_datagrams_per_s(DATAGRAM_BYTES, SECONDS))
            wire.append(carry(direct, (["host0"], ["host1"]), SECONDS))
            through.append(carry(switched, (["host0", "host1"], ["leaf0"]), SECONDS))
    on_wire = [round_.datagrams_per_s for round_ in wire]
    on_wires = [round_.datagrams_per_s for round_ in through]
    packets = [round_.data_packets_per_s for round_ in through]
    return Report(
        measures=f"datagrams of {DATAGRAM_BYTES} B on loopback, two threads on two processors",
        figures=[
            Figure("minimal loop", "datagrams/s", minimal),
            Figure("wire between two NICs", "datagrams/s", on_wire),
            Figure("with a virtual switch between, both hops", "datagrams/s", on_wires),
            Figure("with a virtual switch between, end to end", "data packets/s", packets),
        ],
        ratios=[
            Ratio("wire", LOOP, ratios(on_wire, minimal), at_least=LEAST_SHARE),
            Ratio("wires with a switch, both hops", LOOP, ratios(on_wires, minimal)),
            Ratio("wires with a switch, end to end", LOOP, ratios(packets, minimal)),
        ],
        remarks=overflow_remarks([*wire, *through]),
    )


def overflow_remarks(rounds: list[Carried]) -> list[str]:
    """Drops mean that the machine was disturbed: the window is smaller than a socket's buffer."""
    lost = sum(round_.overflows for round_ in rounds)
    return [f"{lost} datagrams overflowed a socket's buffer"] if lost else []


if __name__ == "__main__":
    raise SystemExit(main())
