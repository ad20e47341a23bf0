"""Where an observer begins that has never run: it counts once, and is never gone back to."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from tidelog.log.port import Log, TopicPartition
from tidelog_events.instants import SECOND, from_datetime

Start: TypeAlias = Literal["beginning", "now"] | datetime


async def first_offset(log: Log, tp: TopicPartition, start: Start) -> int:
    """The offset at which an observer without one begins.

    Args:
        start: `"beginning"` of what the log holds; `"now"`, after the newest event; or the first event that
            was written at a time or after it.

    Raises:
        LogUnavailable: the log does not answer.
    """
    if start == "beginning":
        return await log.start_offset(tp)
    if start == "now":
        return await log.end_offset(tp)
    return await log.offset_at(tp, from_datetime(start) / SECOND)


async def beginnings_of(log: Log, topic: str, start: Start) -> dict[int, int]:
    """Where an observer without offsets begins, by partition.

    Noted before a process says that it has started, so that "now" is no later than that.
    """
    return {
        partition: await first_offset(log, TopicPartition(topic, partition), start)
        for partition in range(await log.partitions(topic))
    }
