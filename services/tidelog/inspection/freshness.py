"""How far Postgres is behind the log, and waiting until it is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from tidelog.inspection.unread import unread
from tidelog.log.port import Record, TopicPartition
from tidelog.log.tail import newest_records
from tidelog_events.identity import Partition, QueueName, partition_of
from tidelog_events.instants import Instant
from tidelog_projections.batch import Position

if TYPE_CHECKING:
    from tidelog.log.port import Log

PATIENCE_SECONDS: Final = 2.0
"""For how long a read waits until Postgres has what the log holds."""
_LOOK_SECONDS: Final = 10.0
"""The longest look for the newest records of the log."""
_PAUSE_SECONDS: Final = 0.02


class HasPositions(Protocol):
    """What tells how far Postgres has come."""

    async def positions(self) -> dict[Partition, Position]:
        """The position of each partition that anything was read of."""
        ...


@dataclass(frozen=True, slots=True)
class Behind:
    """A partition that Postgres does not have to its end.

    Attributes:
        events: how many are missing.
        oldest, newest: when the first and the last of them happened; None where that cannot be read.
    """

    partition: int
    events: int
    oldest: Instant | None
    newest: Instant | None


async def wait_until_fresh(
    log: Log, topic: str, projection: HasPositions, queue: QueueName | None
) -> list[Partition]:
    """Wait until Postgres has what the log holds now, of one queue's partition or of all.

    Returns the partitions that it did not have in `PATIENCE_SECONDS`. Raises what the log and Postgres raise.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    count = await log.partitions(topic)
    partitions = map(Partition, range(count)) if queue is None else [partition_of(queue, count)]
    ends = {partition: await log.end_offset(TopicPartition(topic, partition)) for partition in partitions}
    behind = _behind(ends, await projection.positions())
    if behind:
        behind = await _past_the_newest(log, topic, behind)
    while behind := _behind(behind, await projection.positions()):
        if time.monotonic() > deadline:
            return sorted(behind)
        await asyncio.sleep(_PAUSE_SECONDS)
    return []


async def missing(
    log: Log, tp: TopicPartition, position: Position, newest: Record, *, timeout: float
) -> Behind:
    """What Postgres lacks of a partition of the transitions.

    Args:
        log: where it is.
        tp: the partition.
        position: how far Postgres has come with it.
        newest: the newest record there, further on than the position.
        timeout: seconds for each look.
    """
    left = await unread(log, tp, position.next_offset, newest, timeout=timeout)
    return Behind(tp.partition, left.events, left.oldest, left.newest)


def _behind(ends: Mapping[Partition, int], positions: Mapping[Partition, Position]) -> dict[Partition, int]:
    """Where to each partition must be read, of those that were not."""
    return {
        partition: end
        for partition, end in ends.items()
        if (positions[partition].next_offset if partition in positions else 0) < end
    }


async def _past_the_newest(log: Log, topic: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
    """The offset after the newest record of each partition; the end is further on, after the markers."""
    tps = [TopicPartition(topic, partition) for partition in partitions]
    newest = await newest_records(log, tps, timeout=_LOOK_SECONDS)
    return {Partition(tp.partition): record.offset + 1 for tp, record in newest.items()}
