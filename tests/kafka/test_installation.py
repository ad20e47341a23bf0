"""The whole of Tidelog on Kafka: engines that share the partitions, a client, a worker."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, Process
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from tests.conformance.cluster import KafkaCluster, read_to_end
from tests.engine.house import eventually
from tests.roles import at_work

from tidelog.client.client import Client
from tidelog.client.newjob import NewJob
from tidelog.engine import Engine
from tidelog.handler.jobs import Retry, declare
from tidelog.log.address import open_log
from tidelog.log.port import Log
from tidelog.log.topics import Topics
from tidelog.worker.registry import JobRegistry
from tidelog.worker.settings import WorkerSettings
from tidelog.worker.worker import Worker
from tidelog_events.codec import decode_transition
from tidelog_events.identity import partition_of
from tidelog_events.transitions import JobFact, Transition

_PARTITIONS = 4
_BOUND = 60.0


def _a_queue_of(partition: int) -> str:
    return next(f"q{number}" for number in range(100) if partition_of(f"q{number}", _PARTITIONS) == partition)


QUEUES = [_a_queue_of(partition) for partition in range(_PARTITIONS)]


@pytest.fixture
async def log(cluster: KafkaCluster, topics: Topics) -> Log:
    """A log with the topics of an installation."""
    log = await cluster.connect()
    await log.create_topics(topics.specs(_PARTITIONS, 2))
    return log


@asynccontextmanager
async def engine(cluster: KafkaCluster, topics: Topics) -> AsyncIterator[Engine]:
    """An engine with a connection of its own, stopped at the end."""
    engine = Engine(await cluster.connect(), topics)
    async with at_work(engine, bound=_BOUND):
        yield engine


@asynccontextmanager
async def engine_process(address: str, topics: Topics) -> AsyncIterator[Process]:
    """An engine as users run it; killed at the end, if it still lives."""
    settings = {"TIDELOG_LOG": f"kafka://{address}", "TIDELOG_PREFIX": topics.prefix}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tidelog", "engine"),
        env=os.environ | settings,
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=DEVNULL,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def history(log: Log, topics: Topics) -> Mapping[int, list[Transition]]:
    """All that happened, by partition."""
    found: dict[int, list[Transition]] = {}
    for partition in range(_PARTITIONS):
        events = [
            decode_transition(record.value)
            for record in await read_to_end(log, topics.transitions, partition)
        ]
        found[partition] = [event for event in events if event is not None]
        assert [event.sequence for event in found[partition]] == list(range(len(events)))
    return found


async def test_engines_share_the_partitions_and_one_takes_over_when_the_other_is_killed(
    cluster: KafkaCluster, kafka_address: str, log: Log, topics: Topics
) -> None:
    async with engine(cluster, topics) as survivor, Client.open(log, topics) as client:
        await eventually(lambda: len(survivor.serving) == _PARTITIONS)
        async with engine_process(kafka_address, topics) as other:
            await eventually(lambda: len(survivor.serving) == _PARTITIONS // 2)
            shared = await client.enqueue_many(
                [NewJob("wire", queue=queue) for queue in QUEUES for _ in range(5)], timeout=_BOUND
            )
            other.kill()
            # Nobody serves two of the queues now, until the group misses the dead one.
            orphaned = await client.enqueue_many(
                [NewJob("wire", queue=queue) for queue in QUEUES for _ in range(5)], timeout=_BOUND
            )
        await eventually(lambda: len(survivor.serving) == _PARTITIONS)
    enqueued = [
        event.job_id
        for events in (await history(log, topics)).values()
        for event in events
        if isinstance(event, JobFact)
    ]
    assert Counter(enqueued) == Counter([*shared, *orphaned])


async def test_a_job_goes_its_whole_way(
    cluster: KafkaCluster, kafka_address: str, log: Log, topics: Topics
) -> None:
    registry = JobRegistry()
    tried: Counter[int] = Counter()

    @declare("double", retry=Retry(max_attempts=3, delays=[0]), register=registry.add)
    async def double(number: int) -> int:
        tried[number] += 1
        if number % 10 == 0 and tried[number] == 1:
            raise OSError("the first try fails")
        return number * 2

    worker = Worker(
        registry=registry,
        open_log=lambda: open_log(f"kafka://{kafka_address}"),
        topics=topics,
        settings=WorkerSettings(queues=tuple(QUEUES), concurrency=50),
    )
    stop = asyncio.Event()
    async with engine(cluster, topics), Client.open(log, topics) as client:
        working = asyncio.create_task(worker.run(stop))
        jobs = [
            NewJob(double.job(number=number), queue=QUEUES[number % _PARTITIONS]) for number in range(200)
        ]
        ids = await client.enqueue_many(jobs, timeout=_BOUND)
        async with asyncio.timeout(_BOUND):
            while not await _have_ended(log, topics, len(ids)):
                pass
            stop.set()
            await working

    by_job: dict[str, list[JobFact]] = {job_id: [] for job_id in ids}
    for events in (await history(log, topics)).values():
        for event in events:
            if isinstance(event, JobFact):
                by_job[event.job_id].append(event)
    for number, job_id in enumerate(ids):
        once = ["leased", "retry_scheduled"] if number % 10 == 0 else []
        assert [event.TYPE for event in by_job[job_id]] == ["enqueued", *once, "leased", "succeeded"]
        assert tried[number] == 1 + bool(once)


async def _have_ended(log: Log, topics: Topics, count: int) -> bool:
    events = [event for found in (await history(log, topics)).values() for event in found]
    return sum(event.TYPE == "succeeded" for event in events) == count
