"""`KafkaLog`: one process's connection to a cluster, and the factory of all that works on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TypeVar

from aiokafka.admin import AIOKafkaAdminClient

from tidelog.log.kafka.connection import Connection, stop
from tidelog.log.kafka.groups import forget_group
from tidelog.log.kafka.inspection import KafkaInspection
from tidelog.log.kafka.member import KafkaMember
from tidelog.log.kafka.offsets import KafkaOffsets
from tidelog.log.kafka.options import KafkaOptions, KafkaReplication
from tidelog.log.kafka.producer import KafkaProducer
from tidelog.log.kafka.reader import KafkaReader
from tidelog.log.kafka.topics import KafkaTopics
from tidelog.log.kafka.writer import KafkaWriter
from tidelog.log.port import (
    TRANSACTION_SECONDS,
    GroupDescription,
    Isolation,
    Log,
    LogDescription,
    Member,
    Producer,
    Reader,
    TopicDescription,
    TopicPartition,
    TopicSpec,
    Writer,
)

_Child = TypeVar("_Child", KafkaProducer, KafkaWriter, KafkaReader, KafkaMember)


class KafkaLog(Log):
    """A log on a Kafka cluster, 3.7 or later. Use `open`."""

    def __init__(
        self, connection: Connection, admin: AIOKafkaAdminClient, replication: KafkaReplication
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._topics = KafkaTopics(connection, admin, replication)
        self._offsets = KafkaOffsets(connection)
        self._inspection = KafkaInspection(connection, admin)
        # Held firmly: aiokafka complains of clients that are dropped, and they go on working all the same.
        self._children: list[KafkaProducer | KafkaWriter | KafkaReader | KafkaMember] = []
        self._closed = False

    @classmethod
    async def open(cls, bootstrap: str, options: KafkaOptions | None = None) -> KafkaLog:
        """Connect to a cluster.

        Args:
            bootstrap: the brokers to begin with, `host:port[,host:port]`.
            options: TLS and SASL, and the replication of topics that are created here.

        Raises:
            LogUnavailable: none of the brokers answers.
            WrongKafkaOptions: the files of the security settings cannot be used.
        """
        options = options or KafkaOptions()
        connection = Connection(bootstrap, options.security)
        admin = AIOKafkaAdminClient(**connection.options())
        await connection.start(admin, "it was opened")
        return cls(connection, admin, options.replication)

    @property
    def address(self) -> str:
        return self._connection.address

    async def create_topics(self, topics: Sequence[TopicSpec]) -> list[str]:
        self._refuse_closed()
        created = await self._topics.create(topics)
        # Brokers hear of a new topic only a bit later, and lead its partitions later still.
        await self._offsets.until_served(
            [TopicPartition(spec.name, number) for spec in topics for number in range(spec.partitions)]
        )
        return created

    async def partitions(self, topic: str) -> int:
        self._refuse_closed()
        return await self._topics.partitions(topic)

    async def describe(self) -> LogDescription:
        self._refuse_closed()
        return await self._inspection.describe()

    async def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        self._refuse_closed()
        return await self._inspection.describe_topics(names)

    async def groups(self, prefix: str) -> list[GroupDescription]:
        self._refuse_closed()
        return await self._inspection.groups(prefix)

    async def forget_group(self, name: str) -> None:
        self._refuse_closed()
        await forget_group(self._connection, self._admin, name)

    async def start_offset(self, tp: TopicPartition) -> int:
        self._refuse_closed()
        await self._topics.check_partitions([tp])
        return await self._offsets.start(tp)

    async def end_offset(self, tp: TopicPartition, isolation: Isolation = Isolation.COMMITTED) -> int:
        self._refuse_closed()
        await self._topics.check_partitions([tp])
        return await self._offsets.end(tp, isolation)

    async def offset_at(self, tp: TopicPartition, at: float) -> int:
        self._refuse_closed()
        await self._topics.check_partitions([tp])
        found = await self._offsets.at(tp, at)
        return await self._offsets.end(tp, Isolation.COMMITTED) if found is None else found

    async def producer(self) -> Producer:
        self._refuse_closed()
        return await self._adopted(await KafkaProducer.open(self._connection, self._topics))

    async def writer(
        self, transactional_id: str, *, transaction_seconds: float = TRANSACTION_SECONDS
    ) -> Writer:
        self._refuse_closed()
        return await self._adopted(
            await KafkaWriter.open(self._connection, self._topics, transactional_id, transaction_seconds)
        )

    async def reader(
        self, offsets: Mapping[TopicPartition, int], isolation: Isolation = Isolation.COMMITTED
    ) -> Reader:
        self._refuse_closed()
        await self._topics.check_partitions(offsets.keys())
        return await self._adopted(
            await KafkaReader.open(self._connection, self._offsets, offsets, isolation)
        )

    async def join(self, group: str, topic: str) -> Member:
        self._refuse_closed()
        await self._topics.partitions(topic)
        return await self._adopted(await KafkaMember.join(self._connection, group, topic))

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # Together, so that brokers that do not answer cost the bound of one of them.
        await asyncio.gather(*(child.close() for child in self._children))
        self._children.clear()
        await asyncio.gather(self._offsets.close(), stop(self._admin))

    def _refuse_closed(self) -> None:
        if self._closed:
            raise self._connection.closed()

    async def _adopted(self, child: _Child) -> _Child:
        if self._closed:  # while the child was connecting
            await child.close()
            raise self._connection.closed()
        self._children = [other for other in self._children if not other.closed]
        self._children.append(child)
        return child
