"""The archive: what jobs were when they were purged, where an installation keeps that (`TIDELOG_ARCHIVE`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import orjson

from tidelog_events.identity import JobId
from tidelog_events.instants import Instant
from tidelog_events.record import JobRecord
from tidelog_events.transitions import Enqueued, JobFact, Purged, Transition
from tidelog_events.wire import read_tag, write_tag
from tidelog_projections.conditions import Conditions
from tidelog_projections.paging import (
    ArchiveKey,
    JobFilter,
    check_limit,
    read_archive_cursor,
    write_archive_cursor,
)
from tidelog_projections.rows import JOB_COLUMNS, read_columns
from tidelog_projections.statements import unnest
from tidelog_projections.text import shown, shown_tags

if TYPE_CHECKING:
    import asyncpg

    from tidelog_projections.connection import Connection

_JOB_NAMES: Final = ", ".join(name for name, _ in JOB_COLUMNS)
_PURGED: Final = (("job_id", "text"), ("sequence", "bigint"), ("purged_at", "timestamptz"))
_OF_JOB: Final = ", ".join(f"j.{name}" for name, _ in JOB_COLUMNS)


@dataclass(frozen=True, slots=True)
class ArchivedJob:
    """One life of a job that was purged: its last record, its parents, and when it was purged."""

    record: JobRecord
    parents: tuple[JobId, ...]
    purged_at: Instant


@dataclass(frozen=True, slots=True)
class ArchivePage:
    """Some archived jobs, and the cursor for the next ones; `after` is None on the last page."""

    jobs: list[ArchivedJob]
    after: str | None


# ruff: noqa: S608  the statements below are put together from our own names; values travel apart from them

ARCHIVE: Final = f"""
INSERT INTO jobs_archive ({_JOB_NAMES}, tags, parents, purged_at)
SELECT {_OF_JOB},
    coalesce(
        (SELECT jsonb_agg(
            CASE WHEN t.value IS NULL THEN to_jsonb(t.key) ELSE jsonb_build_object(t.key, t.value) END
            ORDER BY t.position
        ) FROM job_tags t WHERE t.job_id = j.job_id),
        '[]'
    ),
    ARRAY(SELECT d.parent_id FROM job_dependencies d WHERE d.job_id = j.job_id ORDER BY d.position),
    new.purged_at
FROM {unnest(_PURGED)}
JOIN jobs j ON j.job_id = new.job_id AND j.sequence < new.sequence
ON CONFLICT (job_id, enqueue_sequence) DO NOTHING
"""
"""Copies the rows that a purge is about to take, in the schema of the search path."""

_READ: Final = f"SELECT {_JOB_NAMES}, tags, parents, purged_at FROM tidelog.jobs_archive"
_NEWEST: Final = f"{_READ} WHERE job_id = $1 ORDER BY purged_at DESC, enqueue_sequence DESC LIMIT 1"
_ORDER: Final = "ORDER BY purged_at DESC, job_id DESC, enqueue_sequence DESC"


def parts_with_whole_rows(events: list[Transition]) -> Iterator[list[Transition]]:
    """The events in parts, so that a life that ends in one of them began in an earlier one.

    What is archived is copied from the rows, which must have taken in all that came before.
    """
    part: list[Transition] = []
    named: set[JobId] = set()
    for event in events:
        if isinstance(event, Purged | Enqueued) and event.job_id in named:
            yield part
            part, named = [], set()
        if isinstance(event, JobFact | Purged):
            named.add(event.job_id)
        part.append(event)
    if part:
        yield part


async def take_along(connection: Connection, old_schema: str, new_schema: str) -> None:
    """Put the archive of one schema in the place of the other's, with what only the other has.

    A rebuild makes rows only of lives that the log still tells whole. The table is not copied, it moves.
    """
    old, new = f"{old_schema}.jobs_archive", f"{new_schema}.jobs_archive"
    if await connection.fetchval("SELECT to_regclass($1)", old) is None:
        return
    columns = f"{_JOB_NAMES}, tags, parents, purged_at"
    await connection.execute(
        f"INSERT INTO {old} ({columns}) SELECT {columns} FROM {new} ON CONFLICT DO NOTHING"
    )
    await connection.execute(f"DROP TABLE {new}")
    await connection.execute(f"ALTER TABLE {old} SET SCHEMA {new_schema}")


async def newest_life(connection: Connection, job_id: JobId) -> ArchivedJob | None:
    """The life of that id that was purged last; None when none is kept."""
    row = await connection.fetchrow(_NEWEST, shown(job_id))
    return None if row is None else _read(row)


async def page(connection: Connection, filters: JobFilter, *, limit: int, after: str | None) -> ArchivePage:
    """A page of archived jobs, the last purged first; the order of the filter does not matter.

    Raises:
        InvalidQuery: the limit is out of bounds, or the cursor is none or another listing's.
    """
    check_limit(limit)
    conditions = Conditions(filters)
    if filters.any_tag:
        wanted = [orjson.dumps([write_tag(tag)]).decode() for tag in shown_tags(filters.any_tag)]
        holds = [f"tags @> {conditions.argument(one)}::jsonb" for one in wanted]
        conditions.add(f"({' OR '.join(holds)})")
    if after is not None:
        before = ", ".join(map(conditions.argument, read_archive_cursor(after, filters)))
        conditions.add(f"(purged_at, job_id, enqueue_sequence) < ({before})")
    # One more than asked for tells whether there is another page.
    statement = f"{_READ}{conditions.where} {_ORDER} LIMIT {conditions.argument(limit + 1)}"
    rows = await connection.fetch(statement, *conditions.arguments)
    found = [_read(row) for row in rows[:limit]]
    if len(rows) <= limit:
        return ArchivePage(found, None)
    last = found[-1]
    key = ArchiveKey(last.purged_at, last.record.job_id, last.record.enqueue_sequence)
    return ArchivePage(found, write_archive_cursor(key, filters))


def _read(row: asyncpg.Record) -> ArchivedJob:
    columns = dict(row)
    purged_at: Instant = columns.pop("purged_at")
    parents: Iterable[str] = columns.pop("parents")
    tags = tuple(read_tag(tag) for tag in orjson.loads(columns.pop("tags")))
    return ArchivedJob(read_columns(columns, tags), tuple(map(JobId, parents)), purged_at)
