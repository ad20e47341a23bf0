"""What Postgres knows of a job's circumstances at one instant: parents, queue, jobs ahead of it, worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidelog_events.identity import JobId, WorkerId
from tidelog_events.instants import Instant
from tidelog_events.record import JobRecord
from tidelog_events.states import STATE_ORDINALS, JobState
from tidelog_projections import archive, queries, workers
from tidelog_projections.archive import ArchivedJob
from tidelog_projections.fold import QueueSettings
from tidelog_projections.queries import CancelRequest
from tidelog_projections.rows import QUEUE_COLUMNS, read_queue
from tidelog_projections.text import shown
from tidelog_projections.workers import WorkerRow

if TYPE_CHECKING:
    from tidelog_projections.connection import Connection

MAX_HOLDERS: Final = 16
"""The most jobs that are named as holding a queue's limit."""
MAX_COUNTED: Final = 10_000
"""Jobs ahead are counted so far: beyond it the number does not matter, and to count costs."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A job that another one was enqueued after. `state` is None when Postgres does not know it."""

    job_id: JobId
    state: JobState | None


@dataclass(frozen=True, slots=True)
class Holder:
    """A job that a worker holds."""

    job_id: JobId
    worker_id: WorkerId
    lease_expiry: Instant


@dataclass(frozen=True, slots=True)
class LastError:
    """Why the newest attempt that did not succeed did not, as far as the history is kept."""

    attempt: int
    at: Instant
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What is known of a job, and of what may be in its way.

    Attributes:
        job: its record; None when there is no such job (any more).
        archived: the life of that id that was purged last, where an archive is kept and there is no job.
        parents: those it was enqueued with, in order.
        children: how many jobs name it as a parent.
        last_error: None when no attempt failed, or no history is kept.
        cancel_requests: who asked its worker to stop, oldest first.
        leased_at: when the present attempt was granted; None when it runs not, or no history is kept.
        worker: the one that holds it.
        queue: the settings of its queue; None when Postgres knows nothing of that queue.
        leased: how many jobs of the queue workers hold.
        holders: the first of them to run out.
        ahead: due jobs of the queue that come before it in claim order, at most `MAX_COUNTED`.
    """

    job: JobRecord | None
    archived: ArchivedJob | None = None
    parents: tuple[Parent, ...] = ()
    children: int = 0
    last_error: LastError | None = None
    cancel_requests: tuple[CancelRequest, ...] = ()
    leased_at: Instant | None = None
    worker: WorkerRow | None = None
    queue: QueueSettings | None = None
    leased: int = 0
    holders: tuple[Holder, ...] = ()
    ahead: int = 0


# ruff: noqa: S608  the statements below are put together from our own names; values travel apart from them

_PARENTS: Final = (
    "SELECT d.parent_id, j.state FROM tidelog.job_dependencies d"
    " LEFT JOIN tidelog.jobs j ON j.job_id = d.parent_id WHERE d.job_id = $1 ORDER BY d.position"
)
_CHILDREN: Final = "SELECT count(*) FROM tidelog.job_dependencies WHERE parent_id = $1"
_LAST_ERROR: Final = (
    "SELECT attempt, at, coalesce(error, terminal_cause, 'the lease expired') AS error"
    " FROM tidelog.job_transitions WHERE job_id = $1 AND (error IS NOT NULL OR type IN"
    " ('lease_expired', 'quarantined')) ORDER BY ordinal DESC LIMIT 1"
)
_LEASED_AT: Final = (
    "SELECT at FROM tidelog.job_transitions WHERE job_id = $1 AND type = 'leased'"
    " ORDER BY ordinal DESC LIMIT 1"
)
_QUEUE: Final = f"SELECT {', '.join(name for name, _ in QUEUE_COLUMNS)} FROM tidelog.queues WHERE queue = $1"
_LEASED: Final = (
    f"SELECT count FROM tidelog.queue_depths WHERE queue = $1 AND state = '{JobState.LEASED.value}'"
)
_HOLDERS: Final = (
    "SELECT job_id, lease_owner AS worker_id, lease_expiry FROM tidelog.jobs"
    f" WHERE state_ordinal = {STATE_ORDINALS[JobState.LEASED]} AND queue = $1"
    f" ORDER BY lease_expiry, job_id LIMIT {MAX_HOLDERS}"
)
_AHEAD: Final = (
    "SELECT count(*) FROM (SELECT FROM tidelog.jobs"
    f" WHERE state_ordinal = {STATE_ORDINALS[JobState.SCHEDULED]} AND queue = $1 AND due_time <= $2"
    f" AND (due_time, enqueue_sequence) < ($2, $3) LIMIT {MAX_COUNTED}) AS earlier"
)


async def circumstances(connection: Connection, job_id: JobId) -> Circumstances:
    """Look at all of it in one snapshot, so that no part contradicts another."""
    async with connection.transaction(isolation="repeatable_read", readonly=True):
        job = await queries.job(connection, job_id)
        if job is None:
            return Circumstances(job=None, archived=await archive.newest_life(connection, job_id))
        return await _around(connection, job)


async def _around(connection: Connection, job: JobRecord) -> Circumstances:
    job_id = shown(job.job_id)
    error = await connection.fetchrow(_LAST_ERROR, job_id)
    queue = await connection.fetchrow(_QUEUE, shown(job.queue))
    owner = job.lease_owner
    known = {} if owner is None else await workers.named(connection, [owner])
    return Circumstances(
        job=job,
        parents=await _parents(connection, job_id),
        children=await connection.fetchval(_CHILDREN, job_id),
        last_error=None if error is None else LastError(**dict(error)),
        cancel_requests=tuple(await queries.cancel_requests(connection, job.job_id)),
        leased_at=None if owner is None else await connection.fetchval(_LEASED_AT, job_id),
        worker=None if owner is None else known.get(owner),
        queue=None if queue is None else read_queue(queue),
        leased=await connection.fetchval(_LEASED, shown(job.queue)) or 0,
        holders=tuple(Holder(**dict(row)) for row in await connection.fetch(_HOLDERS, shown(job.queue))),
        ahead=await _ahead(connection, job),
    )


async def _parents(connection: Connection, job_id: str) -> tuple[Parent, ...]:
    rows = await connection.fetch(_PARENTS, job_id)
    return tuple(
        Parent(JobId(row["parent_id"]), None if row["state"] is None else JobState(row["state"]))
        for row in rows
    )


async def _ahead(connection: Connection, job: JobRecord) -> int:
    if job.state is not JobState.SCHEDULED:
        return 0
    found: int = await connection.fetchval(_AHEAD, shown(job.queue), job.due_time, job.enqueue_sequence)
    return found
