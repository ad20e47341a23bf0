"""A process that enqueues an atomic batch, and stops dead between the last record and the commit.

    python -m tests.kafka.atomic_child BOOTSTRAP PREFIX KEY QUEUE…

It says `sent` when the brokers have the records. Then it waits to be killed, or to be let go on.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from aiokafka import AIOKafkaProducer

from tidelog.client.client import Client
from tidelog.client.newjob import NewJob
from tidelog.log.kafka.log import KafkaLog
from tidelog.log.topics import Topics

_commit = AIOKafkaProducer.commit_transaction


async def stop_and_commit(producer: AIOKafkaProducer) -> None:
    """The first commit of the process; the others are as they were."""
    AIOKafkaProducer.commit_transaction = _commit
    sys.stdout.write("sent\n")
    sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGSTOP)
    await _commit(producer)


async def enqueue(bootstrap: str, prefix: str, key: str, queues: list[str]) -> None:
    async with await KafkaLog.open(bootstrap) as log, Client.open(log, Topics(prefix)) as client:
        jobs = [NewJob("x", queue=queue, key=key) for queue in queues]
        await client.enqueue_many(jobs, atomic=True, timeout=60)


if __name__ == "__main__":
    AIOKafkaProducer.commit_transaction = stop_and_commit
    asyncio.run(enqueue(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
