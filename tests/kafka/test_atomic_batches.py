"""Atomic batches on Kafka: whole over the queues of several partitions, and never in the way for long."""

from __future__ import annotations

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaTimeoutError
from tests.conformance.cluster import KafkaCluster, read_to_end
from tests.kafka.test_installation import QUEUES, engine

from tidelog.client.client import Client
from tidelog.client.newjob import NewJob
from tidelog.log.port import Isolation, Log, TopicPartition
from tidelog.log.topics import Topics
from tidelog_events.codec import decode_transition
from tidelog_events.transitions import Enqueued

_BOUND = 60.0


@pytest.fixture
async def log(cluster: KafkaCluster, topics: Topics) -> Log:
    """A log with the topics of an installation."""
    log = await cluster.connect()
    await log.create_topics(topics.specs(len(QUEUES), 2))
    return log


@pytest.fixture
async def client(log: Log, topics: Topics) -> AsyncIterator[Client]:
    async with Client.open(log, topics) as client:
        yield client


async def enqueued(log: Log, topics: Topics) -> dict[str, int]:
    """The jobs that were born, each with how many parents it waits for."""
    found: dict[str, int] = {}
    for partition in range(len(QUEUES)):
        for record in await read_to_end(log, topics.transitions, partition):
            event = decode_transition(record.value)
            if isinstance(event, Enqueued):
                found[event.job_id] = event.parents_remaining
    return found


@pytest.mark.parametrize("atomic", [True, False])
async def test_generations_over_several_partitions(
    cluster: KafkaCluster, topics: Topics, log: Log, client: Client, atomic: bool
) -> None:
    parents = [NewJob("x", queue=queue) for queue in QUEUES]
    children = [NewJob("x", queue=queue, parents=[job.job_id for job in parents]) for queue in QUEUES]
    grandchildren = [NewJob("x", queue=queue, parents=[job.job_id for job in children]) for queue in QUEUES]
    jobs = [*grandchildren, *children, *parents]

    async with engine(cluster, topics):
        ids = await client.enqueue_many(jobs, atomic=atomic, timeout=_BOUND)

    assert ids == [job.job_id for job in jobs]
    born = await enqueued(log, topics)
    assert born == {job.job_id: len(job.parents) for job in jobs}


@pytest.mark.parametrize("is_committed", [True, False])
async def test_a_batch_stands_once_though_the_answer_to_its_commit_was_lost(
    cluster: KafkaCluster,
    topics: Topics,
    log: Log,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    is_committed: bool,
) -> None:
    commit = AIOKafkaProducer.commit_transaction
    lost: list[str] = []

    async def lose_the_first_answer(producer: AIOKafkaProducer) -> None:
        name = producer._txn_manager.transactional_id  # noqa: SLF001 - engines commit, too
        is_to_be_lost = name == topics.client_transactional_id(client.client_id) and not lost
        if is_committed or not is_to_be_lost:
            await commit(producer)
        if is_to_be_lost:
            lost.append(name)
            raise KafkaTimeoutError

    monkeypatch.setattr(AIOKafkaProducer, "commit_transaction", lose_the_first_answer)
    jobs = [NewJob("x", queue=queue) for queue in QUEUES]
    async with engine(cluster, topics):
        assert await client.enqueue_many(jobs, atomic=True, timeout=_BOUND) == [job.job_id for job in jobs]

    assert len(lost) == 1
    assert await enqueued(log, topics) == {job.job_id: 0 for job in jobs}
    for partition in range(len(QUEUES)):
        commands = await read_to_end(log, topics.commands, partition)
        assert len(commands) == (2 if is_committed else 1)


@asynccontextmanager
async def stopped_before_its_commit(address: str, topics: Topics, key: str) -> AsyncIterator[Process]:
    """A client in another process, in the middle of an atomic batch over all queues; killed at the end."""
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.kafka.atomic_child", address, topics.prefix, key, *QUEUES),
        stdout=PIPE,
    )
    try:
        async with asyncio.timeout(_BOUND):
            assert child.stdout is not None
            assert await child.stdout.readline() == b"sent\n"
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def test_a_client_that_dies_or_hangs_before_its_commit_holds_up_nobody_for_long(
    cluster: KafkaCluster, kafka_address: str, topics: Topics, log: Log, client: Client
) -> None:
    others = [NewJob("x", queue=queue, key="another") for queue in QUEUES]
    async with (
        engine(cluster, topics),
        stopped_before_its_commit(kafka_address, topics, "suspended") as suspended,
    ):
        async with stopped_before_its_commit(kafka_address, topics, "killed"):
            pass
        for partition in range(len(QUEUES)):
            written = TopicPartition(topics.commands, partition)
            assert await log.end_offset(written) < await log.end_offset(written, Isolation.UNCOMMITTED)

        await client.enqueue_many(others, timeout=_BOUND)
        assert await enqueued(log, topics) == {job.job_id: 0 for job in others}

        suspended.send_signal(signal.SIGCONT)
        async with asyncio.timeout(_BOUND):
            assert await suspended.wait() == 0

    ids = [*(job.job_id for job in others), *(f"{queue}/suspended" for queue in QUEUES)]
    assert await enqueued(log, topics) == dict.fromkeys(ids, 0)
