"""A batch of the log into Postgres: one transaction, a statement for each table and none for a single row.

The position of the partition is locked first and written last, in the same transaction. So a batch that comes
twice changes nothing, of two projectors at the same partition one waits for the other, and a crash anywhere
leaves the rows and the position as they were together.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

import asyncpg

from tidelog_events.bounds import MAX_HISTORY_ROWS
from tidelog_events.identity import JobId, Partition, QueueName
from tidelog_events.record import JobRecord
from tidelog_events.transitions import (
    DeadLettered,
    JobFact,
    Purged,
    QueueFact,
    RetryScheduled,
    ScheduleFact,
    Succeeded,
    Transition,
)
from tidelog_projections.archive import ARCHIVE, parts_with_whole_rows
from tidelog_projections.batch import Batch, Position, Unread, advance
from tidelog_projections.errors import Unstorable
from tidelog_projections.fold import Changes, QueueSettings
from tidelog_projections.history import History
from tidelog_projections.rows import (
    CHANGING_COLUMNS,
    FOLDED_COLUMNS,
    JOB_COLUMNS,
    POSITION_COLUMNS,
    QUEUE_COLUMNS,
    STEP_COLUMNS,
    changing_row,
    position_row,
    queue_row,
    read_folded,
    read_position,
    read_queue,
    read_tags,
    step_row,
    tag_parts,
    whole_row,
)
from tidelog_projections.schedule_rows import read_schedules, write_schedules
from tidelog_projections.statements import Columns, insert, put, replace, unnest
from tidelog_projections.text import shown
from tidelog_projections.workers import PUT_WORKERS

if TYPE_CHECKING:
    from tidelog_projections.connection import Connection

SWAP_LOCK: Final = 0x71DE_0002
"""Advisory lock: shared by every batch, exclusive while a rebuild takes over the schema's name."""

_UNSTORABLE: Final = (
    asyncpg.DataError,
    asyncpg.IntegrityConstraintViolationError,  # a null where a value must be
    asyncpg.ProgramLimitExceededError,  # a text too long for an index
    TypeError,
    ValueError,  # asyncpg's own refusals to encode are among them
    OverflowError,
)

_KINDS: Final = dict(JOB_COLUMNS)
_CHANGING: Final[Columns] = tuple((name, _KINDS[name]) for name in CHANGING_COLUMNS)
_TAG_COLUMNS: Final = (("job_id", "text"), ("position", "integer"), ("key", "text"), ("value", "text"))
_PARENT_COLUMNS: Final = (("job_id", "text"), ("parent_id", "text"), ("position", "integer"))
_DEPTH_COLUMNS: Final = (("queue", "text"), ("state", "text"), ("count", "bigint"))
_AUDIT_COLUMNS: Final = (
    ("partition", "integer"),
    ("sequence", "bigint"),
    ("actor", "text"),
    ("action", "text"),
    ("target", "text"),
    ("at", "timestamptz"),
)
_REJECT_COLUMNS: Final = (
    ("partition", "integer"),
    ("log_offset", "bigint"),
    ("reason", "text"),
    ("value", "bytea"),
)

