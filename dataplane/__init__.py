"""The native dataplane: trace decoding, RoCEv2 endpoints, switches, the engine and packet IO.

Everything here is compiled; `_native.pyi` describes it.
"""

from dataplane._native import (
    TraceError,
    __version__,
    find_cycle,
    read_trace,
    topological_order,
)

__all__ = ["TraceError", "__version__", "find_cycle", "read_trace", "topological_order"]
