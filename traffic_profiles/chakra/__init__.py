"""Chakra execution traces: from files to columns, and back to files."""

from traffic_profiles.chakra.node_types import CollectiveType, NodeType
from traffic_profiles.chakra.table import TraceTable

__all__ = ["CollectiveType", "NodeType", "TraceTable"]
