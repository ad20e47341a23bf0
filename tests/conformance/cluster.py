"""What the conformance suite needs from an adapter: a log that several processes can connect to.

To put another adapter under the suite, write one more `Cluster` and name it in `conftest.py`.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete

from tidelog.log.kafka.log import KafkaLog
from tidelog.log.memory import MemoryLog, MemoryStore
from tidelog.log.port import (
    Cleanup,
    Isolation,
    Log,
    Member,
    NewRecord,
    Reader,
    Record,
    TopicPartition,
    TopicSpec,
)
from tidelog.log.sqlite import SqliteLog

SECONDS = 20.0
"""The bound of every wait in these tests: far more than any of them needs."""


class WallClock:
    """The time of day, which a test can put forward."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self._ahead

    def advance(self, seconds: float) -> None:
        self._ahead += seconds


class Cluster(ABC):
    """One log, and any number of connections to it. Each stands for a process of its own."""

    @abstractmethod
    async def connect(self) -> Log:
        """Open another connection."""

    @abstractmethod
    async def expire(self, topic: str) -> None:
        """Make the log forget all that the topic holds now, as its retention does in time."""

    @abstractmethod
    async def compact(self) -> None:
        """Make the log compact what it can."""

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""

    async def new_topic(
        self,
        partitions: int = 1,
        cleanup: Cleanup = Cleanup.DELETE,
        *,
        retention_seconds: float | None = None,
    ) -> str:
        """Create a topic with a name that nobody else has."""
        name = f"topic-{uuid4().hex}"
        log = await self.connect()
        assert await log.create_topics([TopicSpec(name, partitions, cleanup, retention_seconds)]) == [name]
        return name


class MemoryCluster(Cluster):
    def __init__(self) -> None:
        self._clock = WallClock()
        self._store = MemoryStore(clock=self._clock)
        self._logs: list[MemoryLog] = []

    async def connect(self) -> Log:
        log = MemoryLog(self._store)
        self._logs.append(log)
        return log

    async def expire(self, topic: str) -> None:  # noqa: ARG002 - time passes for all topics
        self._clock.advance(100_000)
        self._store.clean()

    async def compact(self) -> None:
        self._store.clean()

    async def close(self) -> None:
        for log in self._logs:
            await log.close()


class SqliteCluster(Cluster):
    def __init__(self, folder: Path) -> None:
        self._path = folder / "log.db"
        self._clock = WallClock()
        self._logs: list[SqliteLog] = []

    async def connect(self) -> Log:
        return await self._connect()

    async def _connect(self) -> SqliteLog:
        log = await SqliteLog.open(self._path, clock=self._clock)
        self._logs.append(log)
        return log

    async def expire(self, topic: str) -> None:  # noqa: ARG002 - time passes for all topics
        self._clock.advance(100_000)
        await self.compact()

    async def compact(self) -> None:
        await (await self._connect()).clean()

    async def close(self) -> None:
        await asyncio.gather(*(log.close() for log in self._logs))


class KafkaCluster(Cluster):
    """A broker that stands for the whole session; each test uses topics and ids of its own."""

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._logs: list[KafkaLog] = []

    async def connect(self) -> Log:
        log = await KafkaLog.open(self._bootstrap)
        self._logs.append(log)
        return log

    async def expire(self, topic: str) -> None:
        """Delete the records. By itself a broker does it every few minutes, and by whole files."""
        log = await self.connect()
        tps = [TopicPartition(topic, partition) for partition in range(await log.partitions(topic))]
        ends = {aiokafka.TopicPartition(*tp): RecordsToDelete(await log.end_offset(tp)) for tp in tps}
        admin = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
        await admin.start()
        try:
            await admin.delete_records(ends)
        finally:
            await admin.close()

    async def compact(self) -> None:
        """Nothing: a broker compacts when it likes, and what is to hold has to hold before and after."""

    async def close(self) -> None:
        await asyncio.gather(*(log.close() for log in self._logs))


def record(topic: str, value: str | None, *, partition: int = 0, key: str | None = "key") -> NewRecord:
    """A record of text."""
    return NewRecord(
        topic,
        partition,
        None if key is None else key.encode(),
        None if value is None else value.encode(),
    )


def values(records: Sequence[Record]) -> list[str]:
    """The values of records of text."""
    return [(found.value or b"").decode() for found in records]


async def append(log: Log, *records: NewRecord) -> list[int]:
    producer = await log.producer()
    return await producer.append(records, timeout=SECONDS)


async def read_to_end(log: Log, topic: str, partition: int = 0, *, start: int = 0) -> list[Record]:
    """All that was appended to a partition until now and will be seen, from an offset on.

    Up to the uncommitted end, as a takeover reads: a broker shows a transaction a moment after its commit.
    """
    tp = TopicPartition(topic, partition)
    end = await log.end_offset(tp, Isolation.UNCOMMITTED)
    reader = await log.reader({tp: start})
    found: list[Record] = []
    async with asyncio.timeout(SECONDS):
        while reader.position(tp) < end:
            found += await reader.read(max_records=1_000, timeout=SECONDS)
    await reader.close()
    return found


async def read_count(reader: Reader, count: int) -> list[Record]:
    """The next `count` records."""
    found: list[Record] = []
    async with asyncio.timeout(SECONDS):
        while len(found) < count:
            found += await reader.read(max_records=count - len(found), timeout=SECONDS)
    return found


def fold(records: Sequence[Record]) -> Mapping[bytes | None, bytes]:
    """The state that a changelog describes."""
    state: dict[bytes | None, bytes] = {}
    for found in records:
        if found.value is None:
            state.pop(found.key, None)
        else:
            state[found.key] = found.value
    return state


async def until(condition: Callable[[], bool], *members: Member) -> None:
    """Wait until the members' assignments are as the condition says."""
    async with asyncio.timeout(SECONDS):
        while not condition():
            await asyncio.gather(*(member.changed(timeout=0.05) for member in members))