# A lost commit is taken in again from the position that went with it: no need to wait for the disk. A plan
# that was made while the tables were empty would read them whole for every batch, once they are not.
_BEGIN: Final = (
    "SELECT set_config('search_path', $1, true), set_config('synchronous_commit', 'off', true),"
    " set_config('plan_cache_mode', 'force_custom_plan', true), pg_advisory_xact_lock_shared($2)"
)
_LOCK_POSITION: Final = f"SELECT {POSITION_COLUMNS} FROM projection_position WHERE partition = $1 FOR UPDATE"  # noqa: S608  our own names
_MAKE_POSITION: Final = (
    f"INSERT INTO projection_position ({POSITION_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6)"  # noqa: S608  our own names
    " ON CONFLICT (partition) DO "
)
_PUT_POSITION: Final = (
    f"{_MAKE_POSITION} UPDATE SET sequence = excluded.sequence, next_offset = excluded.next_offset,"
    " unread = excluded.unread, last_offset = excluded.last_offset, last_digest = excluded.last_digest,"
    " updated_at = now()"
)
_READ_JOBS: Final = f"SELECT {FOLDED_COLUMNS} FROM jobs WHERE job_id = ANY($1::text[])"  # noqa: S608  our own names
_READ_TAGS: Final = (
    "SELECT job_id, array_agg(key ORDER BY position) AS keys, array_agg(value ORDER BY position) AS values"
    " FROM job_tags WHERE job_id = ANY($1::text[]) GROUP BY job_id"
)
_READ_QUEUES: Final = (
    f"SELECT {', '.join(name for name, _ in QUEUE_COLUMNS)} FROM queues WHERE queue = ANY($1::text[])"  # noqa: S608  our own names
)
# Tags and parents carry no sequence; they go with the row of their job, or when that is gone already.
_ERASE: Final = """
WITH erased AS (SELECT * FROM unnest($1::text[], $2::bigint[]) AS e (job_id, sequence)),
kept AS (SELECT e.job_id FROM erased e JOIN jobs j ON j.job_id = e.job_id AND j.sequence >= e.sequence),
gone AS (SELECT job_id FROM erased EXCEPT SELECT job_id FROM kept),
steps AS (DELETE FROM job_transitions t USING erased e WHERE t.job_id = e.job_id),
tags AS (DELETE FROM job_tags t USING gone WHERE t.job_id = gone.job_id),
parents AS (DELETE FROM job_dependencies d USING gone WHERE d.job_id = gone.job_id)
DELETE FROM jobs j USING gone WHERE j.job_id = gone.job_id
"""
_PUT_JOBS: Final = insert("jobs", JOB_COLUMNS, replace("jobs", "job_id", JOB_COLUMNS))
_CHANGE_JOBS: Final = (
    "UPDATE jobs SET "  # noqa: S608  our own names
    + ", ".join(
        f"{name} = new.{name}" if name != "output" else "output = coalesce(new.output, jobs.output)"
        for name in CHANGING_COLUMNS[1:]
    )
    + f" FROM {unnest(_CHANGING)} WHERE jobs.job_id = new.job_id AND jobs.sequence < new.sequence"
)
_PUT_TAGS: Final = insert("job_tags", _TAG_COLUMNS, "DO NOTHING")
_PUT_PARENTS: Final = insert("job_dependencies", _PARENT_COLUMNS, "DO NOTHING")
_PUT_STEPS: Final = insert("job_transitions", STEP_COLUMNS, "DO NOTHING")
_TRIM_STEPS: Final = (
    "DELETE FROM job_transitions t USING unnest($1::text[], $2::integer[]) AS newest (job_id, ordinal)"  # noqa: S608  a number
    f" WHERE t.job_id = newest.job_id AND t.ordinal <= newest.ordinal - {MAX_HISTORY_ROWS}"
)
_MAKE_QUEUES: Final = insert("queues", QUEUE_COLUMNS[:2], "DO NOTHING")
_PUT_QUEUES: Final = insert("queues", QUEUE_COLUMNS, replace("queues", "queue", QUEUE_COLUMNS))
_ADD_DEPTHS: Final = insert(
    "queue_depths", _DEPTH_COLUMNS, "(queue, state) DO UPDATE SET count = queue_depths.count + excluded.count"
)
_DROP_EMPTY_DEPTHS: Final = "DELETE FROM queue_depths WHERE queue = ANY($1::text[]) AND count = 0"
_PUT_AUDIT: Final = insert("audit", _AUDIT_COLUMNS, "DO NOTHING")
_PUT_REJECTS: Final = insert("projection_rejects", _REJECT_COLUMNS, "DO NOTHING")


async def apply(
    connection: Connection, batch: Batch, *, schema: str, history: History, archive: bool = False
) -> Position:
    """Take a batch into the tables of `schema`, in one transaction, and return the position after it.

    Args:
        connection: outside of a transaction.
        batch: of one partition.
        schema: where the tables are.
        history: which steps of jobs are kept.
        archive: whether jobs that are purged are kept in `jobs_archive`.

    Raises:
        SequenceGap: an event of the partition is missing before the batch; nothing was taken in.
        Unstorable: a value among the events fits no column; nothing was taken in.
    """
    try:
        async with connection.transaction():
            await begin(connection, schema)
            start = await _lock_position(connection, batch.partition)
            step = advance(start, batch)
            if step.position == start:
                return start
            for events in parts_with_whole_rows(step.events) if archive else filter(None, [step.events]):
                changes = await _fold(connection, events, history)
                if archive:
                    await _archive(connection, changes)
                await write_changes(connection, changes)
            await _put_rejects(connection, batch.partition, step.set_aside)
            await put_position(connection, step.position)
            return step.position
    except _UNSTORABLE as error:
        raise Unstorable(
            f"partition {batch.partition} of the transitions, among the {len(batch.entries)} records before "
            f"offset {batch.next_offset}: {error}"
        ) from error


async def begin(connection: Connection, schema: str) -> None:
    """Aim the caller's transaction at a schema, and keep a rebuild from taking its name meanwhile."""
    await connection.execute(_BEGIN, schema, SWAP_LOCK)


async def _lock_position(connection: Connection, partition: Partition) -> Position:
    row = await connection.fetchrow(_LOCK_POSITION, partition)
    if row is None:
        # A row that is not there cannot be locked: of two projectors that make it, one waits for the other.
        await connection.execute(f"{_MAKE_POSITION} NOTHING", *position_row(Position(partition)))
        row = await connection.fetchrow(_LOCK_POSITION, partition)
    return Position(partition) if row is None else read_position(row)


async def put_position(connection: Connection, position: Position) -> None:
    """Write how far a partition has come, in the caller's transaction."""
    await connection.execute(_PUT_POSITION, *position_row(position))


