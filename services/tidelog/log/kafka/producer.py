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
from tidelog.log.port import NewRecord, OutcomeUnknown, Producer


class KafkaProducer(Producer):
    """An idempotent producer: what aiokafka resends by itself is written once.

    A client that has failed is replaced by a new one at the next append: aiokafka would go on sending what
    was given up here, and after a refused batch the brokers refuse its followers as out of order.
    """

    def __init__(self, connection: Connection, topics: KafkaTopics) -> None:
        self._connection = connection
        self._topics = topics
        self._client: AIOKafkaProducer | None = None
        self._connecting = asyncio.Lock()
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
        deadline = asyncio.get_running_loop().time() + timeout
        with self._connection.explaining("records were to be appended"):
            async with asyncio.timeout_at(deadline):
                await self._topics.check_records(records)
                client = await self._connected()
        try:
            async with asyncio.timeout_at(deadline):
                sent = await send(client, records)
                await sent.confirmed()
                return sent.offsets()
        except TimeoutError:
            self._give_up(client, records)
            raise OutcomeUnknown(
                f"{self._connection.address} did not confirm {len(records)} records within {timeout:g} s;"
                " they may have been written."
            ) from None
        except KafkaError as error:
            self._give_up(client, records)
            raise append_failure(self._connection.address, "this producer", error) from error

    async def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._client is not None:
            await stop(self._client)
        await asyncio.gather(*self._leaving)

    async def _connected(self) -> AIOKafkaProducer:
        async with self._connecting:
            if self._client is None:
                client = AIOKafkaProducer(
                    **self._connection.options(),
                    enable_idempotence=True,
                    acks="all",
                    max_batch_size=MAX_BATCH_BYTES,
                    max_request_size=MAX_REQUEST_BYTES,
                )
                await self._connection.start(client, "a producer was opened")
                self._client = client
            return self._client

    def _give_up(self, client: AIOKafkaProducer, records: Sequence[NewRecord]) -> None:
        self._topics.forget(records)
        if self._client is client:
            self._client = None
            leaving = asyncio.create_task(stop(client))
            self._leaving.add(leaving)
            leaving.add_done_callback(self._leaving.discard)
