"""What was decided, on its way into the log: one transaction under way, and the next one being filled.

A decision stands on those before it, whether their transaction is under way or in the log. So when one fails,
all that was decided since is void as well: the failure ends the tenure, and with it the state and the open
batch. Nobody has seen anything of them, because answers are records of the transaction themselves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import TypeVar

from tidelog.engine.batch import Batch
from tidelog.engine.takeover import Tenure

T = TypeVar("T")


class Pipeline:
    """The transactions of a tenure, one after the other.

    Attributes:
        batch: what is decided and not sent yet; decisions are added here.
        began: the monotonic time at which the transaction under way began; None when there is none.
    """

    def __init__(self, tenure: Tenure, new_batch: Callable[[], Batch], commit_seconds: float) -> None:
        self.batch = new_batch()
        self.began: float | None = None
        self._tenure = tenure
        self._new_batch = new_batch
        self._commit_seconds = commit_seconds
        self._commit: asyncio.Task[None] | None = None

    def offer(self) -> None:
        """Send the batch off; while a transaction is under way it goes on filling until that one ends."""
        if self._commit is None and self.batch:
            self._begin()

    async def settle(self) -> None:
        """Wait until the transaction under way has ended.

        Raises:
            LogError: it failed. The tenure is over.
        """
        if self._commit is not None:
            await self._commit
            self._commit = self.began = None

    async def make_room(self) -> None:
        """Send the batch off as soon as the transaction under way has ended; an empty one is open then.

        Raises as `settle`.
        """
        await self.settle()
        self.offer()

    async def drain(self) -> None:
        """Return when all that was decided stands in the log. Raises as `settle`."""
        await self.make_room()
        await self.settle()

    async def meanwhile(self, waiting: Coroutine[None, None, T]) -> T:
        """Wait for something, and keep transactions going: when one ends, what was decided since follows.

        Raises:
            LogError: a transaction failed, or what was waited for. The tenure is over.

        Whatever ends the wait, nothing that was waited for goes on.
        """
        commit = self._commit
        if commit is None:
            return await waiting
        task = asyncio.ensure_future(waiting)
        try:
            while not task.done():
                await asyncio.wait(
                    [task] if commit is None else [task, commit], return_when=asyncio.FIRST_COMPLETED
                )
                if commit is not None and commit.done():
                    await self.make_room()
                    commit = self._commit
            return task.result()
        finally:
            await _break_off(task)

    async def break_off(self) -> None:
        """Let go of the transaction under way. What becomes of it is what a cancelled append leaves open."""
        if self._commit is not None:
            await _break_off(self._commit)

    def _begin(self) -> None:
        """Take what was decided, with what it changed in the state, and send it off."""
        records = self.batch.records(self._tenure.state, self._tenure.positions)
        self.batch = self._new_batch()
        self.began = time.monotonic()
        append = self._tenure.writer.append(records, timeout=self._commit_seconds)
        self._commit = asyncio.create_task(append)


async def _break_off(task: asyncio.Task[T]) -> None:
    """Cancel a task if it still runs, and wait until it has; what it would have raised is of no use."""
    if not task.done():
        task.cancel()
        await asyncio.wait([task])
    if not task.cancelled():
        task.exception()
