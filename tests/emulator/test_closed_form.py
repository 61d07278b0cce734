"""Collectives of 64 ranks in virtual time against arithmetic on paper, when nothing congests.

The arithmetic is written out here: a full packet of 4096 bytes occupies 4178 on the line (Ethernet
14 and 4, IPv4 20, UDP 8, BTH 12, ICRC 4, preamble and gap 20), and a step adds the propagation of
its links and, on each line but the first, the time of one packet.
"""

import numpy as np
import pytest

from emulator.job import JobRequest, build_job
from emulator.predict import predict

RANKS = 64
SIZE_BYTES = 16 << 20
BYTE_PS = 20
"""At 400 Gb/s."""
PACKET_PS = 4178 * BYTE_PS
ONE_SWITCH_PS = 2 * 500_000 + PACKET_PS
"""Latency of a path over one switch: two links of 500 ns, and a packet is sent on once whole."""
ONE_SWITCH = (f"topology.hosts_per_leaf={RANKS}", f"switches.buffer_bytes={256 << 20}")
RULES = "collectives.rules=[{{collective: {}, algorithm: {}}}]"


def completion_ps(lab: str, profile: str, *overrides: str) -> float:
    """Time from the start to the arrival of the last message; no packet may be marked."""
    job = build_job(
        JobRequest(lab, overrides, profile=f"{profile},size_bytes={SIZE_BYTES},repeats=1")
    )
    engine = predict(job)
    assert not engine["counters"]["nics"]["ecn_marked_packets"].any()
    kinds = {program.rank: program.kind for program in job.programs}
    ops = engine["ops"]
    received = np.array(
        [kinds[rank][op] == 1 for rank, op in zip(ops["rank"], ops["op"], strict=True)]
    )
    return float(ops["end_ps"][received].max() - ops["start_ps"].min())


def on_the_line_ps(payload_bytes: float) -> float:
    """Time of full packets with so much payload, one behind the other."""
    return payload_bytes / 4096 * PACKET_PS


@pytest.mark.parametrize(
    ("lab", "overrides", "leaf_share"),
    [("single-switch", ONE_SWITCH, 0.0), ("clos-64", (), 1 / 8)],
)
def test_a_ring_all_reduce_takes_its_bytes_and_its_hops(
    lab: str, overrides: tuple[str, ...], leaf_share: float
) -> None:
    """2(n-1) steps of S/n, each behind the one before, within 1 %.

    `leaf_share` of the steps of a chunk's way round the ring leave a leaf: two links of 600 ns and
    two more lines.
    """
    steps = 2 * (RANKS - 1)
    further_ps = leaf_share * (2 * 600_000 + 2 * PACKET_PS)
    ideal_ps = steps * (on_the_line_ps(SIZE_BYTES / RANKS) + ONE_SWITCH_PS + further_ps)
    measured_ps = completion_ps(lab, "all-reduce", RULES.format("all_reduce", "ring"), *overrides)
    assert measured_ps == pytest.approx(ideal_ps, rel=0.01)


def test_an_all_to_all_takes_its_bytes_and_one_path() -> None:
    """Pairwise on one switch every NIC sends S(n-1)/n without a pause, within 1 %."""
    measured_ps = completion_ps(
        "single-switch", "all-to-all", RULES.format("all_to_all", "pairwise"), *ONE_SWITCH
    )
    ideal_ps = on_the_line_ps(SIZE_BYTES * (RANKS - 1) / RANKS) + ONE_SWITCH_PS
    assert measured_ps == pytest.approx(ideal_ps, rel=0.01)
