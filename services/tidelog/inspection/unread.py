"""How much of the log of transitions a reader has yet to read, in events and in time.

Offsets do not tell: they have gaps. Sequences are dense, so they do.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.log.port import Log, Record, TopicPartition
from tidelog_events.identity import Sequence
from tidelog_events.instants import Instant, NotAnInstant, parse_instant
from tidelog_events.jsontext import NotJson, loads


@dataclass(frozen=True, slots=True)
class Unread:
    """What is left of a partition.

    Attributes:
        events: how many; the most that it can be where a sequence cannot be read.
        oldest, newest: when the first and the last of them happened; None where that cannot be read.
    """

    events: int
    oldest: Instant | None
    newest: Instant | None


async def left_to_read(
    log: Log, tp: TopicPartition, next_offset: int, newest: Record | None, *, timeout: float
) -> Unread | None:
    """What there is from an offset that a group has committed, to the newest record of the partition.

    None when the log does not hold what the group is to read next. Raises as `unread`.
    """
    if not await log.start_offset(tp) <= next_offset <= await log.end_offset(tp):
        return None
    if newest is None or newest.offset < next_offset:
        return Unread(0, None, None)
    return await unread(log, tp, next_offset, newest, timeout=timeout)


async def unread(log: Log, tp: TopicPartition, next_offset: int, newest: Record, *, timeout: float) -> Unread:
    """What there is from an offset, which the log holds, to the newest record, which is not before it.

    Raises:
        LogUnavailable: the log does not answer.
        OffsetOutOfRange: the log does not hold that offset.
    """
    reader = await log.reader({tp: next_offset})
    try:
        first: list[Record] = []
        while not first and reader.position(tp) <= newest.offset:
            first = await reader.read(max_records=1, timeout=timeout)
    finally:
        await reader.close()
    first_sequence, oldest = place_and_time(first[0] if first else None)
    last_sequence, newest_at = place_and_time(newest)
    if first_sequence is None or last_sequence is None:
        return Unread(newest.offset + 1 - next_offset, oldest, newest_at)
    return Unread(last_sequence + 1 - first_sequence, oldest, newest_at)


def place_and_time(record: Record | None) -> tuple[Sequence | None, Instant | None]:
    """Sequence and time of an event, as far as they can be read, whatever its type and version."""
    if record is None or record.value is None:
        return None, None
    try:
        written = loads(record.value)
    except NotJson:
        return None, None
    match written:
        case {"sequence": int(sequence), "at": str(at)}:
            try:
                return Sequence(sequence), parse_instant(at)
            except NotAnInstant:
                return Sequence(sequence), None
    return None, None
