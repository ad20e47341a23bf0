"""The table `queue_stats`: windows of statistics, written whole each time, and kept for a while."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Final

from tidelog_projections.connection import SCHEMA
from tidelog_projections.statements import put, unnest
from tidelog_projections.text import shown

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tidelog_events.identity import QueueName
    from tidelog_events.instants import Instant
    from tidelog_projections.connection import Connection

_COLUMNS: Final = (
    ("queue", "text"),
    ("wire_name", "text"),
    ("window_start", "timestamptz"),
    ("window_seconds", "integer"),
    ("enqueued", "bigint"),
    ("started", "bigint"),
    ("succeeded", "bigint"),
    ("failed", "bigint"),
    ("dead_lettered", "bigint"),
    ("quarantined", "bigint"),
    ("cancelled", "bigint"),
    ("wait_p50", "double precision"),
    ("wait_p95", "double precision"),
    ("run_p50", "double precision"),
    ("run_p95", "double precision"),
)
_KEY: Final = 3
_NAMES: Final = tuple(name for name, _ in _COLUMNS)
_PUT: Final = (
    f"INSERT INTO {SCHEMA}.queue_stats ({', '.join(_NAMES)}) SELECT * FROM {unnest(_COLUMNS)}"  # noqa: S608  our own names
    f" ON CONFLICT ({', '.join(_NAMES[:_KEY])}) DO UPDATE SET updated_at = now(), "
    + ", ".join(f"{name} = excluded.{name}" for name in _NAMES[_KEY:])
)
_DROP: Final = f"DELETE FROM {SCHEMA}.queue_stats WHERE window_start < $1"  # noqa: S608  as above


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStats:
    """A row of `queue_stats`; its fields are the columns, and durations are in seconds."""

    queue: QueueName
    wire_name: str
    window_start: Instant
    window_seconds: int
    enqueued: int
    started: int
    succeeded: int
    failed: int
    dead_lettered: int
    quarantined: int
    cancelled: int
    wait_p50: float | None
    wait_p95: float | None
    run_p50: float | None
    run_p95: float | None


async def put_windows(connection: Connection, windows: Sequence[WindowStats], *, keep_from: Instant) -> None:
    """Write windows in the place of what is there about them, and drop those from before `keep_from`."""
    rows = {}
    for window in windows:
        row = astuple(window)
        key = (row[0], shown(window.wire_name), *row[2:])
        rows[key[:_KEY]] = key  # two wire names that are shown alike are one row
    async with connection.transaction():
        await put(connection, _PUT, rows.values())
        await connection.execute(_DROP, keep_from)


async def take_along(connection: Connection, old_schema: str, new_schema: str) -> None:
    """Move the table of one schema into the other: the log does not tell what stands there."""
    old = f"{old_schema}.queue_stats"
    if await connection.fetchval("SELECT to_regclass($1)", old) is None:
        return
    await connection.execute(f"DROP TABLE {new_schema}.queue_stats")
    await connection.execute(f"ALTER TABLE {old} SET SCHEMA {new_schema}")
