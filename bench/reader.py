"""Reading a large trace: the native reader against Python protobuf, in one run.

Both read the same generated file of 200,000 nodes, shaped like the output of the PyTorch
converter (IOInfo text, nine attributes on each node), and both give every column that a run
needs. Each measurement is a process of its own, so that peak memory is its own; the figures are
medians. Exit status 1 when a goal is missed.

    python -m bench.reader [--nodes N] [--repeat N] [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import dataplane
from bench._report import Figure, Ratio, Report, ratios, tell
from traffic_profiles.chakra.schema import GlobalMetadata, Node

REPOSITORY = Path(__file__).resolve().parent.parent
SPEED_GOAL = 20.0
"""Nodes per second of the native reader, as a multiple of Python protobuf's."""
MEMORY_GOAL = 2.0
"""Peak memory of the native reader, as a multiple of the columns' own size."""


def main() -> int:
    """Generate the file, measure both readers, print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=200_000, help="nodes in the file")
    parser.add_argument("--repeat", type=int, default=5, help="processes for each reader")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--measure", choices=sorted(READERS), help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(READERS[options.measure](options.file)))
        return 0
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "bench.0.et"
        write_converter_like(path, options.nodes)
        result = compare(path, options.nodes, options.repeat)
    return tell(result, is_json=options.json)


def write_converter_like(path: Path, nodes: int) -> None:
    """Write a trace whose nodes look like the PyTorch converter's: about 330 bytes each."""
    values = "[[1024, 4096], [4096, 4096], [], False, None, 1.0, [61, 73, 0, 4194304, 4, 'cuda:0']]"
    shapes = "[[1024, 4096], [4096, 4096], [], [], [], [], []]"
    types = "['Tensor(float)', 'Tensor(float)', 'None', 'Bool', 'None', 'Double']"
    with path.open("wb") as file:
        write_framed(file, GlobalMetadata(version="0.0.4").SerializeToString())
        for index in range(nodes):
            on_device = index % 4 == 3
            collective = index % 40 == 39
            node = Node(
                id=index + 1,
                name="ncclDevKernel_AllReduce_Sum_f32_RING_LL" if collective else "aten::addmm",
                type=7 if collective else 4,
                ctrl_deps=[max(index // 8, 1)],
                data_deps=[index] if index else [],
                duration_micros=index % 97,
            )
            node.inputs.values, node.inputs.shapes, node.inputs.types = values, shapes, types
            node.outputs.values = "[[62, 74, 0, 4194304, 4, 'cuda:0']]"
            for name, number in (
                ("rf_id", index),
                ("fw_parent", 0),
                ("seq_id", index),
                ("scope", 0),
            ):
                node.attr.add(name=name, int64_val=number)
            node.attr.add(name="tid", int64_val=1)
            node.attr.add(name="fw_tid", int64_val=0)
            node.attr.add(name="op_schema", string_val="")
            node.attr.add(name="is_cpu_op", bool_val=not on_device)
            node.attr.add(name="stream", int64_val=7 if on_device else 0)
            if collective:
                node.attr.add(name="comm_type", int64_val=0)
                node.attr.add(name="comm_size", int64_val=67_108_864)
                node.attr.add(name="pg_name", string_val="0")
            write_framed(file, node.SerializeToString())


def write_framed(file: Any, message: bytes) -> None:
    """Write a message behind its length."""
    length, prefix = len(message), bytearray()
    while length >= 0x80:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    file.write(bytes(prefix) + message)


def measure_native(path: Path) -> dict[str, float]:
    """The reader of this project."""
    before = memory_bytes("VmRSS")
    start = time.thread_time()
    columns = dataplane.read_trace(path)
    seconds = time.thread_time() - start
    own = sum(column.nbytes for column in columns.values() if isinstance(column, np.ndarray))
    return {
        "seconds": seconds,
        "nodes": len(columns["id"]),
        "peak_bytes": memory_bytes("VmHWM") - before,
        "column_bytes": own,
    }


def measure_protobuf(path: Path) -> dict[str, float]:
    """Python protobuf: a fresh message for each frame, its fields copied out."""
    before = memory_bytes("VmRSS")
    start = time.thread_time()
    rows: list[tuple[Any, ...]] = []
    with path.open("rb") as file:
        content = file.read()
    position = skip_frame(content, 0)
    while position < len(content):
        length, position = read_varint(content, position)
        node = Node.FromString(content[position : position + length])
        position += length
        attributes = {attr.name: getattr(attr, attr.WhichOneof("value")) for attr in node.attr}
        rows.append((
            node.id, node.type, node.name, tuple(node.data_deps), tuple(node.ctrl_deps),
            node.duration_micros, node.start_time_micros, attributes.get("is_cpu_op"),
            attributes.get("stream"), attributes.get("tid"), attributes.get("ts"),
            attributes.get("comm_type"), attributes.get("comm_size"), attributes.get("comm_src"),
            attributes.get("comm_dst"), attributes.get("comm_tag"), attributes.get("pg_name"),
            attributes.get("num_ops"), attributes.get("tensor_size"),
        ))  # fmt: skip
    seconds = time.thread_time() - start
    return {"seconds": seconds, "nodes": len(rows), "peak_bytes": memory_bytes("VmHWM") - before}


READERS = {"native": measure_native, "protobuf": measure_protobuf}


def skip_frame(content: bytes, position: int) -> int:
    """Position after the message that begins at `position`."""
    length, position = read_varint(content, position)
    return position + length


def read_varint(content: bytes, position: int) -> tuple[int, int]:
    """The varint at `position`, and the position after it."""
    value = shift = 0
    while True:
        byte = content[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def memory_bytes(field: str) -> int:
    """Resident memory of this process: `VmRSS` now, `VmHWM` at its peak."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


def measured(reader: str, path: Path) -> dict[str, float]:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--measure", reader, "--file", str(path)]
    environment = os.environ | {"PYTHONPATH": str(REPOSITORY), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def compare(path: Path, nodes: int, repeat: int) -> Report:
    """Both readers in turns, and the ratios."""
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in READERS}
    for _ in range(repeat):
        for name in READERS:
            runs[name].append(measured(name, path))
    if any(run["nodes"] != nodes for results in runs.values() for run in results):
        raise SystemExit("a reader did not give every node")
    rates = {name: [nodes / run["seconds"] for run in runs[name]] for name in READERS}
    peaks = {name: [run["peak_bytes"] for run in runs[name]] for name in READERS}
    columns = [run["column_bytes"] for run in runs["native"]]
    size_mb = path.stat().st_size / 1e6
    return Report(
        measures=f"reading a trace of {nodes:,} nodes, {size_mb:.1f} MB, with every column",
        figures=[
            *(Figure(f"{name}, speed", "nodes/s", rates[name]) for name in READERS),
            *(Figure(f"{name}, memory", "MB", [b / 1e6 for b in peaks[name]]) for name in READERS),
        ],
        ratios=[
            Ratio(
                "native speed",
                "Python protobuf's",
                ratios(rates["native"], rates["protobuf"]),
                at_least=SPEED_GOAL,
            ),
            Ratio(
                "native peak memory",
                "the columns' own size",
                ratios(peaks["native"], columns),
                below=MEMORY_GOAL,
            ),
        ],
    )


if __name__ == "__main__":
    sys.exit(main())
