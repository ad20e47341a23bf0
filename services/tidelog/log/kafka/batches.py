"""Records as the batches of produce requests: the records of a partition in a row, encoded once."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.structs import RecordMetadata

from tidelog.log.port import NewRecord, OutcomeUnknown

MAX_MESSAGE_BYTES = 1_048_588
"""What brokers take as one batch by default: a record of the port's bound fits, with its envelope."""
MAX_BATCH_BYTES = 1_000_000
"""After which a batch takes no more records; the first one it takes whatever its size."""
MAX_REQUEST_BYTES = 16 * 1024 * 1024


class Sent:
    """Batches on their way: which records are in which, and where they will stand."""

    def __init__(self) -> None:
        self._futures: list[asyncio.Future[RecordMetadata]] = []
        self._indexes: list[list[int]] = []

    def add(self, future: asyncio.Future[RecordMetadata], indexes: list[int]) -> None:
        """Remember a batch that was handed over."""
        self._futures.append(future)
        self._indexes.append(indexes)

    async def confirmed(self) -> None:
        """Wait for every batch; then raise the first error that there was."""
        for answer in await asyncio.gather(*self._futures, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer

    def offsets(self) -> list[int]:
        """The offsets of confirmed records, in the order in which the records were given.

        Raises:
            OutcomeUnknown: they stand, and the broker has forgotten where (the answer to a very late resend).
        """
        offsets = [0] * sum(map(len, self._indexes))
        for future, indexes in zip(self._futures, self._indexes, strict=True):
            base = future.result().offset
            if base < 0:
                raise OutcomeUnknown(
                    "The records stand in the log, at offsets that the broker has forgotten."
                )
            for number, index in enumerate(indexes):
                offsets[index] = base + number
        return offsets


async def send(producer: AIOKafkaProducer, records: Sequence[NewRecord]) -> Sent:
    """Hand the records over in batches (100,000/s, where aiokafka's single sends make 40,000/s).

    The batches of a partition keep their order. What is handed over must be awaited by `Sent.confirmed`.
    """
    by_partition = _by_partition(records)
    # First of all, so that nothing is waited for between the batches and all go out in one request.
    for topic in {topic for topic, _ in by_partition}:
        await producer.partitions_for(topic)
    sent = Sent()
    try:
        for (topic, partition), indexes in by_partition.items():
            await _send_partition(producer, topic, partition, records, indexes, sent)
    except KafkaError:
        # A batch that has failed before this one tells why; this one only that the producer has failed.
        await sent.confirmed()
        raise
    return sent


async def _send_partition(
    producer: AIOKafkaProducer,
    topic: str,
    partition: int,
    records: Sequence[NewRecord],
    indexes: Sequence[int],
    sent: Sent,
) -> None:
    builder = producer.create_batch()
    batch: list[int] = []
    for index in indexes:
        record = records[index]
        if not _append(builder, record):
            sent.add(await producer.send_batch(builder, topic, partition=partition), batch)
            builder, batch = producer.create_batch(), []
            _append(builder, record)
        batch.append(index)
    builder.close()
    sent.add(await producer.send_batch(builder, topic, partition=partition), batch)


def _append(builder: BatchBuilder, record: NewRecord) -> bool:
    """Add a record, if it still fits; a batch that took it not takes no more."""
    _, _, key, value, headers = record
    return builder.append(timestamp=None, key=key, value=value, headers=[*headers]) is not None


def _by_partition(records: Sequence[NewRecord]) -> dict[tuple[str, int], list[int]]:
    found: defaultdict[tuple[str, int], list[int]] = defaultdict(list)
    for index, (topic, partition, _, _, _) in enumerate(records):
        found[topic, partition].append(index)
    return found
