"""What makes a transaction take 5 ms, and not 25 to 100, and does not storm a broker that is away."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiokafka.producer.sender
from aiokafka import AIOKafkaProducer
from aiokafka.client import ConnectionGroup

if TYPE_CHECKING:
    from aiokafka.conn import AIOKafkaConnection

# A broker answers CONCURRENT_TRANSACTIONS to the first request of a transaction for as long as it is still
# writing the markers of the one before, about 2 ms. aiokafka then sleeps 20 ms; it has no option for that.
aiokafka.producer.sender.BACKOFF_OVERRIDE = 0.001

WRITER_RETRY_BACKOFF_MS = 2
"""The first produce of a transaction is answered NOT_ENOUGH_REPLICAS in the same moment, and a commit waits
in the same way. aiokafka's default is 100 ms."""

_UNREACHABLE_SECONDS = 0.2


def spare_the_unreachable(producer: AIOKafkaProducer) -> None:
    """Pause after an attempt to connect that failed.

    aiokafka has one back-off for brokers that are busy and for those that are away: with
    `WRITER_RETRY_BACKOFF_MS` alone, each writer would try to connect, and log it, 500 times a second.
    """
    client = producer.client
    connect = client._get_conn  # noqa: SLF001 - every way to a broker leads through here

    async def connect_or_pause(
        node_id: int, *, group: int = ConnectionGroup.DEFAULT, no_hint: bool = False
    ) -> AIOKafkaConnection | None:
        connection: AIOKafkaConnection | None = await connect(node_id, group=group, no_hint=no_hint)
        if connection is None:
            await asyncio.sleep(_UNREACHABLE_SECONDS)
        return connection

    client._get_conn = connect_or_pause  # noqa: SLF001
