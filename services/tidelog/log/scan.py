"""All of a partition up to an end that is known, in parts, with a bound on silence.

For all that reads what stands there and then is done: a takeover, a rebuild, the whole history of a job.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from tidelog.log.port import Isolation, LogUnavailable, Record, TopicPartition

if TYPE_CHECKING:
    from tidelog.log.port import Log

_BATCH_RECORDS: Final = 1_000
_READ_SECONDS: Final = 1.0
# A committed reader cannot pass an open transaction; the broker ends a dead writer's one after 15 s.
_NO_PROGRESS_SECONDS: Final = 25.0


async def scan(
    log: Log, source: TopicPartition, end: int, *, begin: int | None = None
) -> AsyncGenerator[tuple[list[Record], int], None]:
    """The committed records of a partition up to an offset, and after each part where it ends.

    From its start, or from another offset: what the log has forgotten from there on is passed over.

    Close it (`contextlib.aclosing`) when you stop before its end.

    Raises:
        LogUnavailable: nothing more came for a while, although the end was not reached.
        UnknownTopic: there is no such partition.
    """
    start = await log.start_offset(source)
    first = start if begin is None else max(start, begin)
    reader = await log.reader({source: first}, Isolation.COMMITTED)
    try:
        progress = time.monotonic()
        while (before := reader.position(source)) < end:
            read = await reader.read(max_records=_BATCH_RECORDS, timeout=_READ_SECONDS)
            # Not beyond: the end is also the end of a transaction, and half of one is no state.
            records = [record for record in read if record.offset < end]
            if records:
                yield records, min(reader.position(source), end)
            if reader.position(source) > before:
                progress = time.monotonic()
            elif time.monotonic() - progress > _NO_PROGRESS_SECONDS:
                raise LogUnavailable(
                    f"{source.topic}[{source.partition}] at {log.address} could be read to offset {before} "
                    f"and not to its end, {end}, for {_NO_PROGRESS_SECONDS:.0f} s. An open transaction may "
                    "hold it up. Try again"
                )
    finally:
        await reader.close()


async def newest_values(log: Log, source: TopicPartition, end: int) -> dict[str, bytes]:
    """What a compacted partition says up to an offset: the newest value of each key that has one.

    Raises as `scan`.
    """
    newest: dict[str, bytes] = {}
    async with aclosing(scan(log, source, end)) as parts:
        async for records, _ in parts:
            for record in records:
                key = (record.key or b"").decode()
                if record.value is None:
                    newest.pop(key, None)
                else:
                    newest[key] = record.value
    return newest
