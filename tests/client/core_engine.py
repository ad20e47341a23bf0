"""An engine for the client's tests: the real decisions, no transactions, and answers that can get lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeVar

from tidelog.core.decide import decide
from tidelog.core.decision import Addressed
from tidelog.core.state import PartitionState
from tidelog.log.memory import MemoryLog, MemoryStore
from tidelog.log.port import (
    TRANSACTION_SECONDS,
    Isolation,
    LogError,
    NewRecord,
    Producer,
    Reader,
    Record,
    TopicPartition,
    Writer,
)
from tidelog.log.topics import Topics
from tidelog_events.codec import encode_answer
from tidelog_events.commands import Command
from tidelog_events.identity import JobId, Partition, partition_of, queue_of
from tidelog_events.instants import Instant
from tidelog_events.parsing import Refusal, parse_command, read_object
from tidelog_events.record import JobRecord
from tidelog_events.replies import Answer

TOPICS = Topics()
PARTITIONS = 4
T = TypeVar("T")
REPLY_PARTITIONS = 3


@dataclass(slots=True)
class CoreEngine:
    """Decides the commands of all partitions.

    Attributes:
        commands: what it has read, in order.
        loses: asked for each answer; True loses it.
        alter: changes an answer on its way.
    """

    log: MemoryLog
    commands: list[Command | Refusal] = field(default_factory=list)
    loses: Callable[[Answer], bool] = lambda _: False
    states: list[PartitionState] = field(
        default_factory=lambda: [PartitionState(Partition(p), PARTITIONS) for p in range(PARTITIONS)]
    )

    def job(self, job_id: JobId) -> JobRecord | None:
        """A job as it is now."""
        return self.states[partition_of(queue_of(job_id), PARTITIONS)].jobs.get(job_id)

    @property
    def job_ids(self) -> list[JobId]:
        """All jobs, in order of birth within each partition."""
        return [job_id for state in self.states for job_id in state.jobs]

    async def run(self, reader: Reader, producer: Producer) -> None:
        """Serve until it is cancelled."""
        while True:
            answers: list[NewRecord] = []
            for record in await reader.read(max_records=1_000, timeout=60):
                command = parse_command(read_object(record.value))
                self.commands.append(command)
                state = self.states[record.partition]
                decision = decide(state, command, Instant(time.time_ns() // 1_000), (record.offset,))
                answers += [
                    NewRecord(
                        TOPICS.replies,
                        partition_of(output.to, REPLY_PARTITIONS),
                        output.to.encode(),
                        encode_answer(output.answer),
                    )
                    for output in decision.outputs
                    if isinstance(output, Addressed)
                    and output.to is not None
                    and not self.loses(output.answer)
                ]
            await producer.append(answers, timeout=5)


@asynccontextmanager
async def running_engine(store: MemoryStore) -> AsyncIterator[CoreEngine]:
    """An engine that reads the commands from the first one on."""
    async with MemoryLog(store) as log:
        tps = [TopicPartition(TOPICS.commands, partition) for partition in range(PARTITIONS)]
        engine = CoreEngine(log)
        reader = await log.reader(dict.fromkeys(tps, 0))
        task = asyncio.create_task(engine.run(reader, await log.producer()))
        try:
            yield engine
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                task.result()


class RecordingProducer(Producer):
    """Notes each append, and can be held up or made to fail."""

    def __init__(self, log: ProbedLog, inner: Producer) -> None:
        self._log = log
        self._inner = inner

    async def append(self, records: Sequence[NewRecord], *, timeout: float) -> list[int]:
        self._log.appends.append(len(records))
        return await self._log.pass_on(lambda: self._inner.append(records, timeout=timeout))

    async def close(self) -> None:
        await self._inner.close()


class RecordingWriter(Writer):
    """Notes each transaction, and can be held up or made to fail, like the producer."""

    def __init__(self, log: ProbedLog, inner: Writer) -> None:
        self._log = log
        self._inner = inner

    async def append(self, records: Sequence[NewRecord], *, timeout: float) -> None:
        self._log.transactions.append([record.partition for record in records])
        await self._log.pass_on(lambda: self._inner.append(records, timeout=timeout))

    async def close(self) -> None:
        self._log.closed_writers += 1
        await self._inner.close()


class FaultyReader(Reader):
    """Reads through a connection that can fail."""

    def __init__(self, failures: list[LogError], inner: Reader) -> None:
        self._failures = failures
        self._inner = inner

    async def read(self, *, max_records: int, timeout: float) -> list[Record]:
        if self._failures:
            raise self._failures.pop(0)
        return await self._inner.read(max_records=max_records, timeout=timeout)

    def position(self, tp: TopicPartition) -> int:
        return self._inner.position(tp)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._inner.seek(tp, offset)

    def pause(self, tp: TopicPartition) -> None:
        self._inner.pause(tp)

    def resume(self, tp: TopicPartition) -> None:
        self._inner.resume(tp)

    async def close(self) -> None:
        await self._inner.close()


class ProbedLog(MemoryLog):
    """A log in memory under observation.

    Attributes:
        appends: how many records each append had.
        transactions: the partitions of the records of each transaction.
        writers: the timeouts of the writers that were opened.
        closed_writers: how many of them were closed.
        gate: cleared, it holds up every append and transaction.
        failures: errors for the next ones, and whether the records are appended all the same.
        read_failures: errors for the next reads.
    """

    def __init__(self, store: MemoryStore | None = None) -> None:
        super().__init__(store)
        self.appends: list[int] = []
        self.transactions: list[list[int]] = []
        self.writers: list[float] = []
        self.closed_writers = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.failures: list[tuple[LogError, bool]] = []
        self.read_failures: list[LogError] = []

    async def pass_on(self, append: Callable[[], Awaitable[T]]) -> T:
        """Append once the gate is open, or fail as the test has said."""
        await self.gate.wait()
        if self.failures:
            error, is_appended = self.failures.pop(0)
            if is_appended:
                await append()
            raise error
        return await append()

    async def producer(self) -> Producer:
        return RecordingProducer(self, await super().producer())

    async def writer(
        self, transactional_id: str, *, transaction_seconds: float = TRANSACTION_SECONDS
    ) -> Writer:
        self.writers.append(transaction_seconds)
        return RecordingWriter(self, await super().writer(transactional_id))

    async def reader(
        self, offsets: Mapping[TopicPartition, int], isolation: Isolation = Isolation.COMMITTED
    ) -> Reader:
        return FaultyReader(self.read_failures, await super().reader(offsets, isolation))


async def until(condition: Callable[[], bool], timeout: float = 5.0) -> None:
    """Let other tasks run until a condition holds."""
    async with asyncio.timeout(timeout):
        while not condition():  # noqa: ASYNC110 - what is awaited has no event of its own
            await asyncio.sleep(0)
