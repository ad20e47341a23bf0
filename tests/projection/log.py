"""A log in memory with the project's topics, which a test appends to and lets forget."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from tidelog.log.memory import MemoryLog, MemoryStore
from tidelog.log.port import Log, NewRecord
from tidelog.log.topics import Topics

TOPICS = Topics("test")
BOUND = 20.0
"""The bound of every wait in these tests, in seconds: far more than any of them needs."""
_RETENTION = 1_000.0


class ForgetfulStore(MemoryStore):
    """A log that can be told to forget its transitions, as a retention would in time."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(clock=lambda: self._now)

    def forget(self) -> None:
        """Forget everything that is in the topics now, but what compaction keeps."""
        self._now += 2 * _RETENTION
        self.clean()


async def new_log(partitions: int = 1, store: MemoryStore | None = None) -> MemoryLog:
    """A log with the topics of an installation."""
    log = MemoryLog(store)
    specs = TOPICS.specs(partitions)
    await log.create_topics(
        [
            replace(spec, retention_seconds=_RETENTION if spec.name == TOPICS.transitions else None)
            for spec in specs
        ]
    )
    return log


async def append(log: Log, records: Sequence[NewRecord]) -> None:
    """Append records in their order."""
    producer = await log.producer()
    await producer.append(records, timeout=BOUND)
    await producer.close()


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop go on until the condition holds."""
    async with asyncio.timeout(BOUND):
        while not condition():  # noqa: ASYNC110  what is waited for has no event to wait on
            await asyncio.sleep(0)
