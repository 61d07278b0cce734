"""Concurrent parts of one process that stand and fall together."""

import asyncio
from collections.abc import Coroutine
from typing import Any

__all__ = ["until_first"]


async def until_first(*parts: Coroutine[Any, Any, None]) -> None:
    """Run all parts until the first one ends, then cancel the others.

    An exception of a part is raised; of several, the first in the order of the arguments.
    """
    tasks = [asyncio.ensure_future(part) for part in parts]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        ended = [task for task in tasks if task.done()]
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in ended:
        task.result()
