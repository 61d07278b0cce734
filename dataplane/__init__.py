"""The native dataplane: trace decoding, RoCEv2 endpoints, switches, the engine and packet IO.

Everything here is compiled; `_native.pyi` describes it.
"""

from dataplane._native import __version__

__all__ = ["__version__"]
