"""Where an observer begins that has never run: it counts once, and is never gone back to."""

from __future__ import annotations

from datetime import datetime
from typing import Final, Literal, TypeAlias

from tidelog.log.port import Log, LogUnavailable, Reader, Record, TopicPartition
from tidelog_events.codec import Undecodable, UnknownVersion, decode_transition
from tidelog_events.instants import Instant, from_datetime

Start: TypeAlias = Literal["beginning", "now"] | datetime

_READ_SECONDS: Final = 10.0
_READ_RECORDS: Final = 20


async def first_offset(log: Log, tp: TopicPartition, start: Start) -> int:
    """The offset at which an observer without one begins.

    Args:
        start: `"beginning"` of what the log holds; `"now"`, after the newest event; or the first event at or
            after a time.

    Raises:
        LogUnavailable: the log does not answer.
    """
    if start == "beginning":
        return await log.start_offset(tp)
    end = await log.end_offset(tp)
    if start == "now":
        return end
    return await _offset_at(log, tp, await log.start_offset(tp), end, from_datetime(start))


async def _offset_at(log: Log, tp: TopicPartition, start: int, end: int, instant: Instant) -> int:
    """Halve what is left until the place is found: the events of a partition are in order of time."""
    if start == end:
        return end
    reader = await log.reader({tp: start})
    low, high = start, end
    try:
        while low < high:
            middle = (low + high) // 2
            reader.seek(tp, middle)
            found = await _first_dated(reader, tp, high)
            if found is None:  # nothing but gaps, or nothing that can be read, from the middle on
                high = middle
                continue
            offset, at = found
            if at < instant:
                low = offset + 1
            else:
                high = middle
    finally:
        await reader.close()
    return low


async def _first_dated(reader: Reader, tp: TopicPartition, end: int) -> tuple[int, Instant] | None:
    """The first event before `end` that can be read, from the reader's position on, and when it happened."""
    while reader.position(tp) < end:
        before = reader.position(tp)
        records = await reader.read(max_records=_READ_RECORDS, timeout=_READ_SECONDS)
        for record in records:
            if record.offset >= end:
                return None
            at = _time_of(record)
            if at is not None:
                return record.offset, at
        if not records and reader.position(tp) == before:
            raise LogUnavailable(f"{tp.topic}[{tp.partition}] was not read at offset {before} in time.")
    return None


def _time_of(record: Record) -> Instant | None:
    try:
        event = decode_transition(record.value)
    except (Undecodable, UnknownVersion):
        return None
    return None if event is None else event.at
