"""The bounds of partitions, asked for by consumers that belong to no group and read nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Collection

import aiokafka
from aiokafka import AIOKafkaConsumer

from tidelog.log.kafka.connection import Connection, stop
from tidelog.log.port import Isolation, TopicPartition

_RETRY_BACKOFF_MS = 20
"""A consumer asks again so soon after it has met a partition for the first time; 100 ms by default."""


class KafkaOffsets:
    """One consumer for each isolation, connected when it is first needed."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._consumers: dict[Isolation, AIOKafkaConsumer] = {}
        self._connecting = asyncio.Lock()

    async def start(self, tp: TopicPartition) -> int:
        """The lowest offset that the partition holds. Raises `LogUnavailable`."""
        consumer = await self._consumer(Isolation.UNCOMMITTED)
        async with self._connection.asking(f"the start of {tp.topic}[{tp.partition}] was looked up"):
            return _only(await consumer.beginning_offsets([aiokafka.TopicPartition(*tp)]))

    async def end(self, tp: TopicPartition, isolation: Isolation) -> int:
        """The last stable offset, or the high watermark, which is past any open transaction.

        Raises:
            LogUnavailable: no broker answered in time.
        """
        consumer = await self._consumer(isolation)
        async with self._connection.asking(f"the end of {tp.topic}[{tp.partition}] was looked up"):
            return _only(await consumer.end_offsets([aiokafka.TopicPartition(*tp)]))

    async def at(self, tp: TopicPartition, at: float) -> int | None:
        """The offset of the first record that was written then (seconds since 1970) or later.

        Raises:
            LogUnavailable: no broker answered in time.
        """
        consumer = await self._consumer(Isolation.UNCOMMITTED)
        async with self._connection.asking(f"a time in {tp.topic}[{tp.partition}] was looked up"):
            times = {aiokafka.TopicPartition(*tp): max(0, round(at * 1_000))}
            (found,) = (await consumer.offsets_for_times(times)).values()
        offset: int | None = None if found is None else found.offset
        return offset

    async def until_served(self, tps: Collection[TopicPartition]) -> None:
        """Wait until each of the partitions has a leader that answers. Raises `LogUnavailable`."""
        consumer = await self._consumer(Isolation.UNCOMMITTED)
        async with self._connection.asking(f"{len(tps)} new partitions were waited for"):
            await consumer.end_offsets([aiokafka.TopicPartition(*tp) for tp in tps])

    async def close(self) -> None:
        """Let go of the brokers."""
        consumers, self._consumers = self._consumers, {}
        await asyncio.gather(*(stop(consumer) for consumer in consumers.values()))

    async def _consumer(self, isolation: Isolation) -> AIOKafkaConsumer:
        async with self._connecting:
            consumer = self._consumers.get(isolation)
            if consumer is None:
                consumer = AIOKafkaConsumer(
                    **self._connection.options(),
                    isolation_level=isolation.value,
                    enable_auto_commit=False,
                    retry_backoff_ms=_RETRY_BACKOFF_MS,
                )
                await self._connection.start(consumer, "offsets were looked up")
                self._consumers[isolation] = consumer
            return consumer


def _only(offsets: dict[aiokafka.TopicPartition, int]) -> int:
    (offset,) = offsets.values()
    return offset
