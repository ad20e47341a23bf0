"""The newest records of partitions, found from their ends: offsets alone do not tell them.

In Kafka the offsets of a partition have gaps: the marker of each transaction takes one, an aborted
transaction many, compaction makes more. So an end offset says neither where the last record is nor how many
there are.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Final

from tidelog.log.port import Log, LogUnavailable, Reader, Record, TopicPartition

_FIRST_WINDOW: Final = 8
"""Offsets before the end that are read first: a transaction of ours ends with one marker."""
_WIDER: Final = 32
_READ_RECORDS: Final = 1_000
_READ_SECONDS: Final = 1.0


async def newest_records(
    log: Log, tps: Collection[TopicPartition], *, timeout: float, key: bytes | None = None
) -> dict[TopicPartition, Record]:
    """The newest committed record of each partition, of those that have one.

    Args:
        log: where they are.
        tps: the partitions.
        timeout: seconds for all of it.
        key: look for the newest record of this key.

    Raises:
        LogUnavailable: the log does not answer, or not in time.
        UnknownTopic: one of the partitions is not there.
    """
    deadline = time.monotonic() + timeout
    found: dict[TopicPartition, Record] = {}
    window = _FIRST_WINDOW
    bounds = {tp: (await log.start_offset(tp), await log.end_offset(tp)) for tp in tps}
    while True:
        # From the start of the window before to its end; what it held is known to be nothing.
        sought = {tp: max(start, end - window) for tp, (start, end) in bounds.items() if tp not in found}
        spans = {tp: (begin, bounds[tp][1]) for tp, begin in sought.items() if begin < bounds[tp][1]}
        if not spans:
            return found
        reader = await log.reader({tp: begin for tp, (begin, _) in spans.items()})
        try:
            for record in await _read_to(reader, {tp: end for tp, (_, end) in spans.items()}, deadline):
                if key is None or record.key == key:
                    found[TopicPartition(record.topic, record.partition)] = record
        finally:
            await reader.close()
        # A partition that was read from its start on and holds nothing is done.
        bounds = {tp: (bounds[tp][0], begin) for tp, (begin, _) in spans.items()}
        window *= _WIDER


async def _read_to(reader: Reader, ends: dict[TopicPartition, int], deadline: float) -> Sequence[Record]:
    """All records before the ends, in order within each partition."""
    records: list[Record] = []
    while any(reader.position(tp) < end for tp, end in ends.items()):
        left = deadline - time.monotonic()
        if left <= 0:
            raise LogUnavailable(f"The newest records of {len(ends)} partitions were not read in time.")
        records += await reader.read(max_records=_READ_RECORDS, timeout=min(left, _READ_SECONDS))
    return [r for r in records if r.offset < ends[TopicPartition(r.topic, r.partition)]]
