"""Taking over a partition, in the order that makes it safe (architecture: takeover)."""

from __future__ import annotations

import time
from dataclasses import dataclass

from tidelog.core.changelog import InputPositions, restore
from tidelog.core.state import PartitionState, Retention
from tidelog.engine.errors import TakeoverStalled
from tidelog.log.port import Isolation, Log, Reader, TopicPartition, Writer
from tidelog.log.topics import Topics
from tidelog_events.identity import Partition

# Above the transaction timeout of 15 s, after which a broker gives up a dead writer's open transaction by
# itself: until then a committed reader may be held up without anything being wrong.
NO_PROGRESS_SECONDS = 25.0
_READ_SECONDS = 1.0
_READ_RECORDS = 5_000


@dataclass(slots=True)
class Tenure:
    """A partition taken over: its writer, its state, and where its inputs go on."""

    writer: Writer
    state: PartitionState
    positions: InputPositions


async def take_over(
    log: Log, topics: Topics, partition: Partition, partitions: int, retention: Retention
) -> Tenure:
    """Fence the predecessor, then read all that it committed, and only then be ready to decide.

    The order is the safety: once the writer is open no older one can commit, so the end of the state taken
    after that is final. It is the *uncommitted* end: an open transaction holds the committed one down.

    Raises:
        TakeoverStalled: the state could not be read to its end.
        LogError, UnreadableState: the log failed, or holds what this release cannot read.
    """
    writer = await log.writer(topics.transactional_id(partition))
    try:
        source = TopicPartition(topics.state, partition)
        end = await log.end_offset(source, Isolation.UNCOMMITTED)
        entries = await _read_state(log, source, end)
        restored = restore(entries.items(), partition, partitions, retention)
        positions = restored.positions or InputPositions(
            commands=await log.start_offset(TopicPartition(topics.commands, partition)),
            links=await log.start_offset(TopicPartition(topics.links, partition)),
        )
    except BaseException:
        await writer.close()
        raise
    return Tenure(writer, restored.state, positions)


async def _read_state(log: Log, source: TopicPartition, end: int) -> dict[str, bytes]:
    """The newest value of each key up to an offset."""
    reader = await log.reader({source: await log.start_offset(source)}, Isolation.COMMITTED)
    try:
        return await _read_to(reader, source, end)
    finally:
        await reader.close()


async def _read_to(reader: Reader, source: TopicPartition, end: int) -> dict[str, bytes]:
    newest: dict[str, bytes] = {}
    progress = time.monotonic()
    while reader.position(source) < end:
        before = reader.position(source)
        for record in await reader.read(max_records=_READ_RECORDS, timeout=_READ_SECONDS):
            key = (record.key or b"").decode()
            if record.value is None:
                newest.pop(key, None)
            else:
                newest[key] = record.value
        if reader.position(source) > before:
            progress = time.monotonic()
        elif time.monotonic() - progress > NO_PROGRESS_SECONDS:
            raise TakeoverStalled(
                f"{source.topic}[{source.partition}] could be read to offset {before} and not to its "
                f"end, {end}, for {NO_PROGRESS_SECONDS:.0f} s. An open transaction may hold it up"
            )
    return newest
