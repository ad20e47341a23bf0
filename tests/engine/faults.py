"""A log whose transactional writers fail as real ones do, at the appends that a test chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from tidelog.log.port import (
    TRANSACTION_SECONDS,
    GroupDescription,
    Isolation,
    Log,
    LogDescription,
    LogUnavailable,
    Member,
    NewRecord,
    OutcomeUnknown,
    Producer,
    Reader,
    TopicDescription,
    TopicPartition,
    TopicSpec,
    Writer,
)


class Fault(Enum):
    """What becomes of an append."""

    REFUSED = auto()
    """Nothing is written, and the writer is told."""
    LOST = auto()
    """Nothing is written, and the writer is left in doubt."""
    UNACKNOWLEDGED = auto()
    """All is written, and the writer is left in doubt."""
    HANGS = auto()
    """No answer ever comes, and no timeout either."""


@dataclass
class Held:
    """An append that waits, and what becomes of it once it is let go."""

    then: Fault | None = None
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def wait(self) -> None:
        self.reached.set()
        await self.let_go.wait()


OnAppend = Callable[[Sequence[NewRecord]], Fault | Held | None]


def once(fault: Fault | Held, topic: str) -> OnAppend:
    """The fault for the first append that writes to the topic."""
    left = [fault]

    def on_append(records: Sequence[NewRecord]) -> Fault | Held | None:
        return left.pop() if left and any(record.topic == topic for record in records) else None

    return on_append


class FaultyWriter(Writer):
    def __init__(self, writer: Writer, on_append: OnAppend) -> None:
        self._writer = writer
        self._on_append = on_append

    async def append(self, records: Sequence[NewRecord], *, timeout: float) -> None:
        fault = self._on_append(records)
        if isinstance(fault, Held):
            await fault.wait()
            fault = fault.then
        match fault:
            case Fault.REFUSED:
                raise LogUnavailable("The log did not answer.")
            case Fault.LOST:
                raise OutcomeUnknown("No answer came.")
            case Fault.UNACKNOWLEDGED:
                await self._writer.append(records, timeout=timeout)
                raise OutcomeUnknown("No answer came.")
            case Fault.HANGS:
                await asyncio.Event().wait()
            case None:
                await self._writer.append(records, timeout=timeout)

    async def close(self) -> None:
        await self._writer.close()


class FaultyProducer(Producer):
    def __init__(self, producer: Producer, on_append: OnAppend) -> None:
        self._producer = producer
        self._on_append = on_append

    async def append(self, records: Sequence[NewRecord], *, timeout: float) -> list[int]:
        match self._on_append(records):
            case Fault.REFUSED:
                raise LogUnavailable("The log did not answer.")
            case Fault.LOST:
                raise OutcomeUnknown("No answer came.")
            case Fault.UNACKNOWLEDGED:
                await self._producer.append(records, timeout=timeout)
                raise OutcomeUnknown("No answer came.")
            case None:
                return await self._producer.append(records, timeout=timeout)
            case other:
                raise NotImplementedError(other)

    async def close(self) -> None:
        await self._producer.close()


class FaultyLog(Log):
    """Another log, but for what its writers and producers do."""

    def __init__(self, log: Log, on_append: OnAppend) -> None:
        self._log = log
        self._on_append = on_append

    @property
    def address(self) -> str:
        return self._log.address

    async def create_topics(self, topics: Sequence[TopicSpec]) -> list[str]:
        return await self._log.create_topics(topics)

    async def partitions(self, topic: str) -> int:
        return await self._log.partitions(topic)

    async def describe(self) -> LogDescription:
        return await self._log.describe()

    async def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        return await self._log.describe_topics(names)

    async def groups(self, prefix: str) -> list[GroupDescription]:
        return await self._log.groups(prefix)

    async def forget_group(self, name: str) -> None:
        await self._log.forget_group(name)

    async def start_offset(self, tp: TopicPartition) -> int:
        return await self._log.start_offset(tp)

    async def offset_at(self, tp: TopicPartition, at: float) -> int:
        return await self._log.offset_at(tp, at)

    async def end_offset(self, tp: TopicPartition, isolation: Isolation = Isolation.COMMITTED) -> int:
        return await self._log.end_offset(tp, isolation)

    async def producer(self) -> Producer:
        return FaultyProducer(await self._log.producer(), self._on_append)

    async def writer(
        self, transactional_id: str, *, transaction_seconds: float = TRANSACTION_SECONDS
    ) -> Writer:
        writer = await self._log.writer(transactional_id, transaction_seconds=transaction_seconds)
        return FaultyWriter(writer, self._on_append)

    async def reader(
        self, offsets: Mapping[TopicPartition, int], isolation: Isolation = Isolation.COMMITTED
    ) -> Reader:
        return await self._log.reader(offsets, isolation)

    async def join(self, group: str, topic: str) -> Member:
        return await self._log.join(group, topic)

    async def close(self) -> None:
        await self._log.close()
