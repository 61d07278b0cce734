"""The records of a run: one directory of tables and `run.json`, the same for run and predict.

`write_records` turns what the engine measured into tables; `load` opens a directory.
"""

from metrics.records.storage import RunRecords, load
from metrics.records.writing import verify_bytes, write_records

__all__ = ["RunRecords", "load", "verify_bytes", "write_records"]
