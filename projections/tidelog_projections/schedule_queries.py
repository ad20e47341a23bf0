"""The reads of schedules: one statement each, on a connection that the caller has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from tidelog_events.schedule_view import ScheduleSkip, ScheduleView
from tidelog_events.states import CatchUp, JobState
from tidelog_events.wire import read_retry, read_tag
from tidelog_projections.schedule_rows import SCHEDULE_COLUMNS
from tidelog_projections.text import shown

if TYPE_CHECKING:
    import asyncpg

    from tidelog_events.identity import QueueName, ScheduleId
    from tidelog_projections.connection import Connection

# ruff: noqa: S608  the statements below are put together from our own names; values travel apart from them

_VIEW: Final = (
    f"SELECT {', '.join(f's.{name}' for name, _ in SCHEDULE_COLUMNS)},"
    " (SELECT j.state FROM tidelog.jobs j WHERE j.job_id = s.last_job_id) AS last_job_state,"
    " (SELECT max(k.tick) FROM tidelog.schedule_skips k WHERE k.schedule_id = s.schedule_id) AS last_skipped"
    " FROM tidelog.schedules s"
)
_SCHEDULES: Final = f"{_VIEW} WHERE $1::text IS NULL OR s.queue = $1 ORDER BY s.schedule_id"
_SCHEDULE: Final = f"{_VIEW} WHERE s.schedule_id = $1"
_SKIPS: Final = (
    "SELECT schedule_id, tick, at, partition, sequence FROM tidelog.schedule_skips WHERE schedule_id = $1"
    " ORDER BY tick"
)


async def schedules(connection: Connection, queue: QueueName | None) -> list[ScheduleView]:
    """All schedules, or those of a queue, by id."""
    return [_read(row) for row in await connection.fetch(_SCHEDULES, shown(queue))]


async def schedule(connection: Connection, schedule_id: ScheduleId) -> ScheduleView | None:
    """One schedule; None when there is none (any more)."""
    row = await connection.fetchrow(_SCHEDULE, shown(schedule_id))
    return None if row is None else _read(row)


async def schedule_skips(connection: Connection, schedule_id: ScheduleId) -> list[ScheduleSkip]:
    """The newest 64 ticks that were skipped, oldest first."""
    return [ScheduleSkip(**dict(row)) for row in await connection.fetch(_SKIPS, shown(schedule_id))]


def _read(row: asyncpg.Record) -> ScheduleView:
    columns: dict[str, Any] = dict(row)
    columns["tags"] = tuple(map(read_tag, orjson.loads(columns["tags"])))
    columns["retry"] = read_retry(orjson.loads(columns["retry"]))
    columns["catch_up"] = CatchUp(columns["catch_up"])
    state = columns["last_job_state"]
    columns["last_job_state"] = None if state is None else JobState(state)
    return ScheduleView(**columns)
