"""What each of several equal-cost ports should have carried, and what it did.

The expectation is computed from the job alone, apart from the engine: what every flow sent out of
its NIC is walked through the routes, at each switch by the documented hash (`dataplane/src/fabric/
ecmp.rs`), or in even parts where packets are spread by chance or by queue. Links that failed or
were added are no part of it, nor are packets that were lost on the way.
"""

import ipaddress
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

__all__ = ["ECMP_SCHEMA", "ecmp_shares", "hash_choices", "mean_balance"]

ECMP_SCHEMA: Mapping[str, Any] = {
    "switch": pl.String, "group": pl.UInt32, "port": pl.UInt16, "link": pl.String,
    "next_node": pl.String, "weight": pl.UInt32, "decided_by": pl.String,
    "expected_flows": pl.UInt32, "flows": pl.UInt32, "expected_bytes": pl.Float64,
    "tx_bytes": pl.UInt64, "even_share_ratio": pl.Float64, "expected_share_ratio": pl.Float64,
    "share_ratio": pl.Float64, "expected_max_over_mean": pl.Float64, "max_over_mean": pl.Float64,
}  # fmt: skip
"""What `ecmp_shares` returns."""
_ROCE_PORT, _UDP = 4791, 17
_HOP_LIMIT = 64
"""Switches that a packet may pass: its time to live."""
_LEAST_BYTES = 1e-6


@dataclass(frozen=True, slots=True)
class _Group:
    """A switch and the ports that it may choose among; a port that stands twice has weight 2."""

    switch: int
    ports: tuple[int, ...]