async def _fold(connection: Connection, events: list[Transition], history: History) -> Changes:
    changes = Changes(
        await _read_jobs(connection, events),
        await _read_queues(connection, events),
        history,
        await read_schedules(
            connection, (event.schedule_id for event in events if isinstance(event, ScheduleFact))
        ),
    )
    for event in events:
        changes.add(event)
    return changes


async def _read_jobs(connection: Connection, events: list[Transition]) -> dict[JobId, JobRecord]:
    named = dict.fromkeys(event.job_id for event in events if isinstance(event, JobFact | Purged))
    if not named:
        return {}
    jobs = {
        record.job_id: record for record in map(read_folded, await connection.fetch(_READ_JOBS, list(named)))
    }
    tagged = {
        event.job_id
        for event in events
        if isinstance(event, Succeeded | RetryScheduled | DeadLettered)
        and event.add_tags
        and event.job_id in jobs
    }
    if tagged:
        for row in await connection.fetch(_READ_TAGS, list(tagged)):
            jobs[row["job_id"]].tags = read_tags(row["keys"], row["values"])
    return jobs


async def _read_queues(connection: Connection, events: list[Transition]) -> dict[QueueName, QueueSettings]:
    named = dict.fromkeys(event.queue for event in events if isinstance(event, QueueFact))
    if not named:
        return {}
    rows = await connection.fetch(_READ_QUEUES, list(named))
    return {settings.queue: settings for settings in map(read_queue, rows)}


async def write_changes(connection: Connection, changes: Changes) -> None:
    """Write everything but the position, in the caller's transaction."""
    await _erase(connection, changes)
    await _put_jobs(connection, changes)
    await _put_tags_and_parents(connection, changes)
    await _put_steps(connection, changes)
    await _put_depths_and_queues(connection, changes)
    await put(connection, PUT_WORKERS, changes.workers.rows())
    await write_schedules(connection, changes.schedules)
    await put(
        connection,
        _PUT_AUDIT,
        (
            (row.partition, row.sequence, shown(row.actor), row.action, row.target, row.at)
            for row in changes.audit
        ),
    )


async def _archive(connection: Connection, changes: Changes) -> None:
    erasures = ((job_id, change.erasure) for job_id, change in changes.jobs.items())
    await put(
        connection, ARCHIVE, ((job_id, *erasure) for job_id, erasure in erasures if erasure is not None)
    )


async def _erase(connection: Connection, changes: Changes) -> None:
    await put(
        connection,
        _ERASE,
        (
            (job_id, change.erasure.sequence)
            for job_id, change in changes.jobs.items()
            if change.erasure is not None
        ),
    )


async def _put_jobs(connection: Connection, changes: Changes) -> None:
    born: list[tuple[object, ...]] = []
    changed: list[tuple[object, ...]] = []
    for change in changes.jobs.values():
        if change.record is None:
            continue
        if change.is_born:
            born.append(whole_row(change.record))
        elif change.is_changed:
            changed.append(changing_row(change.record, has_output=change.has_output))
    await put(connection, _PUT_JOBS, born)
    await put(connection, _CHANGE_JOBS, changed)


async def _put_tags_and_parents(connection: Connection, changes: Changes) -> None:
    written = [(job_id, change) for job_id, change in changes.jobs.items() if change.record is not None]
    await put(
        connection,
        _PUT_TAGS,
        (
            (job_id, position, *tag_parts(tag))
            for job_id, change in written
            if change.record is not None
            for position, tag in enumerate(change.record.tags)
            if position >= change.stored_tags
        ),
    )
    await put(
        connection,
        _PUT_PARENTS,
        (
            (job_id, parent, position)
            for job_id, change in written
            for position, parent in enumerate(change.parents)
        ),
    )


async def _put_steps(connection: Connection, changes: Changes) -> None:
    histories = [change.history[-MAX_HISTORY_ROWS:] for change in changes.jobs.values() if change.history]
    await put(connection, _PUT_STEPS, map(step_row, chain.from_iterable(histories)))
    newest = [history[-1] for history in histories]
    await put(
        connection,
        _TRIM_STEPS,
        ((event.job_id, event.ordinal) for event in newest if event.ordinal >= MAX_HISTORY_ROWS),
    )


async def _put_depths_and_queues(connection: Connection, changes: Changes) -> None:
    await put(connection, _MAKE_QUEUES, changes.partition_of.items())
    await put(connection, _PUT_QUEUES, map(queue_row, changes.queues.values()))
    moved = {key: count for key, count in changes.depths.items() if count}
    await put(
        connection, _ADD_DEPTHS, ((queue, state.value, count) for (queue, state), count in moved.items())
    )
    shrunk = {queue for (queue, _), count in moved.items() if count < 0}
    if shrunk:
        await connection.execute(_DROP_EMPTY_DEPTHS, list(shrunk))


async def _put_rejects(connection: Connection, partition: Partition, set_aside: list[Unread]) -> None:
    await put(
        connection,
        _PUT_REJECTS,
        ((partition, record.offset, shown(record.reason), record.value) for record in set_aside),
    )
