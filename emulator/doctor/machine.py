"""The machine of a run: broker, sockets, processors, and the time dilation it can keep."""

import os
import resource
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from emulator.doctor.diagnosis import Diagnosis, Level
from emulator.lab import LoadedLab

__all__ = ["least_time_dilation", "machine_rules"]

_DATAGRAMS_PER_SECOND_PER_PROCESSOR = 100_000
"""Wire datagrams that one processor sends and receives with the engine around them: measured over
runs of the demo job on a small virtual machine, rounded down."""

_FRAME_OVERHEAD_BYTES = 82
_SPARE_FILES = 64


def machine_rules(loaded: LoadedLab) -> Iterator[Diagnosis]:
    """Findings about a run of the lab on this machine; agents that run already are elsewhere."""
    if loaded.lab.agents.spawn:
        yield _dilation(loaded)
        yield _processors(loaded)
        yield _open_files(loaded)
    yield _broker(loaded)


def least_time_dilation(loaded: LoadedLab, processors: int) -> int:
    """The smallest dilation at which `processors` carry every NIC sending at its line rate.

    A packet crosses one wire per link of its path, at most one more than the switches between.
    """
    fabric, mtu = loaded.fabric, loaded.lab.transport.mtu_bytes
    line_bps = sum(link.rate_bps for link in fabric.nic_links.values())
    packets_per_s = line_bps / (8 * (mtu + _FRAME_OVERHEAD_BYTES))
    wires = 2 + max(int(fabric.switch_hops.max(initial=0)), 0) if fabric.switches else 1
    capacity = processors * _DATAGRAMS_PER_SECOND_PER_PROCESSOR
    return max(1, round(packets_per_s * wires / capacity))


def _dilation(loaded: LoadedLab) -> Diagnosis:
    rule = "the time dilation fits this machine"
    processors = os.cpu_count() or 1
    least = least_time_dilation(loaded, processors)
    given = loaded.lab.time_dilation
    finding = f"{given}; with every NIC at line rate {processors} processors need about {least}"
    if given < least:
        remedy = f"set time_dilation to about {least}, or predict; lateness shows in the report"
        return Diagnosis(Level.WARNING, rule, finding, remedy)
    return Diagnosis(Level.GOOD, rule, finding)


def _processors(loaded: LoadedLab) -> Diagnosis:
    rule = "every agent has a processor"
    agents = loaded.lab.agents
    count = len(agents.placement) if agents.placement is not None else agents.count
    processors = os.cpu_count() or 1
    finding = f"{count} agents, {processors} processors here"
    if count > processors:
        remedy = "use fewer agents, or start them on other machines"
        return Diagnosis(Level.WARNING, rule, finding, remedy)
    return Diagnosis(Level.GOOD, rule, finding)


def _open_files(loaded: LoadedLab) -> Diagnosis:
    rule = "there are sockets enough"
    needed = 2 * len(loaded.fabric.links) + _SPARE_FILES
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    finding = f"{needed} needed at most, {limit} allowed"
    if needed > limit:
        return Diagnosis(Level.WRONG, rule, finding, f"ulimit -n {needed}")
    return Diagnosis(Level.GOOD, rule, finding)


def _broker(loaded: LoadedLab) -> Diagnosis:
    rule = "the broker answers"
    broker = loaded.lab.control.broker
    if broker == "embedded":
        return Diagnosis(Level.GOOD, rule, "it is embedded")
    url = urlsplit(broker)
    port = url.port or (8883 if url.scheme == "mqtts" else 1883)
    try:
        socket.create_connection((url.hostname, port), timeout=2).close()
    except OSError as error:
        finding = f"{url.hostname}:{port}: {error.strerror or error}"
        return Diagnosis(Level.WRONG, rule, finding, "start it, or set control.broker=embedded")
    return Diagnosis(Level.GOOD, rule, f"{url.hostname}:{port} takes connections")
