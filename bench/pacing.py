"""How exactly a NIC keeps the rate it is asked for, packet by packet.

A NIC sends a message at a fixed rate over a wire, in packets of 4096 bytes, at 1 %, 10 % and 50 %
of the packets per second that the same wire carries end to end in this run. A bare socket stands
at the other end; the kernel stamps each datagram while the sender hands it over, so its times are
those of departure. The error is that of each gap between two departures against the gap asked for,
either way. The peer is a loop on the same machine that watches the clock and sends prepared
datagrams at the same rate.

    python -m bench.pacing [--json]
"""

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dataplane
from bench._report import Figure, Ratio, Report, ratios, show
from bench._wires import DATAGRAM_BYTES, carry, direct_config, on_core_pair, program

ROUNDS = 3
SECONDS = 1.0
SHARES = (0.01, 0.1, 0.5)
QUANTILES = (0.5, 0.99, 0.999)
LINE_BYTES = DATAGRAM_BYTES + 4 + 20
"""What a packet occupies on the line that rates count: with FCS, preamble and gap."""
WARM_UP_SHARE = 0.1
TRIES = 5
START_AFTER_NS = 20_000_000
SAMPLE_INTERVAL_PS = 10 * 10**9
"""As often in wall time as in a run that is dilated a thousand times."""

Times = NDArray[np.uint64]


def main() -> int:
    """Measure and print."""
    return show("Error of the gaps between departures.", measure)


def measure() -> Report:
    """Each share in turns with its peer."""
    config = direct_config()
    with on_core_pair():
        carried = [
            carry(config, (["host0"], ["host1"]), SECONDS).data_packets_per_s for _ in range(ROUNDS)
        ]
        report = Report(
            measures=f"gaps between departures of {DATAGRAM_BYTES}-byte datagrams from a paced NIC",
            figures=[Figure("carried end to end at full speed", "data packets/s", carried)],
        )
        for share in SHARES:
            interval_ns = round(1e9 / (share * float(np.median(carried))))
            add_share(report, config, share, interval_ns)
    return report


def add_share(report: Report, config: dict[str, Any], share: float, interval_ns: int) -> None:
    """Figures and ratios at one rate."""
    ours, peers = [], []
    for _ in range(ROUNDS):
        ours.append(undisturbed(lambda log: nic_departures(log, config, interval_ns)))
        peers.append(undisturbed(lambda log: loop_departures(log, interval_ns)))
    name = f"{share:.0%}, a packet each {interval_ns / 1e3:.1f} us"
    errors = np.array([quantiles(times, interval_ns) for times in ours])
    peer_errors = np.array([quantiles(times, interval_ns) for times in peers])
    for column, quantile in enumerate(QUANTILES):
        label = f"{name}: p{quantile * 100:g}"
        report.figures.append(Figure(f"{label}, NIC", "us", list(errors[:, column] / 1e3)))
        report.figures.append(Figure(f"{label}, loop", "us", list(peer_errors[:, column] / 1e3)))
        shares = list(errors[:, column] / interval_ns)
        report.ratios.append(Ratio(f"{label} of the error", "the gap asked for", shares))
        to_loop = ratios(list(errors[:, column]), list(peer_errors[:, column]))
        report.ratios.append(Ratio(f"{label} of the error", "the loop's", to_loop))
    report.ratios.append(
        Ratio(f"{name}: rate", "the rate asked for", [rate_ratio(t, interval_ns) for t in ours])
    )


def undisturbed(depart: Callable[[dataplane.ArrivalLog], None]) -> Times:
    """When datagrams left, without the first part; again if some could not be noted."""
    for _ in range(TRIES):
        log = dataplane.ArrivalLog()
        depart(log)
        times, overflows = log.stop()
        if not overflows:
            return times[int(len(times) * WARM_UP_SHARE) :]
    raise SystemExit(
        "the machine is too busy: the socket that notes departures overflows each time"
    )


def nic_departures(log: dataplane.ArrivalLog, config: dict[str, Any], interval_ns: int) -> None:
    """Let a NIC send, asked for a packet each `interval_ns`."""
    engine = dataplane.WallEmulation(paced(config, interval_ns), [program(0, 0)], ["host0"], 1)
    (end,) = engine.bind()
    engine.connect({end: ("127.0.0.1", log.port)})
    engine.start(time.clock_gettime_ns(time.CLOCK_MONOTONIC) + START_AFTER_NS)
    time.sleep(START_AFTER_NS * 1e-9 + SECONDS)
    engine.stop()
    engine.join(5.0)


def paced(config: dict[str, Any], interval_ns: int) -> str:
    """The job at a fixed rate; the bare socket acknowledges nothing, and needs not."""
    rate_bps = LINE_BYTES * 8 * 10**9 // interval_ns
    window = {"window_packets": 1 << 23, "retransmission_timeout_ps": 10**15}
    return json.dumps(
        config
        | {
            "congestion_control": {"algorithm": "fixed_rate", "rate_bps": rate_bps},
            "transport": config["transport"] | window,
            "telemetry": config["telemetry"] | {"sample_interval_ps": SAMPLE_INTERVAL_PS},
        }
    )


def loop_departures(log: dataplane.ArrivalLog, interval_ns: int) -> None:
    """Let a loop send that does nothing else."""
    count = round(SECONDS * 1e9 / interval_ns)
    dataplane.send_paced_datagrams(log.port, DATAGRAM_BYTES, interval_ns, count)


def quantiles(times: Times, interval_ns: int) -> NDArray[np.float64]:
    """Quantiles of the error of gaps, in ns either way."""
    gaps = np.diff(times.astype(np.int64))
    return np.quantile(np.abs(gaps - interval_ns), QUANTILES)


def rate_ratio(times: Times, interval_ns: int) -> float:
    """Packets that left, by packets that should have."""
    return float((len(times) - 1) * interval_ns / (int(times[-1]) - int(times[0])))


if __name__ == "__main__":
    raise SystemExit(main())
