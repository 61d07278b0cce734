"""The times against which a run is measured, and the formula that is shown with every share."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metrics.analysis.bandwidth import (
    ACK_WIRE_BYTES,
    frame_wire_bytes,
    header_efficiency,
    message_wire_bytes,
)
from metrics.analysis.paths import PathTable, path_table

__all__ = ["IdealModel", "ideal_model"]


@dataclass(frozen=True)
class IdealModel:
    """Ideal times of one job on its fabric when nothing else sends."""

    paths: PathTable
    mtu_bytes: int
    slowest_nic_bps: float
    """Line rate of the slowest NIC, bits/s."""
    has_known_latency: bool = True
    """The paths have the delays of the job. False for a real network: its latency is unknown, and
    left out of every ideal, which stays a lower bound."""

    @property
    def goodput_bps(self) -> float:
        """Payload bits/s of the slowest NIC with full packets."""
        return self.slowest_nic_bps * header_efficiency(self.mtu_bytes)

    @property
    def formula(self) -> str:
        """What "% of ideal" of a collective is divided by, in words and numbers."""
        efficiency = header_efficiency(self.mtu_bytes)
        steps = " + serial steps x path latency" if self.has_known_latency else ""
        return (
            f"t_ideal = S x busbw factor / G{steps}, for an all-to-all with "
            "what its busiest rank sends or receives in place of S x factor; "
            f"G = {self.slowest_nic_bps / 1e9:g} Gb/s (slowest NIC) x {efficiency:.4f} "
            f"(MTU {self.mtu_bytes} B / {self.mtu_bytes + 82} B on the link) "
            f"= {self.goodput_bps / 8e9:.3f} GB/s; % of ideal = t_ideal / t{self._unknown}"
        )

    @property
    def flow_formula(self) -> str:
        """What the slowdown of a flow is divided by."""
        path = " + path latency" if self.has_known_latency else ""
        return (
            f"t_ideal = bytes on the link / slower of the two NICs' line rates{path} "
            f"+ way back of the acknowledgement; slowdown = t / t_ideal{self._unknown}"
        )

    @property
    def _unknown(self) -> str:
        unknown = "; the latency of the real network is unknown and not part of it"
        return "" if self.has_known_latency else unknown

    def collective_ns(
        self, bus_bytes: NDArray[np.float64], latency_ns: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Ideal completion times.

        `bus_bytes` is S x factor or what stands for it, `latency_ns` all steps together.
        """
        return bus_bytes * 8e9 / self.goodput_bps + latency_ns

    def path_latency_ns(
        self, source: NDArray[Any], destination: NDArray[Any], size_bytes: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        """One-way latency of messages beyond their own transmission; NIC indices. NaN: unknown."""
        if not self.has_known_latency:
            return np.full(len(source), np.nan)
        frames = frame_wire_bytes(size_bytes, self.mtu_bytes)
        return self.paths.latency_ps(source, destination, frames) / 1e3

    def flow_ns(
        self, source: NDArray[Any], destination: NDArray[Any], size_bytes: NDArray[np.uint64]
    ) -> NDArray[np.float64]:
        """Ideal time from posting to acknowledgement of messages alone in the fabric."""
        rates = self.paths.rate_bps
        rate = np.minimum(rates[source], rates[destination])
        sending_ns = message_wire_bytes(size_bytes, self.mtu_bytes) * 8e9 / rate
        sending_ns = sending_ns + ACK_WIRE_BYTES * 8e9 / rates[destination]
        if not self.has_known_latency:
            return np.asarray(sending_ns, dtype=np.float64)
        back_ps = self.paths.latency_ps(destination, source, ACK_WIRE_BYTES)
        ahead_ns = self.path_latency_ns(source, destination, size_bytes)
        return np.asarray(sending_ns + ahead_ns + back_ps / 1e3, dtype=np.float64)


def ideal_model(config: Mapping[str, Any], *, is_real_network: bool = False) -> IdealModel:
    """Model of a job configuration as the dataplane takes it.

    A real network has other delays than the links of the configuration.
    """
    paths = path_table(config)
    linked = paths.rate_bps[paths.rate_bps > 0]
    slowest = float(linked.min()) if len(linked) else 0.0
    mtu_bytes = int(config["transport"]["mtu_bytes"])
    return IdealModel(paths, mtu_bytes, slowest, has_known_latency=not is_real_network)
