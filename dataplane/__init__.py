"""The native dataplane: trace decoding, RoCEv2 endpoints, switches, the engine and packet IO.

Everything here is compiled; `_native.pyi` describes it.
"""

from dataplane._native import (
    ArrivalLog,
    ConfigError,
    Emulation,
    Endpoint,
    Program,
    TraceError,
    WallEmulation,
    WireError,
    __version__,
    decode_roce,
    encode_pause,
    encode_roce,
    find_cycle,
    icrc,
    loopback_datagrams_per_s,
    payload_pattern,
    read_trace,
    roce_opcodes,
    send_paced_datagrams,
    topological_order,
    write_capture,
)

__all__ = [
    "ArrivalLog",
    "ConfigError",
    "Emulation",
    "Endpoint",
    "Program",
    "TraceError",
    "WallEmulation",
    "WireError",
    "__version__",
    "decode_roce",
    "encode_pause",
    "encode_roce",
    "find_cycle",
    "icrc",
    "loopback_datagrams_per_s",
    "payload_pattern",
    "read_trace",
    "roce_opcodes",
    "send_paced_datagrams",
    "topological_order",
    "write_capture",
]
