"""Reads that are as new as the log was when they were asked for, where Postgres can keep up."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Final

from tidelog.cli.console import say
from tidelog.cli.session import open_log
from tidelog_events.errors import TidelogError
from tidelog_events.identity import Partition, QueueName, partition_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tidelog.log.port import Log
    from tidelog.settings import Settings
    from tidelog_projections.batch import Position
    from tidelog_projections.projection import Projection

_PATIENCE_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 10.0
"""The longest look for the newest records of the log."""
_PAUSE_SECONDS: Final = 0.02


async def catch_up(settings: Settings, projection: Projection, queue: QueueName | None) -> None:
    """Wait a little until Postgres has what the log holds now, of one queue's partition or of all.

    A read goes on in any case: when it may be stale, people are told why.
    """
    try:
        async with open_log(settings) as log:
            behind = await _wait(log, settings.topics.transitions, projection, queue)
    except TidelogError as error:
        say(f"tidelog: whether this is the newest state is not known: {error}")
        return
    if behind:
        names = ", ".join(map(str, sorted(behind)))
        say(
            f"tidelog: Postgres is behind the log {settings.log} (partitions: {names}); what follows is "
            "older. Check that `tidelog projector` runs."
        )


async def _wait(
    log: Log, topic: str, projection: Projection, queue: QueueName | None
) -> dict[Partition, int]:
    """Where to each partition must be read, of those that Postgres did not have in time."""
    from tidelog.log.port import TopicPartition

    deadline = time.monotonic() + _PATIENCE_SECONDS
    count = await log.partitions(topic)
    partitions = map(Partition, range(count)) if queue is None else [partition_of(queue, count)]
    ends = {partition: await log.end_offset(TopicPartition(topic, partition)) for partition in partitions}
    behind = _behind(ends, await projection.positions())
    if behind:
        behind = await _past_the_newest(log, topic, behind)
    while behind := _behind(behind, await projection.positions()):
        if time.monotonic() > deadline:
            return behind
        await asyncio.sleep(_PAUSE_SECONDS)
    return {}


def _behind(ends: dict[Partition, int], positions: dict[Partition, Position]) -> dict[Partition, int]:
    return {
        partition: end
        for partition, end in ends.items()
        if (positions[partition].next_offset if partition in positions else 0) < end
    }


async def _past_the_newest(log: Log, topic: str, partitions: Iterable[Partition]) -> dict[Partition, int]:
    """The offset after the newest record of each partition; the end is further on, after the markers."""
    from tidelog.log.port import TopicPartition
    from tidelog.log.tail import newest_records

    tps = [TopicPartition(topic, partition) for partition in partitions]
    newest = await newest_records(log, tps, timeout=_LOOK_SECONDS)
    return {Partition(tp.partition): record.offset + 1 for tp, record in newest.items()}
