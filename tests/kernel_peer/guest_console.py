"""Runs in guests: the serial console, on which the host asks and the guest answers by JSON lines.

Every answer is one line `@@ {...}`; what else stands there is the kernel's. Standard library only.
"""

import json
import os
import sys


def serve(operations):
    """Answer one line for each line; a method's name is an operation of the host's."""
    tell({"ready": os.uname().release})
    for line in sys.stdin:
        request = json.loads(line)
        operation = request.pop("operation")
        try:
            answer = getattr(operations, operation)(**request)
        except Exception as error:  # noqa: BLE001 - the host must learn of all that goes wrong
            answer = {"error": f"{type(error).__name__}: {error}"}
        tell(answer)


def tell(answer):
    """Write one answer."""
    print("@@ " + json.dumps(answer), flush=True)


def counters(folder):
    """The numbers in the files of a folder of the kernel's counters."""
    files = [path for path in folder.iterdir() if path.name != "lifespan"]
    return {path.name: int(path.read_text()) for path in files}
