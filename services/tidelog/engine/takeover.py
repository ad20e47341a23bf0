"""Taking over a partition, in the order that makes it safe (architecture: takeover)."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.core.changelog import InputPositions, restore
from tidelog.core.state import PartitionState, Retention
from tidelog.log.port import Isolation, Log, TopicPartition, Writer
from tidelog.log.scan import newest_values
from tidelog.log.topics import Topics
from tidelog_events.identity import Partition


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
        LogError: the log failed, or the state could not be read to its end.
        UnreadableState: the log holds what this release cannot read.
    """
    writer = await log.writer(topics.transactional_id(partition))
    try:
        source = TopicPartition(topics.state, partition)
        end = await log.end_offset(source, Isolation.UNCOMMITTED)
        entries = await newest_values(log, source, end)
        restored = restore(entries.items(), partition, partitions, retention)
        positions = restored.positions or InputPositions(
            commands=await log.start_offset(TopicPartition(topics.commands, partition)),
            links=await log.start_offset(TopicPartition(topics.links, partition)),
        )
    except BaseException:
        await writer.close()
        raise
    return Tenure(writer, restored.state, positions)
