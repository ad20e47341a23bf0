"""The reads: one statement each, on a connection that the caller has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from tidelog_events.bounds import MAX_HISTORY_ROWS
from tidelog_events.identity import NO_SEQUENCE, JobId, Partition, Sequence, WorkerId
from tidelog_events.instants import Instant
from tidelog_events.record import JobRecord
from tidelog_events.states import STATE_ORDINALS, TERMINAL_STATES, JobState
from tidelog_projections.batch import Position
from tidelog_projections.conditions import Conditions
from tidelog_projections.fold import QueueSettings
from tidelog_projections.paging import (
    JobFilter,
    JobOrder,
    JobPage,
    PageKey,
    check_limit,
    read_cursor,
    write_cursor,
)
from tidelog_projections.rows import (
    JOB_COLUMNS,
    POSITION_COLUMNS,
    QUEUE_COLUMNS,
    STEP_COLUMNS,
    read_position,
    read_record,
    tag_parts,
)
from tidelog_projections.text import shown

if TYPE_CHECKING:
    from tidelog_projections.connection import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryStep:
    """A step of a job's life, as `job_transitions` has it (contract section 10)."""

    job_id: JobId
    ordinal: int
    at: Instant
    type: str
    state: JobState
    attempt: int
    worker_id: WorkerId | None
    actor: str | None
    due_time: Instant | None
    lease_expiry: Instant | None
    error: str | None
    failure_detail: str | None
    terminal_cause: str | None
    partition: Partition
    sequence: Sequence


class CancelRequest(NamedTuple):
    """That somebody asked for a job to be cancelled while a worker held it. The log has it as a fact."""

    at: Instant
    actor: str | None
    partition: Partition
    sequence: Sequence


@dataclass(frozen=True, slots=True)
class QueueDepths:
    """A queue's settings, and how many of its jobs are in each of the seven states."""

    settings: QueueSettings
    depths: dict[JobState, int]


# ruff: noqa: S608  the statements below are put together from our own names; values travel apart from them

_TAGS_OF_JOB: Final = "FROM tidelog.job_tags t WHERE t.job_id = j.job_id ORDER BY t.position"
_TAGS: Final = (
    f"ARRAY(SELECT t.key {_TAGS_OF_JOB}) AS tag_keys, ARRAY(SELECT t.value {_TAGS_OF_JOB}) AS tag_values"
)
_RECORD: Final = f"SELECT {', '.join(f'j.{name}' for name, _ in JOB_COLUMNS)}, {_TAGS} FROM tidelog.jobs j"
_JOB: Final = f"{_RECORD} WHERE j.job_id = $1"
_HISTORY: Final = (
    f"SELECT {', '.join(name for name, _ in STEP_COLUMNS)} FROM tidelog.job_transitions"
    " WHERE job_id = $1 ORDER BY ordinal"
)
# The audit has every cancel of the id that had an effect; those of earlier lives are older than this one's
# birth, and one that cancelled at once is the last event of the row.
_CANCEL_REQUESTS: Final = (
    "SELECT a.at, a.actor, a.partition, a.sequence"
    " FROM tidelog.audit a JOIN tidelog.jobs j ON j.job_id = a.target"
    " WHERE a.target = $1 AND a.action = 'cancel' AND a.partition = j.partition"
    " AND a.sequence > j.enqueue_sequence AND NOT (j.state = 'Cancelled' AND a.sequence = j.sequence)"
    f" ORDER BY a.sequence DESC LIMIT {MAX_HISTORY_ROWS}"
)
_QUEUES: Final = (
    f"SELECT {', '.join(name for name, _ in QUEUE_COLUMNS)}, "
    "ARRAY(SELECT d.state FROM tidelog.queue_depths d WHERE d.queue = q.queue ORDER BY d.state) AS states, "
    "ARRAY(SELECT d.count FROM tidelog.queue_depths d WHERE d.queue = q.queue ORDER BY d.state) AS counts "
    "FROM tidelog.queues q ORDER BY queue"
)
_POSITIONS: Final = f"SELECT {POSITION_COLUMNS} FROM tidelog.projection_position"
_POSITION: Final = "SELECT sequence FROM tidelog.projection_position WHERE partition = $1"
_IS_TERMINAL: Final = (
    "SELECT true FROM tidelog.jobs WHERE job_id = $1 AND state_ordinal = ANY($2::smallint[])"
)
_TERMINAL_ORDINALS: Final = sorted(STATE_ORDINALS[state] for state in TERMINAL_STATES)


