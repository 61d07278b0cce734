"""Concurrent parts of one process that stand and fall together."""

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any, Final

__all__ = ["until_first"]

_CANCEL_AGAIN_S: Final = 0.1


async def until_first(*parts: Coroutine[Any, Any, None]) -> None:
    """Run all parts until the first one ends, then cancel the others.

    An exception of a part is raised; of several, the first in the order of the arguments.
    """
    tasks = [asyncio.create_task(part) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ended = [task for task in tasks if task.done()]
    finally:
        await _cancel(tasks)
    for task in ended:
        task.result()


async def _cancel(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Cancel until it has worked: `asyncio.wait_for` of CPython 3.11 can swallow a cancellation.

    *Source*: python/cpython issue 86296.
    """
    pending = {task for task in tasks if not task.done()}
    while pending:
        for task in pending:
            task.cancel()
        _, pending = await asyncio.wait(pending, timeout=_CANCEL_AGAIN_S)
    await asyncio.gather(*tasks, return_exceptions=True)
