"""Delay of the shortest path between two NICs, from the links of a job.

A path is a sum of propagation delays and of one store-and-forward of the frame at every hop after
the first: the first hop's transmission is part of the time that the message takes anyway.
"""

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PathTable", "path_table"]

_REFERENCE_FRAME_BYTES = 4178
_PS_PER_BYTE_BPS = 8e12


@dataclass(frozen=True)
class PathTable:
    """Shortest paths between all NICs, by the index of their access links."""

    access: NDArray[np.int64]
    """int64[nics]: the node (switch or NIC at the far end) behind each NIC's link."""
    access_delay_ps: NDArray[np.float64]
    """float64[nics]: propagation delay of each NIC's link."""
    rate_bps: NDArray[np.float64]
    """float64[nics]: rate of each NIC's link, bits/s; 0 without a link."""
    delay_ps: NDArray[np.float64]
    """float64[nodes, nodes]: propagation between access nodes; infinite where there is no path."""
    ps_per_byte: NDArray[np.float64]
    """float64[nodes, nodes]: transmission time of a byte, summed over the links between."""

    def latency_ps(
        self, source: NDArray[Any], destination: NDArray[Any], frame_bytes: NDArray[Any] | float
    ) -> NDArray[np.float64]:
        """Time from the last bit at the source's port to the last bit at the destination."""
        near, far = self.access[source], self.access[destination]
        last_hop = _PS_PER_BYTE_BPS / self.rate_bps[destination]
        per_byte = np.where(near == destination, 0.0, self.ps_per_byte[near, far] + last_hop)
        delay = self.access_delay_ps[source] + np.where(
            near == destination, 0.0, self.delay_ps[near, far] + self.access_delay_ps[destination]
        )
        return np.asarray(delay + per_byte * frame_bytes, dtype=np.float64)


def path_table(config: Mapping[str, Any]) -> PathTable:
    """Paths of a job configuration (`nics`, `switches` and `links` as the dataplane takes them)."""
    nics, switches = len(config["nics"]), len(config["switches"])
    size = nics + switches
    access = np.zeros(nics, dtype=np.int64)
    access_delay = np.zeros(nics)
    rate = np.zeros(nics)
    neighbours: list[list[tuple[int, float, float]]] = [[] for _ in range(size)]
    for link in config["links"]:
        ends = [_node(link[end]["node"], nics) for end in ("a", "b")]
        for here, there in (ends, ends[::-1]):
            if here < nics:
                access[here], access_delay[here] = there, link["delay_ps"]
                rate[here] = link["rate_bps"]
            elif there >= nics:
                per_byte = _PS_PER_BYTE_BPS / link["rate_bps"]
                neighbours[here].append((there, float(link["delay_ps"]), per_byte))
    delay, per_byte_sum = _all_pairs(sorted(set(access.tolist())), neighbours, size)
    return PathTable(access, access_delay, rate, delay, per_byte_sum)


def _node(node: Mapping[str, int], nics: int) -> int:
    """One number for a NIC or switch: NICs first."""
    return node["nic"] if "nic" in node else nics + node["switch"]


def _all_pairs(
    sources: Sequence[int], neighbours: Sequence[Sequence[tuple[int, float, float]]], size: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Dijkstra from every access node; the weight is that of a full frame."""
    delay = np.full((size, size), np.inf)
    per_byte = np.full((size, size), np.inf)
    for source in sources:
        queue = [(0.0, 0.0, 0.0, source)]
        while queue:
            _, delay_ps, rate_ps, node = heapq.heappop(queue)
            if np.isfinite(delay[source, node]):
                continue
            delay[source, node], per_byte[source, node] = delay_ps, rate_ps
            for there, link_ps, byte_ps in neighbours[node]:
                sums = (delay_ps + link_ps, rate_ps + byte_ps)
                heapq.heappush(queue, (sums[0] + sums[1] * _REFERENCE_FRAME_BYTES, *sums, there))
    return delay, per_byte