async def job(connection: Connection, job_id: JobId) -> JobRecord | None:
    """The record of a job, its payload and output to the letter; None when there is none (any more)."""
    # No id holds a NUL, and Postgres takes none in a text.
    row = await connection.fetchrow(_JOB, shown(job_id))
    return None if row is None else read_record(row)


async def jobs(connection: Connection, filters: JobFilter, *, limit: int, after: str | None) -> JobPage:
    """A page of jobs.

    Raises:
        InvalidQuery: the limit is out of bounds, or the cursor is none or another listing's.
    """
    check_limit(limit)
    key = None if after is None else read_cursor(after, filters)
    statement, arguments = _listing(filters, key, limit)
    rows = await connection.fetch(statement, *arguments)
    found = [read_record(row) for row in rows[:limit]]
    if len(rows) <= limit:
        return JobPage(found, None)
    return JobPage(found, write_cursor(PageKey(found[-1].due_time, found[-1].job_id), filters))


def _listing(filters: JobFilter, key: PageKey | None, limit: int) -> tuple[str, list[object]]:
    conditions = Conditions(filters, "j.")
    argument = conditions.argument
    if filters.any_tag:
        wanted = []
        for name, value in map(tag_parts, filters.any_tag):
            of_value = "t.value IS NULL" if value is None else f"t.value = {argument(shown(value))}"
            wanted.append(f"t.key = {argument(shown(name))} AND {of_value}")
        conditions.add(
            f"EXISTS (SELECT FROM tidelog.job_tags t WHERE t.job_id = j.job_id AND ({' OR '.join(wanted)}))"
        )
    comparison, direction = ("<", "DESC") if filters.order is JobOrder.LATEST_DUE else (">", "ASC")
    if key is not None:
        conditions.add(
            f"(j.due_time, j.job_id) {comparison} ({argument(key.due_time)}, {argument(key.job_id)})"
        )
    # One more than asked for tells whether there is another page.
    order = f"ORDER BY j.due_time {direction}, j.job_id {direction} LIMIT {argument(limit + 1)}"
    return f"{_RECORD}{conditions.where} {order}", conditions.arguments


async def history(connection: Connection, job_id: JobId) -> list[HistoryStep]:
    """The newest 64 steps of a job, oldest first; empty when there is no such job."""
    rows = await connection.fetch(_HISTORY, shown(job_id))
    return [HistoryStep(**{**dict(row), "state": JobState(row["state"])}) for row in rows]


async def cancel_requests(connection: Connection, job_id: JobId) -> list[CancelRequest]:
    """The newest 64 requests to the worker of a job to stop, in this life of the id, oldest first."""
    rows = await connection.fetch(_CANCEL_REQUESTS, shown(job_id))
    return [CancelRequest(**dict(row)) for row in reversed(rows)]


async def queues(connection: Connection) -> list[QueueDepths]:
    """Every queue, by name."""
    found: list[QueueDepths] = []
    for row in await connection.fetch(_QUEUES):
        columns = dict(row)
        counts = dict(zip(columns.pop("states"), columns.pop("counts"), strict=True))
        depths = {state: counts.get(state.value, 0) for state in JobState}
        found.append(QueueDepths(QueueSettings(**columns), depths))
    return found


async def positions(connection: Connection) -> dict[Partition, Position]:
    """How far each partition has come; one that nothing was read of is missing."""
    return {row["partition"]: read_position(row) for row in await connection.fetch(_POSITIONS)}


async def position(connection: Connection, partition: Partition) -> Sequence:
    """The sequence of the last event of a partition that was taken in; -1 before the first."""
    found: Sequence | None = await connection.fetchval(_POSITION, partition)
    return NO_SEQUENCE if found is None else found


async def is_terminal(connection: Connection, job_id: JobId) -> bool:
    """Whether the job is there and has ended."""
    return bool(await connection.fetchval(_IS_TERMINAL, shown(job_id), _TERMINAL_ORDINALS))
