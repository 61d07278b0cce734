"""What the kernel counted at the ports of a lab of namespaces while a run went on."""

from collections.abc import Callable
from typing import Any

from emulator.control.outcome import EngineRecords, RunFailed
from emulator.lab import LoadedLab
from emulator.namespaces import Layout, columns, counters, difference, is_up, lay_out
from emulator.ports import is_real

__all__ = ["with_kernel_counters"]


def with_kernel_counters(loaded: LoadedLab, run: Callable[[], EngineRecords]) -> EngineRecords:
    """Run, and put the kernel's counters of every port beside the engine's, as `kernel`.

    Also into the records of a run that fails. Only for a lab of namespaces that is up.
    """
    layout = _layout(loaded)
    if layout is None:
        return run()
    before = counters(layout)

    def counted(records: EngineRecords) -> EngineRecords:
        kernel: dict[str, Any] = columns(difference(before, counters(layout)))
        return records | {"counters": records.get("counters", {}) | {"kernel": kernel}}

    try:
        return counted(run())
    except RunFailed as failure:
        if failure.records is not None and is_up(layout):
            failure.records = counted(failure.records)
        raise


def _layout(loaded: LoadedLab) -> Layout | None:
    if not is_real(loaded) or loaded.lab.namespaces is None or loaded.lab.interfaces:
        return None
    layout = lay_out(loaded)
    return layout if is_up(layout) else None
