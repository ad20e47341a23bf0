"""A role at work in a test: it runs until the end of a block, and is stopped as SIGTERM stops it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol

BOUND = 30.0


class Role(Protocol):
    """An engine, a worker, a projector, an observer."""

    async def run(self, stop: asyncio.Event) -> None: ...


@asynccontextmanager
async def at_work(role: Role, *, bound: float = BOUND) -> AsyncIterator[asyncio.Task[None]]:
    """Run a role until the end of the block, and stop it within `bound` seconds.

    What the role ended with is raised, also where the block fails: mostly that is why. A role that the block
    has cancelled ended as it should.
    """
    stop = asyncio.Event()
    task = asyncio.create_task(role.run(stop))
    try:
        yield task
    finally:
        stop.set()
        try:
            async with asyncio.timeout(bound):
                await asyncio.wait([task])
        finally:
            task.cancel()
        if not task.cancelled():
            task.result()
