"""Trace files out: v0.0.4 messages with length prefixes, gzip when the name ends in `.gz`."""

import gzip
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

from traffic_profiles.chakra.node_types import CollectiveType, NodeType
from traffic_profiles.chakra.schema import GlobalMetadata, Node

__all__ = ["AttributeValue", "TraceBuilder", "TraceNode", "write_trace"]

AttributeValue = bool | int | float | str | Sequence[str] | Sequence[bool]
"""Value of an attribute; an int is written as `int64_val`, or `uint64_val` when it needs to be."""

PROCESS_GROUP_NODE = "## process_group:init ##"
"""Name of the node whose inputs list the process groups, as PyTorch writes it."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    """One node to write."""

    id: int
    """Unique within the file."""
    name: str
    type: int
    """`NodeType`, or a number that is unknown to us."""
    duration_us: int = 0
    start_us: int = 0
    data_deps: Sequence[int] = ()
    """Ids of the nodes that must be done first."""
    ctrl_deps: Sequence[int] = ()
    """Ids of call-stack parents."""
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    input_values: str = ""
    """Text of `inputs.values`."""


def write_trace(
    path: Path, nodes: Iterable[TraceNode], *, metadata: Mapping[str, AttributeValue] | None = None
) -> None:
    """Write a v0.0.4 file; `metadata` become attributes beside the version."""
    header = GlobalMetadata(version="0.0.4")
    _set_attributes(header, metadata or {})
    with ExitStack() as stack:
        file: BinaryIO = stack.enter_context(path.open("wb"))
        if path.suffix == ".gz":
            # Without name and time in its header, so that equal traces give equal files.
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)
            file = cast(BinaryIO, stack.enter_context(packed))
        _write_message(file, header)
        for node in nodes:
            _write_message(file, _message(node))


def _message(node: TraceNode) -> Any:
    message = Node(
        id=node.id,
        name=node.name,
        type=int(node.type),
        duration_micros=node.duration_us,
        start_time_micros=node.start_us,
        data_deps=node.data_deps,
        ctrl_deps=node.ctrl_deps,
    )
    if node.input_values:
        message.inputs.values = node.input_values
    _set_attributes(message, node.attributes)
    return message


def _set_attributes(message: Any, attributes: Mapping[str, AttributeValue]) -> None:
    for name, value in attributes.items():
        attribute = message.attr.add(name=name)
        if isinstance(value, bool):
            attribute.bool_val = value
        elif isinstance(value, int):
            if value < 1 << 63:
                attribute.int64_val = value
            else:
                attribute.uint64_val = value
        elif isinstance(value, float):
            attribute.double_val = value
        elif isinstance(value, str):
            attribute.string_val = value
        elif value and isinstance(value[0], bool):
            attribute.bool_list.values.extend(value)
        else:
            attribute.string_list.values.extend(value)


def _write_message(file: BinaryIO, message: Any) -> None:
    content: bytes = message.SerializeToString()
    length = len(content)
    prefix = bytearray()
    while length >= 0x80:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    file.write(bytes(prefix) + content)


class TraceBuilder:
    """Collects the nodes of one rank; every method that adds a node gives its id.

    Ids count from 1. `after` are ids of nodes that must be done first.
    """

    def __init__(self) -> None:
        self.nodes: list[TraceNode] = []

    def add(
        self,
        name: str,
        node_type: NodeType,
        *,
        after: Sequence[int] = (),
        duration_us: int = 0,
        attributes: Mapping[str, AttributeValue] | None = None,
        input_values: str = "",
    ) -> int:
        """Add a node as it is."""
        node_id = len(self.nodes) + 1
        self.nodes.append(
            TraceNode(
                id=node_id,
                name=name,
                type=node_type,
                duration_us=duration_us,
                data_deps=tuple(after),
                attributes=attributes or {},
                input_values=input_values,
            )
        )
        return node_id

    def process_groups(self, groups: Mapping[str, Sequence[int]], *, world_size: int) -> int:
        """Declare process groups (name -> global ranks) as PyTorch does."""
        declared = [
            {"pg_name": name, "ranks": list(ranks), "group_size": len(ranks) or world_size}
            for name, ranks in groups.items()
        ]
        values = str([json.dumps(declared)])
        return self.add(PROCESS_GROUP_NODE, NodeType.METADATA, input_values=values)

    def compute(
        self, name: str, duration_us: int, *, after: Sequence[int] = (), stream: int | None = None
    ) -> int:
        """Add a device computation."""
        attributes = _on_device(stream)
        return self.add(
            name, NodeType.COMP, after=after, duration_us=duration_us, attributes=attributes
        )

    def collective(
        self,
        name: str,
        kind: CollectiveType,
        size_bytes: int,
        *,
        after: Sequence[int] = (),
        group: str = "",
        stream: int | None = None,
    ) -> int:
        """Add a collective; `size_bytes` is this rank's input buffer."""
        attributes = _on_device(stream) | {"comm_type": int(kind), "comm_size": size_bytes}
        if group:
            attributes["pg_name"] = group
        return self.add(name, NodeType.COMM_COLL, after=after, attributes=attributes)

    def send(
        self, name: str, destination: int, size_bytes: int, *, tag: int, after: Sequence[int] = ()
    ) -> int:
        """Add a send to a global rank."""
        attributes = {"comm_size": size_bytes, "comm_tag": tag, "comm_dst": destination}
        attributes["is_cpu_op"] = False
        return self.add(name, NodeType.COMM_SEND, after=after, attributes=attributes)

    def receive(
        self, name: str, source: int, size_bytes: int, *, tag: int, after: Sequence[int] = ()
    ) -> int:
        """Add a receive from a global rank."""
        attributes = {"comm_size": size_bytes, "comm_tag": tag, "comm_src": source}
        attributes["is_cpu_op"] = False
        return self.add(name, NodeType.COMM_RECV, after=after, attributes=attributes)

    def write(self, path: Path) -> None:
        """Write what was collected."""
        write_trace(path, self.nodes)


def _on_device(stream: int | None) -> dict[str, AttributeValue]:
    attributes: dict[str, AttributeValue] = {"is_cpu_op": False}
    if stream is not None:
        attributes["stream"] = stream
    return attributes
