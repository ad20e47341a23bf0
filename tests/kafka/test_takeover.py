"""Taking over a partition whose predecessor hangs in the middle of a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaProducer
from tests.conformance.cluster import SECONDS, KafkaCluster

from tidelog.core.changelog import InputPositions, position_change
from tidelog.core.state import PartitionState, Retention
from tidelog.engine.takeover import Tenure, take_over
from tidelog.log.port import Fenced, Isolation, Log, NewRecord, TopicPartition
from tidelog.log.topics import Topics
from tidelog_events.identity import Partition

_COMMITTED = 25


@pytest.fixture
async def state(log: Log, topics: Topics) -> TopicPartition:
    await log.create_topics(topics.specs(1, 1))
    return TopicPartition(topics.state, 0)


@asynccontextmanager
async def hung_producer(address: str, transactional_id: str, tp: TopicPartition) -> AsyncIterator[None]:
    """A producer that has written into a transaction and never ends it."""
    producer = AIOKafkaProducer(
        bootstrap_servers=address, transactional_id=transactional_id, transaction_timeout_ms=2_000
    )
    await producer.start()
    await producer.begin_transaction()
    await producer.send_and_wait(tp.topic, b"never seen", key=b"@position", partition=tp.partition)
    yield
    async with asyncio.timeout(SECONDS):
        await producer.stop()


async def commit_positions(log: Log, topics: Topics, transactional_id: str) -> None:
    """What an engine writes: its input position, once a transaction."""
    writer = await log.writer(transactional_id)
    for number in range(1, _COMMITTED + 1):
        change = position_change(PartitionState(Partition(0), 1, Retention()), InputPositions(number, 0))
        await writer.append([NewRecord(topics.state, 0, change.key.encode(), change.value)], timeout=SECONDS)


async def taken_over(log: Log, topics: Topics) -> Tenure:
    async with asyncio.timeout(SECONDS):
        return await take_over(log, topics, Partition(0), 1, Retention())


async def test_the_open_transaction_of_the_predecessor_ends_with_it(
    kafka_address: str, log: Log, topics: Topics, state: TopicPartition
) -> None:
    await commit_positions(log, topics, topics.transactional_id(0))
    async with hung_producer(kafka_address, topics.transactional_id(0), state):
        assert await log.end_offset(state) < await log.end_offset(state, Isolation.UNCOMMITTED)
        tenure = await taken_over(log, topics)
        assert tenure.positions.commands == _COMMITTED


async def test_what_is_committed_behind_a_strange_open_transaction_is_replayed_too(
    kafka_address: str, log: Log, topics: Topics, state: TopicPartition
) -> None:
    """The committed end stands at the open transaction: to read up to there would lose all the rest."""
    async with hung_producer(kafka_address, f"{topics.prefix}-stranger", state):
        await commit_positions(log, topics, topics.transactional_id(0))
        assert await log.end_offset(state) == 0
        tenure = await taken_over(log, topics)  # it waits until the broker gives the stranger up
        assert tenure.positions.commands == _COMMITTED


async def test_a_second_engine_fences_the_first(cluster: KafkaCluster, log: Log, topics: Topics) -> None:
    await log.create_topics(topics.specs(1, 1))
    first = await taken_over(log, topics)
    second = await taken_over(await cluster.connect(), topics)
    records = [NewRecord(topics.transitions, 0, b"key", b"value")]
    with pytest.raises(Fenced):
        await first.writer.append(records, timeout=SECONDS)
    await second.writer.append(records, timeout=SECONDS)
