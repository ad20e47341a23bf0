"""A read says that it may be stale when Postgres lacks events, and only then."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaProducer
from tests.providers.kafka import GivenBroker
from tests.providers.kafka_broker import Broker

from tidelog.cli.freshness import catch_up
from tidelog.log.address import open_log
from tidelog.log.port import NewRecord
from tidelog.settings import Settings
from tidelog_events.identity import Partition
from tidelog_projections.batch import Batch
from tidelog_projections.projection import Projection

PARTITIONS = 2


@pytest.fixture
async def settings(kafka: Broker | GivenBroker, postgres_dsn: str) -> Settings:
    """An installation on Kafka, with topics and nothing in them."""
    settings = Settings(
        log=f"kafka://{kafka.address}",
        postgres=postgres_dsn,
        prefix=f"test-{uuid4().hex}",
        partitions=PARTITIONS,
    )
    async with await open_log(settings.log) as log:
        await log.create_topics(settings.topics.specs(PARTITIONS))
    return settings


@pytest.fixture
async def projection(settings: Settings) -> AsyncIterator[Projection]:
    async with await Projection.connect(settings.postgres) as projection:
        yield projection


async def write_event(settings: Settings) -> None:
    """A record in a transaction, as an engine writes it."""
    async with await open_log(settings.log) as log:
        writer = await log.writer(settings.topics.transactional_id(0))
        await writer.append([NewRecord(settings.topics.transitions, 0, b"q/k", b"{}")], timeout=30)


async def abort_a_transaction(settings: Settings) -> None:
    """Records that no reader will ever see, and a marker that says so."""
    producer = AIOKafkaProducer(
        bootstrap_servers=settings.log.removeprefix("kafka://"), transactional_id=uuid4().hex
    )
    await producer.start()
    try:
        await producer.begin_transaction()
        for _ in range(20):
            await producer.send_and_wait(settings.topics.transitions, b"{}", partition=0)
        await producer.abort_transaction()
    finally:
        await producer.stop()


async def test_transactions_without_events_make_nothing_stale(
    settings: Settings, projection: Projection, capsys: pytest.CaptureFixture[str]
) -> None:
    await abort_a_transaction(settings)
    await catch_up(settings, projection, None)
    await write_event(settings)
    await projection.apply(Batch(Partition(0), [], next_offset=22))  # past the event, before its marker
    await abort_a_transaction(settings)
    await catch_up(settings, projection, None)
    assert capsys.readouterr().err == ""


async def test_an_event_that_postgres_lacks_does(
    settings: Settings, projection: Projection, capsys: pytest.CaptureFixture[str]
) -> None:
    await write_event(settings)
    await abort_a_transaction(settings)
    await catch_up(settings, projection, None)
    said = capsys.readouterr().err
    assert f"Postgres is behind the log {settings.log} (partitions: 0)" in said