def _mix(value: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64's output function. *Source*: Steele, Lea, Flood, OOPSLA 2014."""
    z = value
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
    return z ^ (z >> np.uint64(31))


HASH_FIELDS = (
    "source_address", "destination_address", "source_port", "destination_port", "protocol"
)  # fmt: skip
"""What a switch's hash covers unless it says otherwise."""


def hash_choices(
    seed: int,
    sources: NDArray[np.uint64],
    destinations: NDArray[np.uint64],
    ports: NDArray[np.uint64],
    choices: int,
    fields: Sequence[str] = HASH_FIELDS,
) -> NDArray[np.int64]:
    """Which of `choices` each flow takes: mix(mix(seed ^ addresses) ^ ports), by its high bits.

    Of what `fields` doesn't name, zeros stand in the hash.

    `sources`, `destinations` (IPv4 addresses as integers) and `ports` (UDP source ports) are
    uint64[flows]; so is the result, from 0.
    """
    given = [np.uint64(field in fields) for field in HASH_FIELDS]
    constant = (_ROCE_PORT << 32) * int(given[3]) | _UDP * int(given[4])
    addresses = sources * given[0] << np.uint64(32) | destinations * given[1]
    behind = ports * given[2] << np.uint64(48) | np.uint64(constant)
    hashes = _mix(_mix(np.uint64(seed) ^ addresses) ^ behind)
    count, low = np.uint64(choices), np.uint64(0xFFFF_FFFF)
    carried = (hashes & low) * count >> np.uint64(32)
    return (((hashes >> np.uint64(32)) * count + carried) >> np.uint64(32)).astype(np.int64)


def ecmp_shares(config: Mapping[str, Any], flow_links: pl.DataFrame) -> pl.DataFrame:
    """One row for each port of each group that anything crossed or was expected at; `ECMP_SCHEMA`.

    `flow_links` is the table of the records. Loads are compared per weight. Empty where flows were
    not counted.
    """
    flows = flow_links.filter(pl.col("source_rank").is_not_null()).cast(
        {"source": pl.String, "destination": pl.String, "link": pl.String}
    )
    if flows.is_empty() or not config["switches"]:
        return pl.DataFrame(schema=dict(ECMP_SCHEMA))
    fabric = _Fabric(config)
    expected = _expected(fabric, flows)
    actual = _actual(fabric, flows)
    groups = sorted(
        {group for group, _ in (*expected, *actual)}, key=lambda group: (group.switch, group.ports)
    )
    numbers: dict[int, int] = {}
    rows: list[tuple[Any, ...]] = []
    for group in groups:
        number = numbers[group.switch] = numbers.get(group.switch, -1) + 1
        rows += _rows(fabric, group, number, expected, actual)
    return pl.DataFrame(rows, schema=dict(ECMP_SCHEMA), orient="row")


def mean_balance(shares: pl.DataFrame, column: str = "max_over_mean") -> float | None:
    """Largest load over mean, averaged over the groups by their bytes; None without any."""
    total = float(shares["tx_bytes"].sum())
    if not total:
        return None
    return float((shares[column].fill_null(1.0) * shares["tx_bytes"]).sum()) / total


class _Fabric:
    """The job's routes and links, by index."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self.switches: Sequence[Mapping[str, Any]] = config["switches"]
        self.names = [switch["name"] for switch in self.switches]
        self.nic_of_rank = {nic["rank"]: index for index, nic in enumerate(config["nics"])}
        self.address = {
            nic["rank"]: int(ipaddress.IPv4Address(nic["address"])) for nic in config["nics"]
        }
        nics = [nic["name"] for nic in config["nics"]]
        self.switch_of_nic: dict[int, int] = {}
        self.next_switch: dict[tuple[int, int], int | None] = {}
        self.link: dict[tuple[int, int], tuple[str, str]] = {}
        """Switch and port -> name of the link and of the node at its other end."""
        for link in config["links"]:
            for here, there in ((link["a"], link["b"]), (link["b"], link["a"])):
                beyond = there["node"].get("switch")
                if "nic" in here["node"]:
                    if beyond is not None:
                        self.switch_of_nic[here["node"]["nic"]] = beyond
                    continue
                place = (here["node"]["switch"], here["port"])
                self.next_switch[place] = beyond
                name = nics[there["node"]["nic"]] if beyond is None else self.names[beyond]
                self.link[place] = (link["name"], name)

    def ports(self, switch: int, nic: int) -> tuple[int, ...]:
        """The ports that lead to a NIC."""
        return tuple(self.switches[switch]["routes"][nic])

    def decided_by(self, switch: int) -> str:
        """`hash`, `chance` or `queue`."""
        mode = (self.switches[switch].get("path_selection") or {}).get("mode", "flow")
        return {"flow": "hash", "shortest_queue": "queue"}.get(mode, "chance")


_Load = dict[tuple[_Group, int], tuple[float, int]]
"""Bytes and flows by group and port."""


def _expected(fabric: _Fabric, flows: pl.DataFrame) -> _Load:
    """What every port of every group should carry of what left the NICs."""
    keys = ["source_rank", "destination_rank", "source_port"]
    leaving = flows.filter(~pl.col("source").str.contains(":", literal=True))
    sent = leaving.group_by(keys).agg(pl.col("tx_bytes").sum()).sort(keys)
    sent = sent.filter(pl.col("destination_rank").is_in([*fabric.nic_of_rank]))
    walk = _Walk(fabric, sent)
    first = [fabric.switch_of_nic.get(fabric.nic_of_rank[r], -1) for r in sent["source_rank"]]
    switch = np.array(first, dtype=np.int64)
    at = _Parts(switch, np.arange(len(sent)), sent["tx_bytes"].to_numpy().astype(np.float64))
    for _ in range(_HOP_LIMIT):
        at = at.at_switches()
        if not len(at.flow):
            break
        at = walk.step(at)
    return walk.load


@dataclass(frozen=True, slots=True)
class _Parts:
    """Flows, or parts of them, and where they are; int64, int64 and float64[parts]."""

    switch: NDArray[np.int64]
    """-1 where none is."""
    flow: NDArray[np.int64]
    bytes: NDArray[np.float64]

    def at_switches(self) -> "_Parts":
        """Those that are at a switch; of a flow at a switch one part."""
        there = self.switch >= 0
        key = self.switch[there] << 32 | self.flow[there]
        unique, place = np.unique(key, return_inverse=True)
        sizes = np.bincount(place, self.bytes[there], len(unique)).astype(np.float64)
        return _Parts(unique >> 32, unique & 0xFFFF_FFFF, sizes)


class _Walk:
    """Flows on their way: at each step every part passes one switch."""

    def __init__(self, fabric: _Fabric, sent: pl.DataFrame) -> None:
        self.load: _Load = {}
        self._fabric = fabric
        ranks = [sent["source_rank"].to_list(), sent["destination_rank"].to_list()]
        self._nic = np.array([fabric.nic_of_rank[rank] for rank in ranks[1]], np.int64)
        self._ends = [np.array([fabric.address[r] for r in rank], np.uint64) for rank in ranks]
        self._port = sent["source_port"].to_numpy().astype(np.uint64)
        self._numbers: dict[_Group, int] = {}
        self._of_switch: dict[int, NDArray[np.int64]] = {}

    def step(self, at: _Parts) -> _Parts:
        """Pass all parts through their switches."""
        number = np.empty(len(at.flow), np.int64)
        for switch in np.unique(at.switch).tolist():
            here = at.switch == switch
            number[here] = self._groups(switch)[self._nic[at.flow[here]]]
        order = np.argsort(number, kind="stable")
        bounds = np.flatnonzero(np.diff(number[order])) + 1
        groups = list(self._numbers)
        passed = [
            part
            for members in np.split(order, bounds)
            if groups[number[members[0]]].ports
            for part in self._sent(groups[number[members[0]]], at.flow[members], at.bytes[members])
        ]
        if not passed:
            return _Parts(at.switch[:0], at.flow[:0], at.bytes[:0])
        return _Parts(
            np.concatenate([part.switch for part in passed]),
            np.concatenate([part.flow for part in passed]),
            np.concatenate([part.bytes for part in passed]),
        )

    def _groups(self, switch: int) -> NDArray[np.int64]:
        """Number of the group that decides at a switch, by NIC."""
        if switch not in self._of_switch:
            nics = range(len(self._fabric.nic_of_rank))
            groups = [_Group(switch, self._fabric.ports(switch, nic)) for nic in nics]
            numbers = [self._numbers.setdefault(group, len(self._numbers)) for group in groups]
            self._of_switch[switch] = np.array(numbers, np.int64)
        return self._of_switch[switch]

    def _sent(
        self, group: _Group, flow: NDArray[np.int64], sizes: NDArray[np.float64]
    ) -> Iterator[_Parts]:
        """What leaves a group, counted if it has a choice."""
        for port, flows, bytes_sent in self._ways(group, flow, sizes):
            if len(set(group.ports)) > 1:
                before = self.load.get((group, port), (0.0, 0))
                self.load[group, port] = (
                    before[0] + float(bytes_sent.sum()), before[1] + len(flows)
                )  # fmt: skip
            beyond = self._fabric.next_switch[group.switch, port]
            place = np.full(len(flows), -1 if beyond is None else beyond, np.int64)
            yield _Parts(place, flows, bytes_sent)

    def _ways(
        self, group: _Group, flow: NDArray[np.int64], sizes: NDArray[np.float64]
    ) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.float64]]]:
        """Port, flows and bytes."""
        ports = group.ports
        if len(ports) == 1:
            yield ports[0], flow, sizes
            return
        if self._fabric.decided_by(group.switch) != "hash":
            for port in dict.fromkeys(ports):
                yield port, flow, sizes * (ports.count(port) / len(ports))
            return
        switch = self._fabric.switches[group.switch]
        seed, fields = switch["ecmp_seed"], switch.get("hash_fields", HASH_FIELDS)
        ends = [end[flow] for end in self._ends]
        choice = hash_choices(seed, ends[0], ends[1], self._port[flow], len(ports), fields)
        for port in dict.fromkeys(ports):
            mine = np.isin(choice, [place for place, of in enumerate(ports) if of == port])
            if mine.any():
                yield port, flow[mine], sizes[mine]


def _actual(fabric: _Fabric, flows: pl.DataFrame) -> _Load:
    """What every port of every group carried."""
    index = {name: number for number, name in enumerate(fabric.names)}
    load: _Load = {}
    crossed = flows.filter(pl.col("source").str.contains(":", literal=True))
    sums = crossed.group_by("source", "destination_rank").agg(
        pl.col("tx_bytes").sum(), pl.len().alias("flows")
    )
    for end, rank, size, count in sums.iter_rows():
        name, _, port = end.rpartition(":")
        if rank not in fabric.nic_of_rank:
            continue
        group = _Group(index[name], fabric.ports(index[name], fabric.nic_of_rank[rank]))
        if len(set(group.ports)) > 1:
            before = load.get((group, int(port)), (0.0, 0))
            load[group, int(port)] = (before[0] + size, before[1] + count)
    return load


def _rows(
    fabric: _Fabric, group: _Group, number: int, expected: _Load, actual: _Load
) -> Iterator[tuple[Any, ...]]:
    """The rows of one group, in the order of its ports; ports that are none of it come last."""
    ports = sorted({*group.ports, *(port for of, port in actual if of == group)})
    weights = [group.ports.count(port) for port in ports]
    nothing = (0.0, 0)
    should = [expected.get((group, port), nothing) for port in ports]
    did = [actual.get((group, port), nothing) for port in ports]
    sums = [sum(size for size, _ in loads) for loads in (should, did)]
    if max(sums) < _LEAST_BYTES:
        return
    balances = [_max_over_mean([size for size, _ in loads], weights) for loads in (should, did)]
    name, decided_by = fabric.names[group.switch], fabric.decided_by(group.switch)
    for place, port in enumerate(ports):
        link, beyond = fabric.link[group.switch, port]
        yield (
            name, number, port, link, beyond, weights[place], decided_by, should[place][1],
            did[place][1], should[place][0], int(did[place][0]), weights[place] / len(group.ports),
            _ratio(should[place][0], sums[0]), _ratio(did[place][0], sums[1]), *balances,
        )  # fmt: skip


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _max_over_mean(sizes: Sequence[float], weights: Sequence[int]) -> float | None:
    """Largest load per weight over the mean; 1 is as even as the weights say."""
    per_weight = [size / weight for size, weight in zip(sizes, weights, strict=True) if weight]
    mean = sum(sizes) / max(sum(weights), 1)
    return max(per_weight, default=0.0) / mean if mean else None
