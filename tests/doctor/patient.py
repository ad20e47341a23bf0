"""An installation to be examined: its roles can be started and stopped, and things in it put wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from tests.engine.house import eventually

from tidelog.client.client import Client
from tidelog.client.newjob import NewJob
from tidelog.clock import Clock, wall_clock
from tidelog.doctor.examine import NAMES, Installation, examine
from tidelog.doctor.findings import Finding, Health
from tidelog.engine import Engine
from tidelog.log.kafka.options import KafkaReplication
from tidelog.log.port import Log, TopicSpec
from tidelog.log.topics import Topics
from tidelog.projector import Projector
from tidelog_events.identity import partition_of
from tidelog_projections.inspection import inspect
from tidelog_projections.projection import Projection

PARTITIONS = 3
BOUND = 60.0
QUEUES = [
    next(f"q{number}" for number in range(100) if partition_of(f"q{number}", PARTITIONS) == partition)
    for partition in range(PARTITIONS)
]
"""One of each partition."""


@dataclass(frozen=True, slots=True)
class Patient:
    """An installation, on either log.

    Attributes:
        connect: opens a connection to the log.
        topics: names of its own.
        dsn: of a database of its own.
        replication: of a log that keeps copies.
    """

    connect: Callable[[], Awaitable[Log]]
    topics: Topics
    dsn: str
    replication: KafkaReplication | None = None
    partitions: int = PARTITIONS
    clock: Clock = field(default=wall_clock)

    async def initialise(self, *, but: TopicSpec | None = None) -> None:
        """Make the topics and the schema; `but` is a topic that is made otherwise than it should be."""
        async with await self.connect() as log:
            specs = self.topics.specs(self.partitions)
            await log.create_topics(
                [but if but is not None and spec.name == but.name else spec for spec in specs]
            )
        await (await Projection.connect(self.dsn)).close()

    async def examine(self, *only: str) -> list[Finding]:
        """What the doctor finds."""

        @asynccontextmanager
        async def open_log() -> AsyncIterator[Log]:
            async with await self.connect() as log:
                yield log

        return await examine(
            Installation(
                open_log=open_log,
                inspect=lambda: inspect(self.dsn, patience=0.5),
                topics=self.topics,
                partitions=self.partitions,
                replication=self.replication,
                clock=self.clock,
            ),
            only or NAMES,
        )

    @asynccontextmanager
    async def engine(self) -> AsyncIterator[Engine]:
        """An engine that serves all partitions, until the block ends."""
        async with await self.connect() as log:
            engine = Engine(log, self.topics)
            async with _running(engine.run):
                await eventually(lambda: len(engine.serving) == self.partitions)
                yield engine

    @asynccontextmanager
    async def projector(self) -> AsyncIterator[Projector]:
        """A projector, until the block ends."""
        async with await self.connect() as log, await Projection.connect(self.dsn) as projection:
            projector = Projector(log, self.topics, projection)
            async with _running(projector.run):
                yield projector

    async def enqueue(self, jobs: int = 1) -> None:
        """So many jobs in each partition. Needs an engine."""
        async with await self.connect() as log, Client.open(log, self.topics) as client:
            new = [NewJob("wire", queue=queue) for queue in QUEUES for _ in range(jobs)]
            await client.enqueue_many(new, timeout=BOUND)


@asynccontextmanager
async def _running(role: Callable[[asyncio.Event], Awaitable[None]]) -> AsyncIterator[None]:
    stop = asyncio.Event()
    task = asyncio.ensure_future(role(stop))
    try:
        yield
    finally:
        stop.set()
        async with asyncio.timeout(BOUND):
            await task


def of(findings: Collection[Finding], check: str) -> list[Finding]:
    """The findings of one check."""
    return [finding for finding in findings if finding.check == check]


def ailments(findings: Collection[Finding]) -> list[Finding]:
    """All that is not well."""
    return [finding for finding in findings if finding.health is not Health.OK]
