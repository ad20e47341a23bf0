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
    from tidelog.log.port import Log
    from tidelog.settings import Settings
    from tidelog_projections.projection import Projection

_PATIENCE_SECONDS: Final = 2.0
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
    """The end of each partition that Postgres did not reach in time."""
    from tidelog.log.port import TopicPartition

    count = await log.partitions(topic)
    partitions = map(Partition, range(count)) if queue is None else [partition_of(queue, count)]
    behind = {partition: await log.end_offset(TopicPartition(topic, partition)) for partition in partitions}
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        positions = await projection.positions()
        for partition in list(behind):
            reached = positions[partition].next_offset if partition in positions else 0
            if reached >= behind[partition]:
                del behind[partition]
        if not behind or time.monotonic() > deadline:
            return behind
        await asyncio.sleep(_PAUSE_SECONDS)
