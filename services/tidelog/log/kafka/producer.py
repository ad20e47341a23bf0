"""Appending without a transaction."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from tidelog.log.checks import refuse_oversized
from tidelog.log.kafka.batches import MAX_BATCH_BYTES, MAX_REQUEST_BYTES, send
from tidelog.log.kafka.connection import Connection, stop
from tidelog.log.kafka.failures import append_failure
from tidelog.log.kafka.topics import KafkaTopics
from tidelog.log.port import LogError, NewRecord, OutcomeUnknown, Producer


class KafkaProducer(Producer):
    """An idempotent producer: what aiokafka resends by itself is written once.

    A client that has failed is replaced by a new one at the next append: aiokafka would go on sending what
    was given up here, and after a refused batch the brokers refuse its followers as out of order.
    """

    def __init__(self, connection: Connection, topics: KafkaTopics) -> None:
        self._connection = connection
        self._topics = topics
        self._client: AIOKafkaProducer | None = None
        # One append hands over after the other: of many that wait for room in a partition, aiokafka counts
        # the time again at every turn, and some are out of it within moments.
        self._turn = asyncio.Lock()
        self._leaving: set[asyncio.Task[None]] = set()
        self.closed = False

    @classmethod
    async def open(cls, connection: Connection, topics: KafkaTopics) -> KafkaProducer:
        """Connect. Raises `LogUnavailable`."""
        producer = cls(connection, topics)
        await producer._connected()
        return producer

    async def append(self, records: Sequence[NewRecord], *, timeout: float) -> list[int]:
        if self.closed:
            raise self._connection.closed()
        if not records:
            return []
        refuse_oversized(records)
        client: AIOKafkaProducer | None = None
        try:
            async with asyncio.timeout(timeout):
                await self._topics.check_records(records)
                async with self._turn:
                    client = await self._connected()
                    sent = await send(client, records)
                await sent.confirmed()
                return sent.offsets()
        except (TimeoutError, KafkaError) as error:
            if client is None:  # it waited for its turn or for a connection
                raise self._connection.unavailable("records were to be appended", error) from error
            self._give_up(client, records)
            raise self._failure(len(records), timeout, error) from error

    async def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._client is not None:
            await stop(self._client)
        await asyncio.gather(*self._leaving)

    async def _connected(self) -> AIOKafkaProducer:
        if self._client is None:
            client = AIOKafkaProducer(
                **self._connection.options(),
                enable_idempotence=True,
                acks="all",
                max_batch_size=MAX_BATCH_BYTES,
                max_request_size=MAX_REQUEST_BYTES,
            )
            await self._connection.start(client, "a producer was opened")
            if self.closed:  # meanwhile
                await stop(client, seconds=0)
                raise self._connection.closed()
            self._client = client
        return self._client

    def _failure(self, count: int, timeout: float, error: TimeoutError | KafkaError) -> LogError:
        if isinstance(error, KafkaError):
            return append_failure(self._connection.address, "this producer", error)
        return OutcomeUnknown(
            f"{self._connection.address} did not confirm {count} records within {timeout:g} s; they may have"
            " been written."
        )

    def _give_up(self, client: AIOKafkaProducer, records: Sequence[NewRecord]) -> None:
        self._topics.forget(records)
        if self._client is client:
            self._client = None
            leaving = asyncio.create_task(stop(client))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
