"""A broker that is killed under load and comes back: nothing is lost, doubled, or half there."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from tests.conformance.cluster import SECONDS, KafkaCluster, read_to_end, record, values
from tests.providers.kafka_broker import Broker

from tidelog.log.port import Cleanup, Log, LogUnavailable, OutcomeUnknown, Writer

_TRANSACTIONS = 400
_KILL_AT = (100, 250)
_BOUND = 90.0
_GONE_SECONDS = 10.0
"""Above the adapter's own bounds for an append and a farewell; aiokafka's have none."""


class Journal:
    """Appends numbered transactions over three partitions, and keeps what it was told of each."""

    def __init__(self, log: Log, events: str, state: str) -> None:
        self._log = log
        self._events = events
        self._state = state
        self._progress = asyncio.Condition()
        self.acknowledged: list[str] = []
        self.unknown: list[str] = []

    async def run(self) -> None:
        writer = await self._open()
        for number in range(_TRANSACTIONS):
            name = str(number)
            batch = [
                record(self._events, name),
                record(self._events, name, partition=1),
                record(self._events, name, partition=1),
                record(self._state, name, key=name),
            ]
            try:
                await writer.append(batch, timeout=SECONDS)
            except (OutcomeUnknown, LogUnavailable):
                self.unknown.append(name)
                await writer.close()
                writer = await self._open()
            else:
                self.acknowledged.append(name)
            async with self._progress:
                self._progress.notify_all()

    async def until(self, acknowledged: int) -> None:
        async with self._progress:
            await self._progress.wait_for(lambda: len(self.acknowledged) >= acknowledged)

    async def _open(self) -> Writer:
        while True:
            try:
                return await self._log.writer(self._events)
            except LogUnavailable:
                continue


class Bystander:
    """A process whose broker is gone for good: neither its commit nor its stop may wait for that."""

    def __init__(self, log: Log, writer: Writer, topic: str) -> None:
        self._log = log
        self._writer = writer
        self._topic = topic

    @classmethod
    async def of(cls, cluster: KafkaCluster, topic: str) -> Bystander:
        log = await cluster.connect()
        bystander = cls(log, await log.writer(topic), topic)
        await bystander._writer.append([record(topic, "before")], timeout=SECONDS)
        return bystander

    async def end(self) -> None:
        async with asyncio.timeout(_GONE_SECONDS):
            with pytest.raises((OutcomeUnknown, LogUnavailable)):
                await self._writer.append([record(self._topic, "in vain")], timeout=0.5)
            await self._log.close()


async def test_a_broker_killed_in_the_middle_of_transactions_loses_and_doubles_nothing(
    shaky_cluster: KafkaCluster, own_kafka: Broker
) -> None:
    events, state = await shaky_cluster.new_topic(2), await shaky_cluster.new_topic(1, Cleanup.COMPACT)
    journal = Journal(await shaky_cluster.connect(), events, state)
    async with asyncio.timeout(_BOUND):
        bystanders = [await Bystander.of(shaky_cluster, await shaky_cluster.new_topic()) for _ in _KILL_AT]
        running = asyncio.create_task(journal.run())
        for acknowledged, bystander in zip(_KILL_AT, bystanders, strict=True):
            await journal.until(acknowledged)
            await asyncio.to_thread(own_kafka.kill)
            await bystander.end()
            await asyncio.to_thread(own_kafka.start)
        await running

    auditor = await shaky_cluster.connect()
    one, twice, changelog = [
        values(await read_to_end(auditor, *where)) for where in ((events, 0), (events, 1), (state, 0))
    ]
    assert one == changelog
    assert twice == [name for name in one for _ in range(2)]
    assert max(Counter(one).values()) == 1
    assert set(journal.acknowledged) <= set(one) <= set(journal.acknowledged) | set(journal.unknown)
    assert len(journal.acknowledged) + len(journal.unknown) == _TRANSACTIONS
    assert one == sorted(one, key=int)
