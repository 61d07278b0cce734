"""Which algorithm carries a collective: the user's rules, then what NCCL would pick.

Knows collectives by kind, size and group; knows nothing of their expansion.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from dataplane.errors import InputError, Problem
from traffic_profiles.collectives.algorithm import Parameters, SplitMatrix
from traffic_profiles.collectives.expansion import ALGORITHMS
from traffic_profiles.collectives.slicing import Slicing
from traffic_profiles.collectives.split_matrix import read_split_matrix

__all__ = ["AlgorithmRule", "AlgorithmTable", "Choice", "tree_limit_bytes"]


@dataclass(frozen=True, slots=True)
class AlgorithmRule:
    """One rule of the algorithm table; the first one that matches an instance decides."""

    collective: str
    """Kind of collective, for example `all_reduce`; a glob."""
    algorithm: str
    """Algorithm of that kind, for example `ring`."""
    min_size_bytes: int = 0
    """Matches sizes from here; size as in nccl-tests, after scaling."""
    max_size_bytes: int | None = None
    """Matches sizes up to and including this."""
    min_ranks: int = 1
    """Matches groups of at least so many ranks."""
    max_ranks: int | None = None
    """Matches groups of at most so many ranks."""
    group: str = "*"
    """Glob on the process group's name."""
    node: str = "*"
    """Glob on the name of the trace node on the group's first rank."""
    window: int | None = None
    """`pairwise` all-to-all: sends that may be outstanding at a rank."""
    chunk_bytes: int | None = None
    """Pipelined algorithms: bytes of one chunk."""
    channels: int | None = None
    """Channels that share every message."""
    slice_bytes: int | None = None
    """Most bytes of a message; longer ones go in slices."""
    split_matrix_file: Path | None = None
    """All-to-all: JSON or CSV matrix, row = source, column = destination, relative weights."""
    split_matrix: SplitMatrix | None = None
    """The same in memory; without a file."""

    def matches(self, kind: str, size_bytes: int, ranks: int, group: str, node: str) -> bool:
        """Tell whether the rule decides about this instance."""
        return (
            fnmatchcase(kind, self.collective)
            and self.algorithm in ALGORITHMS[kind]
            and self.min_size_bytes <= size_bytes
            and (self.max_size_bytes is None or size_bytes <= self.max_size_bytes)
            and self.min_ranks <= ranks
            and (self.max_ranks is None or ranks <= self.max_ranks)
            and fnmatchcase(group, self.group)
            and fnmatchcase(node, self.node)
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm of an instance, with its parameters."""

    algorithm: str
    """Name in the table of algorithms of its kind."""
    parameters: Parameters
    """What the algorithm is told."""


class AlgorithmTable:
    """Checked rules with their split matrices loaded."""

    def __init__(
        self, rules: Sequence[AlgorithmRule] = (), nccl_channels: int | None = None
    ) -> None:
        """Check the rules; raises `InputError` with every problem found.

        With `nccl_channels`, messages are cut as NCCL cuts them where a rule says nothing else.
        """
        problems = [problem for index, rule in enumerate(rules) for problem in check(index, rule)]
        if problems:
            raise InputError(*problems)
        self._rules = tuple(rules)
        self._nccl_channels = nccl_channels
        files = {rule.split_matrix_file for rule in rules if rule.split_matrix_file is not None}
        self._matrices: Mapping[Path, SplitMatrix] = {
            file: read_split_matrix(file) for file in sorted(files)
        }

    def choose(self, kind: str, size_bytes: int, ranks: int, group: str, node: str) -> Choice:
        """Take the first rule that matches, else what NCCL would pick.

        Raises `InputError` when the rule's split matrix is for another number of ranks.
        """
        for index, rule in enumerate(self._rules):
            if rule.matches(kind, size_bytes, ranks, group, node):
                matrix = self._matrix(index, rule, ranks, group)
                parameters = parameters_of(rule, matrix, self._slicing(kind))
                return Choice(rule.algorithm, parameters)
        algorithm = default_algorithm(kind, size_bytes, ranks)
        return Choice(algorithm, Parameters(slicing=self._slicing(kind)))

    def _slicing(self, kind: str) -> Slicing | None:
        channels = self._nccl_channels
        return None if channels is None else nccl_slicing(kind, channels)

    def _matrix(
        self, index: int, rule: AlgorithmRule, ranks: int, group: str
    ) -> SplitMatrix | None:
        file = rule.split_matrix_file
        matrix = rule.split_matrix if file is None else self._matrices[file]
        if matrix is None or len(matrix.weights) == ranks:
            return matrix
        raise InputError(
            Problem(
                source=str(file or "algorithm rules"),
                place=f"algorithms[{index}]",
                what=f"the matrix is for {len(matrix.weights)} ranks, group '{group}' has {ranks}",
                remedy="restrict the rule with min_ranks and max_ranks or group, or give a matrix "
                f"of {ranks} rows",
            )
        )


def parameters_of(
    rule: AlgorithmRule, matrix: SplitMatrix | None, slicing: Slicing | None
) -> Parameters:
    """Take a rule's parameters, defaults for those it does not give."""
    window = Parameters().window if rule.window is None else rule.window
    given = {
        name: getattr(rule, name)
        for name in ("channels", "slice_bytes")
        if getattr(rule, name) is not None
    }
    if given:
        slicing = replace(slicing or Slicing(), **given)
    return Parameters(
        window=window, chunk_bytes=rule.chunk_bytes, split_matrix=matrix, slicing=slicing
    )


def check(index: int, rule: AlgorithmRule) -> Iterable[Problem]:
    """Yield everything that is wrong with a rule."""

    def problem(what: str, remedy: str) -> Problem:
        return Problem("algorithm rules", what, remedy, place=f"algorithms[{index}]")

    kinds = [kind for kind in ALGORITHMS if fnmatchcase(kind, rule.collective)]
    known = sorted({name for kind in kinds for name in ALGORITHMS[kind]})
    if not kinds:
        yield problem(
            f"no collective is called '{rule.collective}'", f"one of {', '.join(ALGORITHMS)}"
        )
    elif rule.algorithm not in known:
        yield problem(
            f"{rule.collective} has no algorithm '{rule.algorithm}'", f"one of {', '.join(known)}"
        )
    for name in ("window", "chunk_bytes", "channels", "slice_bytes"):
        value = getattr(rule, name)
        if value is not None and value < 1:
            yield problem(f"{name} is {value}", "give at least 1")
    for least, most in (("min_size_bytes", "max_size_bytes"), ("min_ranks", "max_ranks")):
        low, high = getattr(rule, least), getattr(rule, most)
        if high is not None and low > high:
            yield problem(f"{least} {low} is above {most} {high}", "the rule can never match")
    split = rule.split_matrix_file is not None or rule.split_matrix is not None
    if split and "all_to_all" not in kinds:
        yield problem("a split matrix is for all_to_all only", "remove the split matrix")


HOP_LATENCY_NS = 14_000
"""Latency of one network hop with bulk messages. *Source*: NCCL tuning.cc, hwLat NET Simple."""
LINK_BYTES_PER_NS = 50
"""Reference link, 400 Gb/s."""
TREE_EFFICIENCY = 0.92 * 0.5
"""Trees' algorithm bandwidth to the link's. *Source*: NCCL tuning.cc, 0.92 of the bus, at half."""


def tree_limit_bytes(ranks: int) -> int:
    """All-reduce size up to which NCCL's model has trees ahead of the ring; 0 for never.

    One rank per node: the ring takes 2(n-1) hops, the trees 2 log2(n); the ring moves
    2(n-1)/n of the buffer at link rate, the trees the buffer at `TREE_EFFICIENCY` of it.
    """
    extra_hops = 2 * (ranks - 1) - 2 * math.log2(ranks)
    extra_ns_per_byte = (1 / TREE_EFFICIENCY - 2 * (ranks - 1) / ranks) / LINK_BYTES_PER_NS
    return int(max(0.0, extra_hops * HOP_LATENCY_NS / extra_ns_per_byte))


DEFAULTS: Mapping[str, str] = {
    "all_reduce": "ring",
    "reduce_scatter": "ring",
    "all_gather": "ring",
    "all_to_all": "pairwise",
    "broadcast": "chain",
    "reduce": "chain",
    "gather": "linear",
    "scatter": "linear",
    "barrier": "dissemination",
    "send_recv": "direct",
}
"""What NCCL does: rings and chains; all-to-all, gather and scatter as grouped sends."""


def default_algorithm(kind: str, size_bytes: int, ranks: int) -> str:
    """Pick what NCCL would: trees for an all-reduce that latency dominates, else `DEFAULTS`."""
    if kind == "all_reduce" and ranks > 1 and size_bytes <= tree_limit_bytes(ranks):
        return "double_binary_tree"
    return DEFAULTS[kind]


RING_SLICE_BYTES = 1 << 20
"""*Source*: NCCL, protocol Simple: 2 steps of an eighth of a buffer of 4 MiB."""
CHAIN_SLICE_BYTES = 512 << 10
"""Broadcast and reduce. *Source*: NCCL, protocol Simple: 1 step."""
POINT_TO_POINT_SLICE_BYTES = 128 << 10
"""*Source*: NCCL_P2P_NET_CHUNKSIZE."""
LEAST_SHARE_BYTES = 32 << 10
"""*Source*: NCCL, NCCL_SIMPLE_THREAD_THRESHOLD of 64 bytes for each of 512 threads."""


def nccl_slicing(kind: str, channels: int) -> Slicing:
    """Slices of a kind of collective as NCCL makes them."""
    if kind in {"broadcast", "reduce"}:
        most = CHAIN_SLICE_BYTES
    elif kind in {"all_to_all", "gather", "scatter", "send_recv"}:
        most = POINT_TO_POINT_SLICE_BYTES
    else:
        most = RING_SLICE_BYTES
    return Slicing(channels, most, LEAST_SHARE_BYTES)
