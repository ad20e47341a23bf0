"""A process that enqueues an atomic batch, and hangs between the last record and the commit.

    python -m tests.kafka.atomic_child BOOTSTRAP PREFIX QUEUE…

It says `sent` when the brokers have the records, and waits to be killed.
"""

from __future__ import annotations

import asyncio
import sys

from aiokafka import AIOKafkaProducer

from tidelog.client.client import Client
from tidelog.client.newjob import NewJob
from tidelog.log.kafka.log import KafkaLog
from tidelog.log.topics import Topics


async def hang(_: AIOKafkaProducer) -> None:
    """Instead of a commit."""
    sys.stdout.write("sent\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


async def enqueue(bootstrap: str, prefix: str, queues: list[str]) -> None:
    async with await KafkaLog.open(bootstrap) as log, Client.open(log, Topics(prefix)) as client:
        await client.enqueue_many([NewJob("x", queue=queue, key="unseen") for queue in queues], atomic=True)


if __name__ == "__main__":
    AIOKafkaProducer.commit_transaction = hang
    asyncio.run(enqueue(sys.argv[1], sys.argv[2], sys.argv[3:]))
