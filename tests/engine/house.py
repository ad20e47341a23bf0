"""A log with topics, engines on it, and somebody who sends commands and reads what came of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import orjson
from tests.conformance.cluster import SECONDS, Cluster, fold, read_to_end
from tests.roles import at_work

from tidelog.core.replay import START
from tidelog.core.state import Retention
from tidelog.engine import Engine, EngineSettings, ProcessorSettings
from tidelog.engine.processor import Processor
from tidelog.log.port import Log, NewRecord, Record, TopicPartition
from tidelog.log.topics import Topics
from tidelog_events.identity import Partition, partition_of, queue_of
from tidelog_events.instants import SECOND, Instant
from tidelog_events.wire import WireObject

TOPICS = Topics("t")
REPLY_PARTITIONS = 3
ME = "me"

HASTY = EngineSettings(look_up=0.01, first_pause=0.01, longest_pause=0.05)
RESTLESS = ProcessorSettings(idle_seconds=0.01)


class Clock:
    """The time that is written down; it stands still until a test moves it on."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> Instant:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now = Instant(self.now + round(seconds * SECOND))


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait until the condition holds."""
    never = asyncio.Event()
    async with asyncio.timeout(SECONDS):
        while not condition():
            try:
                async with asyncio.timeout(0.005):
                    await never.wait()
            except TimeoutError:
                continue


class House:
    """One installation. Each engine gets a connection of its own, as a process has."""

    def __init__(self, cluster: Cluster, log: Log, partitions: int) -> None:
        self.cluster = cluster
        self.log = log
        self.partitions = partitions
        self.clock = Clock()
        self._replies_read = {
            TopicPartition(TOPICS.replies, partition): 0 for partition in range(REPLY_PARTITIONS)
        }
        self._replies: list[WireObject] = []

    @classmethod
    async def build(cls, cluster: Cluster, partitions: int = 1) -> House:
        log = await cluster.connect()
        await log.create_topics(TOPICS.specs(partitions, REPLY_PARTITIONS))
        return cls(cluster, log, partitions)

    async def engine(
        self,
        log: Log | None = None,
        *,
        settings: EngineSettings = HASTY,
        processor_settings: ProcessorSettings = RESTLESS,
    ) -> Engine:
        return Engine(
            log or await self.cluster.connect(),
            TOPICS,
            clock=self.clock,
            settings=settings,
            processor_settings=processor_settings,
        )

    @asynccontextmanager
    async def running(
        self, log: Log | None = None, *, processor_settings: ProcessorSettings = RESTLESS
    ) -> AsyncIterator[Engine]:
        """An engine that serves all partitions, and is stopped at the end."""
        engine = await self.engine(log, processor_settings=processor_settings)
        async with running(engine):
            await eventually(lambda: len(engine.serving) == self.partitions)
            yield engine

    def processor(self, log: Log, partition: int = 0) -> Processor:
        """The writer of one partition, without an engine around it."""
        return Processor(
            log,
            TOPICS,
            Partition(partition),
            partitions=self.partitions,
            reply_partitions=REPLY_PARTITIONS,
            retention=Retention(),
            clock=self.clock,
            settings=RESTLESS,
        )

    async def send(self, command: WireObject, *, partition: int | None = None) -> None:
        """Send a command with `reply_to`, where it belongs or to a partition that is said."""
        await self.send_all([command], partition=partition)

    async def send_all(self, commands: list[WireObject], *, partition: int | None = None) -> None:
        """Send commands, so that they stand in the log together."""
        records = [
            NewRecord(
                TOPICS.commands,
                partition_of(_queue(command), self.partitions) if partition is None else partition,
                _queue(command).encode(),
                json.dumps({"reply_to": ME, **command}).encode(),
            )
            for command in commands
        ]
        await self.put(*records)

    async def put(self, *records: NewRecord) -> None:
        """Append records as they are."""
        producer = await self.log.producer()
        await producer.append(records, timeout=SECONDS)
        await producer.close()

    async def reply(self, command_id: str) -> WireObject:
        """The first reply to a command, read from the log as a client would."""
        async with asyncio.timeout(SECONDS):
            while True:
                for reply in self._replies:
                    if reply.get("command_id") == command_id:
                        return reply
                await self._read_replies(timeout=0.02)

    async def ask(self, command: WireObject) -> WireObject:
        """Send a command and await its reply."""
        await self.send(command)
        return await self.reply(command["command_id"])

    async def _read_replies(self, timeout: float) -> None:
        reader = await self.log.reader(self._replies_read)
        for record in await reader.read(max_records=1_000, timeout=timeout):
            self._replies_read[TopicPartition(record.topic, record.partition)] = record.offset + 1
            self._replies.append(orjson.loads(record.value or b""))
        await reader.close()

    async def replies(self) -> list[WireObject]:
        """All that stands on the topic of replies, `hello`s included."""
        topic = TOPICS.replies
        records = [await read_to_end(self.log, topic, number) for number in range(REPLY_PARTITIONS)]
        return [orjson.loads(record.value or b"") for found in records for record in found]

    async def transitions(self, partition: int = 0) -> list[WireObject]:
        """The log of a partition."""
        records = await read_to_end(self.log, TOPICS.transitions, partition)
        events = [orjson.loads(record.value or b"") for record in records]
        assert [event["sequence"] for event in events] == list(range(len(events))), "dense, none twice"
        return events

    async def steps(self, partition: int = 0) -> list[str]:
        """Each transition as `type subject`."""
        events = await self.transitions(partition)
        return [f"{event['type']} {event.get('job_id') or event['queue']}" for event in events]

    async def until_step(self, step: str, partition: int = 0) -> None:
        """Wait until a transition stands in the log."""
        tp = TopicPartition(TOPICS.transitions, partition)
        reader = await self.log.reader({tp: await self.log.start_offset(tp)})
        async with asyncio.timeout(SECONDS):
            while step not in await self.steps(partition):
                await reader.read(max_records=100, timeout=0.05)
        await reader.close()

    async def state(self, partition: int = 0) -> dict[str, bytes]:
        """The changelog of a partition: the newest value of each key."""
        newest = fold(await read_to_end(self.log, TOPICS.state, partition))
        return {(key or b"").decode(): value for key, value in newest.items()}

    async def rejects(self) -> list[Record]:
        return await read_to_end(self.log, TOPICS.rejects)

    async def until_rejects(self, count: int) -> list[Record]:
        """Wait until so many records were rejected."""
        tp = TopicPartition(TOPICS.rejects, 0)
        reader = await self.log.reader({tp: 0})
        found: list[Record] = []
        async with asyncio.timeout(SECONDS):
            while len(found) < count:
                found += await reader.read(max_records=100, timeout=SECONDS)
        await reader.close()
        return found


def _queue(command: WireObject) -> str:
    if "queue" in command:
        return str(command["queue"])
    rows = command.get("leases") or command.get("outcomes") or [command]
    return queue_of(rows[0].get("job_id") or rows[0]["schedule_id"])


@asynccontextmanager
async def running(engine: Engine) -> AsyncIterator[None]:
    """Run an engine, and stop it as SIGTERM does."""
    async with at_work(engine):
        yield
