"""Whether a log is the one that a reader's position comes from.

Offsets and sequences do not tell: they are dense, so every log that has grown long enough has them all. The
bytes of the record that was read last do.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from enum import Enum
from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from tidelog.log.port import LogUnavailable, Record, TopicPartition
from tidelog_projections.batch import Mark

if TYPE_CHECKING:
    from tidelog.log.port import Log, Reader

_DIGEST_BYTES: Final = 16
_READ_SECONDS: Final = 1.0


class Difference(Enum):
    """What a log has in the place of a record that was read there."""

    OTHER_RECORD = "another record than the one that was read there"
    NO_RECORD = "no record, where one was read"


def mark_of(record: Record) -> Mark:
    """What tells a record apart from one of another log at the same offset."""
    return Mark(record.offset, blake2b(record.value or b"", digest_size=_DIGEST_BYTES).digest())


async def differences(
    log: Log, marks: Mapping[TopicPartition, Mark], *, timeout: float
) -> dict[TopicPartition, Difference]:
    """The partitions in which the log does not hold the record that was marked, and what is there instead.

    A record that the log has forgotten proves nothing, and its partition is passed over.

    Args:
        log: where to look; one short read for all of them.
        marks: of records that were committed when they were read.
        timeout: seconds for all of it.

    Raises:
        LogUnavailable: the log does not answer, or not in time.
        OffsetOutOfRange: the log has forgotten a record just now.
        UnknownTopic: one of the partitions is not there.
    """
    found: dict[TopicPartition, Difference] = {}
    sought: dict[TopicPartition, Mark] = {}
    for tp, mark in marks.items():
        if mark.offset >= await log.end_offset(tp):
            found[tp] = Difference.NO_RECORD
        elif mark.offset >= await log.start_offset(tp):
            sought[tp] = mark
    if sought:
        reader = await log.reader({tp: mark.offset for tp, mark in sought.items()})
        try:
            held = await _first_records(reader, sought, timeout)
        finally:
            await reader.close()
        for tp, mark in sought.items():
            record = held.get(tp)
            if record is None or record.offset != mark.offset:
                found[tp] = Difference.NO_RECORD
            elif mark_of(record) != mark:
                found[tp] = Difference.OTHER_RECORD
    return found


async def _first_records(
    reader: Reader, marks: Mapping[TopicPartition, Mark], timeout: float
) -> dict[TopicPartition, Record]:
    """The first record of each partition, as far as there is one up to the one that was marked."""
    deadline = time.monotonic() + timeout
    found: dict[TopicPartition, Record] = {}
    left = dict(marks)
    while left:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            raise LogUnavailable(f"The records last read of {len(left)} partitions were not read in time.")
        for record in await reader.read(max_records=len(left), timeout=min(seconds, _READ_SECONDS)):
            found.setdefault(TopicPartition(record.topic, record.partition), record)
        for tp in [tp for tp, mark in left.items() if reader.position(tp) > mark.offset]:
            del left[tp]
            # What follows is not asked for, and may be long.
            reader.pause(tp)
    return found
