"""`tidelog rebuild`: the projection anew, from the engines' state and the transitions that the log holds."""

from __future__ import annotations

from collections.abc import Container
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.clock import Clock, wall_clock
from tidelog.core.changelog import restore
from tidelog.core.state import PartitionState, Retention
from tidelog.log.port import TopicPartition
from tidelog.log.scan import newest_values, scan
from tidelog.projector.decoding import entry_of
from tidelog.projector.earlier_lives import born_again
from tidelog.projector.intake import take_in
from tidelog_events.identity import JobId, Partition, Sequence
from tidelog_projections.batch import Happened, LogEntry, Position
from tidelog_projections.fold import QueueSettings
from tidelog_projections.rebuild import Rebuild, RestoredJob

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidelog.log.port import Log
    from tidelog.log.topics import Topics
    from tidelog_projections.projection import Projection


@dataclass(slots=True)
class RebuildProgress:
    """How far a rebuild has come: partitions done of all, jobs written, transitions taken in."""

    partitions: int
    done: int = 0
    jobs: int = 0
    transitions: int = 0


async def rebuild(
    log: Log,
    topics: Topics,
    projection: Projection,
    *,
    progress: Callable[[RebuildProgress], None] = lambda progress: None,  # noqa: ARG005  nobody watches
    clock: Clock = wall_clock,
) -> RebuildProgress:
    """Make the projection anew and put it in the place of the old one, which serves readers until then.

    Engines and projectors may go on meanwhile; a projector goes on from where the new one ends.

    Args:
        progress: called now and then with how far it has come.
        clock: says which workers have been silent for long.

    Raises:
        RebuildRunning: another process is rebuilding.
        LogUnavailable, ProjectionUnavailable: a service was lost; the old projection stands as it was.
        UnknownVersion, UnreadableState: the log holds what only a later release reads.
        SequenceGap: transitions are missing within what the log holds.
    """
    partitions = await log.partitions(topics.transitions)
    now = RebuildProgress(partitions)
    async with Rebuild.begin(
        projection.postgres, projection.history_policy, archive=projection.keeps_archive
    ) as new:
        for partition in map(Partition, range(partitions)):
            await _rebuild_partition(
                log, topics, new, partition, now, progress, archives=projection.keeps_archive
            )
            now.done += 1
            progress(now)
        await new.finish()
    # The log tells of workers of years ago.
    await projection.forget_silent_workers(clock())
    return now


async def _rebuild_partition(
    log: Log,
    topics: Topics,
    new: Rebuild,
    partition: Partition,
    now: RebuildProgress,
    progress: Callable[[RebuildProgress], None],
    *,
    archives: bool,
) -> None:
    source = TopicPartition(topics.transitions, partition)
    # The end before the state: so the state holds at least what the transitions up to there have done.
    end = await log.end_offset(source)
    state = await _read_state(log, TopicPartition(topics.state, partition), now.partitions)
    told = await born_again(log, source, state.jobs) if archives else frozenset()
    is_first = True
    async with aclosing(scan(log, source, end)) as batches:
        async for records, next_offset in batches:
            entries = [entry_of(record) for record in records]
            if is_first:
                await _restore(new, state, told, _before(entries, partition, records[0].offset))
                now.jobs += len(state.jobs)
                is_first = False
            await take_in(new.apply, partition, records, entries, next_offset)
            now.transitions += len(entries)
            progress(now)
    if is_first:
        await _restore(new, state, frozenset(), Position(partition, state.last_sequence, end))
        now.jobs += len(state.jobs)


async def _restore(new: Rebuild, state: PartitionState, told: Container[JobId], position: Position) -> None:
    """Write the state, but for the jobs that are left to the log to tell."""
    queues = [
        QueueSettings(
            queue=queue.name,
            partition=state.partition,
            paused=queue.paused,
            paused_at=queue.paused_at,
            paused_by=queue.paused_by,
            concurrency_limit=queue.limit,
        )
        for queue in state.queues.values()
        if queue.has_settings
    ]
    jobs = (RestoredJob(job, tuple(job.parents)) for job in state.jobs.values() if job.job_id not in told)
    await new.restore(queues, state.timetable.schedules.values(), jobs, position)


def _before(entries: list[LogEntry], partition: Partition, offset: int) -> Position:
    """The position just before the first events that the log holds."""
    for entry in entries:
        sequence = entry.event.sequence if isinstance(entry, Happened) else entry.sequence
        if sequence is not None:
            return Position(partition, Sequence(sequence - 1), offset)
    return Position(partition, next_offset=offset)


async def _read_state(log: Log, source: TopicPartition, partitions: int) -> PartitionState:
    newest = await newest_values(log, source, await log.end_offset(source))
    return restore(newest.items(), Partition(source.partition), partitions, Retention()).state
