"""The records of a run: one directory of tables and `run.json`, the same for run and predict.

`write_records` turns what the engine measured into tables; `load` opens a directory.
"""

from metrics.records.findings import LATENESS_LIMIT_RATIO, lateness_ratio
from metrics.records.storage import RunRecords, load
from metrics.records.writing import verify_bytes, write_records

__all__ = [
    "LATENESS_LIMIT_RATIO",
    "RunRecords",
    "lateness_ratio",
    "load",
    "verify_bytes",
    "write_records",
]
