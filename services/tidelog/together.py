"""Several things at once, none of which outlives the call."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

T = TypeVar("T")


async def together(works: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
    """What all of them return, in their order.

    When one fails, or the call is cancelled, the others are ended first. `asyncio.gather` would let them go
    on, with what the caller closes next; a `TaskGroup` would hide the error in a group.

    Raises:
        BaseException: what the first that failed has raised.
    """
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
