"""What is read of an InfraGraph infrastructure: devices, instances, links and edges.

Source: the OpenAPI description in the package `infragraph` 3.1.0. Descriptions and annotations are
passed over.
"""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["Component", "Device", "Edge", "Endpoint", "InfragraphFile", "Instance", "Link"]

_Count = Annotated[int, Field(ge=0, le=65_536)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class Component(_Part):
    """A kind of part of a device."""

    name: str
    count: _Count
    choice: str
    """cpu, xpu, nic, memory, port, switch, custom, or device for a device within."""


class Device(_Part):
    """A kind of host or switch; its inner links don't leave it and are passed over."""

    name: str
    components: list[Component] = Field(default_factory=list)


class Instance(_Part):
    """So many of a device."""

    name: str
    device: str
    count: _Count


class Endpoint(_Part):
    """Slices of instances and of their components: `host[0:2]`, `nic[0]`, `cx5[0].port[1]`."""

    instance: str
    component: str


class Edge(_Part):
    """Links between two sets of endpoints."""

    ep1: Endpoint
    ep2: Endpoint
    link: str
    scheme: str = "one2one"


class _Bandwidth(_Part):
    gigabits_per_second: float | None = None
    gigabytes_per_second: float | None = None


class _Latency(_Part):
    ms: float | None = None
    us: float | None = None
    ns: float | None = None


class _Physical(_Part):
    bandwidth: _Bandwidth = _Bandwidth()
    latency: _Latency = _Latency()


class Link(_Part):
    """A kind of link."""

    name: str
    physical: _Physical = _Physical()

    @property
    def rate_gbps(self) -> float | None:
        """Gb/s; transfers per second say no rate, for an encoding is not given."""
        bandwidth = self.physical.bandwidth
        if bandwidth.gigabits_per_second is not None:
            return bandwidth.gigabits_per_second
        bytes_per_second = bandwidth.gigabytes_per_second
        return None if bytes_per_second is None else bytes_per_second * 8

    @property
    def delay_ns(self) -> int | None:
        """Latency, ns."""
        latency = self.physical.latency
        for value, scale in ((latency.ns, 1), (latency.us, 1e3), (latency.ms, 1e6)):
            if value is not None:
                return round(value * scale)
        return None


class InfragraphFile(_Part):
    """An infrastructure."""

    name: str = ""
    devices: list[Device]
    instances: list[Instance] = Field(default_factory=list)
    links: list[Link] = Field(default_factory=list)
    edges: list[Edge] = Field(default_factory=list)
