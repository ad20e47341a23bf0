"""Between schedules and the columns of Postgres: reading what is stored, writing what has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from tidelog_events.bounds import MAX_SCHEDULE_SKIPS
from tidelog_events.jsontext import NULL
from tidelog_events.retry import DEFAULT_RETRY
from tidelog_events.schedule_record import ScheduleRecord
from tidelog_events.states import CatchUp
from tidelog_events.wire import write_retry, write_tag
from tidelog_projections.statements import insert, put, replace, unnest
from tidelog_projections.text import shown, shown_tags

if TYPE_CHECKING:
    from collections.abc import Iterable

    import asyncpg

    from tidelog_events.identity import ScheduleId
    from tidelog_projections.connection import Connection
    from tidelog_projections.rows import Row
    from tidelog_projections.schedules import ScheduleChanges

_CHANGING_COLUMNS: Final = (
    ("schedule_id", "text"),
    ("settled_until", "timestamptz"),
    ("next_due", "timestamptz"),
    ("error", "text"),
    ("last_job_id", "text"),
    ("last_minted_at", "timestamptz"),
    ("skipped_count", "bigint"),
    ("sequence", "bigint"),
)
"""What ticks and triggers change, under the id."""
_DEFINED_COLUMNS: Final = (
    ("queue", "text"),
    ("cron", "text"),
    ("time_zone", "text"),
    ("wire_name", "text"),
    ("payload", "json"),
    ("tags", "json"),
    ("retry", "json"),
    ("catch_up", "text"),
    ("no_overlap", "boolean"),
    ("put_at", "timestamptz"),
    ("put_by", "text"),
    ("partition", "integer"),
)
SCHEDULE_COLUMNS: Final = _CHANGING_COLUMNS + _DEFINED_COLUMNS
_SKIP_COLUMNS: Final = (
    ("schedule_id", "text"),
    ("tick", "timestamptz"),
    ("at", "timestamptz"),
    ("partition", "integer"),
    ("sequence", "bigint"),
)

# ruff: noqa: S608  the statements below are put together from our own names; values travel apart from them

_READ: Final = (
    f"SELECT {', '.join(name for name, _ in _CHANGING_COLUMNS)}, queue, partition, put_at FROM schedules"
    " WHERE schedule_id = ANY($1::text[])"
)
_ERASE: Final = """
WITH erased AS (SELECT * FROM unnest($1::text[], $2::bigint[]) AS e (schedule_id, sequence)),
skips AS (
    DELETE FROM schedule_skips s USING erased e
    WHERE s.schedule_id = e.schedule_id AND s.sequence < e.sequence
)
DELETE FROM schedules s USING erased e WHERE s.schedule_id = e.schedule_id AND s.sequence < e.sequence
"""
_PUT: Final = insert("schedules", SCHEDULE_COLUMNS, replace("schedules", "schedule_id", SCHEDULE_COLUMNS))
_CHANGE: Final = (
    "UPDATE schedules SET "
    + ", ".join(f"{name} = new.{name}" for name, _ in _CHANGING_COLUMNS[1:])
    + f" FROM {unnest(_CHANGING_COLUMNS)}"
    " WHERE schedules.schedule_id = new.schedule_id AND schedules.sequence < new.sequence"
)
_PUT_SKIPS: Final = insert("schedule_skips", _SKIP_COLUMNS, "DO NOTHING")
_TRIM_SKIPS: Final = f"""
DELETE FROM schedule_skips s USING unnest($1::text[]) AS skipping (schedule_id)
WHERE s.schedule_id = skipping.schedule_id AND s.tick < (
    SELECT newest.tick FROM schedule_skips newest WHERE newest.schedule_id = skipping.schedule_id
    ORDER BY newest.tick DESC OFFSET {MAX_SCHEDULE_SKIPS - 1} LIMIT 1
)
"""


async def read_schedules(
    connection: Connection, schedule_ids: Iterable[ScheduleId]
) -> dict[ScheduleId, ScheduleRecord]:
    """The stored records, fit to be folded; those without a row are missing."""
    named = list(dict.fromkeys(schedule_ids))
    if not named:
        return {}
    records = map(_read_folded, await connection.fetch(_READ, named))
    return {record.schedule_id: record for record in records}


def _read_folded(row: asyncpg.Record) -> ScheduleRecord:
    """What only a definition changes was not read: it is left blank, and written with a definition only."""
    columns: dict[str, Any] = dict(row)
    return ScheduleRecord(
        **columns,
        cron="",
        time_zone="",
        wire_name="",
        payload=NULL,
        tags=(),
        retry=DEFAULT_RETRY,
        catch_up=CatchUp.SKIP,
        no_overlap=False,
        put_by=None,
    )


async def write_schedules(connection: Connection, schedules: ScheduleChanges) -> None:
    """Write what has changed, in the caller's transaction."""
    erased: list[Row] = []
    defined: list[Row] = []
    changed: list[Row] = []
    skips: list[Row] = []
    for schedule_id, change in schedules.changes.items():
        if change.erased_at is not None:
            erased.append((schedule_id, change.erased_at))
        if change.record is None:
            continue
        if change.is_defined:
            defined.append(_changing_row(change.record) + _defined_row(change.record))
        elif change.is_changed:
            changed.append(_changing_row(change.record))
        skips += [
            (schedule_id, skip.tick, skip.at, skip.partition, skip.sequence)
            for skip in change.skips[-MAX_SCHEDULE_SKIPS:]
        ]
    await put(connection, _ERASE, erased)
    await put(connection, _PUT, defined)
    await put(connection, _CHANGE, changed)
    await put(connection, _PUT_SKIPS, skips)
    await put(connection, _TRIM_SKIPS, dict.fromkeys((row[0],) for row in skips))


def _changing_row(record: ScheduleRecord) -> Row:
    return (
        record.schedule_id,
        record.settled_until,
        record.next_due,
        shown(record.error),
        record.last_job_id,
        record.last_minted_at,
        record.skipped_count,
        record.sequence,
    )


def _defined_row(record: ScheduleRecord) -> Row:
    return (
        record.queue,
        record.cron,
        record.time_zone,
        shown(record.wire_name),
        record.payload,
        orjson.dumps([write_tag(tag) for tag in shown_tags(record.tags)]),
        orjson.dumps(write_retry(record.retry)),
        record.catch_up.value,
        record.no_overlap,
        record.put_at,
        shown(record.put_by),
        record.partition,
    )
