"""Chakra execution traces: from files to columns, and back to files."""

from traffic_profiles.chakra.conversion import convert_trace
from traffic_profiles.chakra.node_types import CollectiveType, NodeType
from traffic_profiles.chakra.reader import rank_of, read_trace, read_traces, trace_files
from traffic_profiles.chakra.table import TraceTable
from traffic_profiles.chakra.writer import TraceBuilder, TraceNode, write_trace

__all__ = [
    "CollectiveType",
    "NodeType",
    "TraceBuilder",
    "TraceNode",
    "TraceTable",
    "convert_trace",
    "rank_of",
    "read_trace",
    "read_traces",
    "trace_files",
    "write_trace",
]
