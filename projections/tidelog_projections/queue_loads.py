"""What is due in each queue, and what has ended badly there: for those who look after an installation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidelog_events.identity import Partition, QueueName
from tidelog_events.instants import Instant
from tidelog_events.states import STATE_ORDINALS, JobState

if TYPE_CHECKING:
    from tidelog_projections.connection import Connection

MAX_COUNTED: Final = 100_000
"""So many due jobs are counted, the oldest first: a queue that nobody serves has old ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueLoad:
    """A queue in which something is due, or has ended badly.

    Attributes:
        paused: whether it is, so that nothing of it is to run.
        due: how many jobs are due; not all when there are more than `MAX_COUNTED` in the installation.
        oldest_due: since when the first of them is.
        dead_lettered, quarantined: how many jobs are.
    """

    queue: QueueName
    partition: Partition
    paused: bool
    due: int
    oldest_due: Instant | None
    dead_lettered: int
    quarantined: int


_LOADS: Final = f"""
WITH due AS (
    SELECT queue, count(*) AS due, min(due_time) AS oldest_due FROM (
        SELECT queue, due_time FROM tidelog.jobs
        WHERE state_ordinal = {STATE_ORDINALS[JobState.SCHEDULED]} AND due_time <= $1
        ORDER BY due_time LIMIT {MAX_COUNTED}
    ) AS oldest GROUP BY queue
),
bad AS (
    SELECT queue,
        sum(count) FILTER (WHERE state = '{JobState.DEAD_LETTERED.value}')::bigint AS dead_lettered,
        sum(count) FILTER (WHERE state = '{JobState.QUARANTINED.value}')::bigint AS quarantined
    FROM tidelog.queue_depths GROUP BY queue
)
SELECT q.queue, q.partition, q.paused, coalesce(due.due, 0) AS due, due.oldest_due,
    coalesce(bad.dead_lettered, 0) AS dead_lettered, coalesce(bad.quarantined, 0) AS quarantined
FROM tidelog.queues q LEFT JOIN due USING (queue) LEFT JOIN bad USING (queue)
WHERE due.due > 0 OR bad.dead_lettered > 0 OR bad.quarantined > 0
ORDER BY q.queue
"""  # noqa: S608  our own names


async def queue_loads(connection: Connection, now: Instant) -> tuple[QueueLoad, ...]:
    """Every queue in which something is due by then, or has ended badly, by name."""
    return tuple(QueueLoad(**dict(row)) for row in await connection.fetch(_LOADS, now))
