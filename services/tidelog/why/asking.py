"""Looking at all that matters for one job, within bounds, and changing nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from tidelog.clock import Clock, wall_clock
from tidelog.inspection.freshness import Behind, HasPositions, missing, wait_until_fresh
from tidelog.inspection.presence import Presence, look_for_workers
from tidelog.log.port import LogError, TopicPartition
from tidelog.log.tail import newest_records
from tidelog.why.answer import Why
from tidelog.why.explaining import explain
from tidelog.why.situation import Engine, Situation
from tidelog_events.identity import JobId, Partition, partition_of, queue_of
from tidelog_events.states import JobState
from tidelog_projections.batch import Position

if TYPE_CHECKING:
    from tidelog.log.port import Log
    from tidelog.log.topics import Topics
    from tidelog_projections.circumstances import Circumstances

_LOOK_SECONDS: Final = 10.0


class KnowsJobs(HasPositions, Protocol):
    """What an answer needs of the projection."""

    async def circumstances(self, job_id: JobId) -> Circumstances:
        """A job with all that may be in its way, of one instant."""
        ...


async def ask_why(
    log: Log, topics: Topics, projection: KnowsJobs, job_id: JobId, *, clock: Clock = wall_clock
) -> Why:
    """Why the job is not running, or that it is. It takes some seconds at most, whatever is away.

    Raises:
        LogUnavailable, UnknownTopic: the log does not answer, or has no topics.
        ProjectionUnavailable: Postgres does not answer.
    """
    queue = queue_of(job_id)
    partition = partition_of(queue, await log.partitions(topics.transitions))
    is_behind = bool(await wait_until_fresh(log, topics.transitions, projection, queue))
    known = await projection.circumstances(job_id)
    job = known.job
    # An id that nobody knows may be that of an enqueue which waits for an engine.
    may_need_engine = known.archived is None if job is None else not job.state.is_terminal
    situation = Situation(
        now=clock(),
        job_id=job_id,
        partition=partition,
        known=known,
        behind=await _behind(log, topics, projection, partition) if is_behind else None,
        engine=await _engine(log, topics, partition) if may_need_engine else Engine.NOT_KNOWN,
        presence=await _presence(log, topics, partition, clock)
        if job is not None and job.state is JobState.SCHEDULED
        else None,
    )
    return Why(job_id, None if job is None else job.state, situation.now, tuple(explain(situation)))


async def _behind(log: Log, topics: Topics, projection: HasPositions, partition: Partition) -> Behind | None:
    source = TopicPartition(topics.transitions, partition)
    start = Position(partition, next_offset=await log.start_offset(source))
    position = (await projection.positions()).get(partition, start)
    newest = (await newest_records(log, [source], timeout=_LOOK_SECONDS)).get(source)
    if newest is None or newest.offset < position.next_offset:
        return None
    return await missing(log, source, position, newest, timeout=_LOOK_SECONDS)


async def _engine(log: Log, topics: Topics, partition: Partition) -> Engine:
    try:
        groups = await log.groups(topics.engine_group)
    except LogError:
        # To look at groups needs a right of its own in Kafka; the rest of the answer does not.
        return Engine.NOT_KNOWN
    wanted = TopicPartition(topics.commands, partition)
    for group in groups:
        if group.name == topics.engine_group:
            if any(wanted in member.partitions for member in group.members):
                return Engine.THERE
            if group.members and not group.is_settled:
                return Engine.CHANGING
    return Engine.NONE


async def _presence(log: Log, topics: Topics, partition: Partition, clock: Clock) -> Presence:
    return await look_for_workers(log, TopicPartition(topics.commands, partition), clock=clock)
