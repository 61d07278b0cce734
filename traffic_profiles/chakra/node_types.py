"""Numbers that Chakra v0.0.4 gives to node types and collective types.

*Source*: mlcommons/chakra `schema/protobuf/et_def.proto`, v0.0.4 (the same wire schema as 1.0.0).
"""

from enum import IntEnum

__all__ = ["CollectiveType", "NodeType"]


class NodeType(IntEnum):
    """What a trace node is."""

    INVALID = 0
    METADATA = 1
    MEM_LOAD = 2
    MEM_STORE = 3
    COMP = 4
    COMM_SEND = 5
    COMM_RECV = 6
    COMM_COLL = 7


class CollectiveType(IntEnum):
    """Which collective a COMM_COLL node issues: its `comm_type` attribute."""

    ALL_REDUCE = 0
    REDUCE = 1
    ALL_GATHER = 2
    GATHER = 3
    SCATTER = 4
    BROADCAST = 5
    ALL_TO_ALL = 6
    REDUCE_SCATTER = 7
    REDUCE_SCATTER_BLOCK = 8
    BARRIER = 9
