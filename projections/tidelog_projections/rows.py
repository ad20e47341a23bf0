"""Between our objects and the columns of Postgres: records, settings, steps, positions as rows, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson

from tidelog_events.jsontext import NULL
from tidelog_events.record import JobRecord
from tidelog_events.retry import DEFAULT_RETRY
from tidelog_events.states import STATE_ORDINALS, DependencyMode, JobState
from tidelog_events.transitions import JobTransition
from tidelog_events.wire import Tag, read_retry, write_retry
from tidelog_projections.batch import Mark, Position
from tidelog_projections.fold import QueueSettings
from tidelog_projections.text import shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import asyncpg

Row = tuple[object, ...]

JOB_COLUMNS: Final = (
    ("job_id", "text"),
    ("queue", "text"),
    ("wire_name", "text"),
    ("state", "text"),
    ("state_ordinal", "smallint"),
    ("attempt", "integer"),
    ("returned", "integer"),
    ("enqueue_sequence", "bigint"),
    ("due_time", "timestamptz"),
    ("mode", "text"),
    ("parents_remaining", "integer"),
    ("lease_owner", "text"),
    ("lease_expiry", "timestamptz"),
    ("cancel_requested", "boolean"),
    ("terminal_at", "timestamptz"),
    ("terminal_cause", "text"),
    ("payload", "json"),
    ("output", "json"),
    ("retry", "json"),
    ("trace_context", "text"),
    ("workflow_id", "text"),
    ("schedule_id", "text"),
    ("enqueued_at", "timestamptz"),
    ("updated_at", "timestamptz"),
    ("partition", "integer"),
    ("sequence", "bigint"),
)

CHANGING_COLUMNS: Final = (
    "job_id",
    "state",
    "state_ordinal",
    "attempt",
    "returned",
    "due_time",
    "parents_remaining",
    "lease_owner",
    "lease_expiry",
    "cancel_requested",
    "terminal_at",
    "terminal_cause",
    "output",
    "updated_at",
    "sequence",
)
"""What an event may change after birth, under the id. The others are written once."""

STEP_COLUMNS: Final = (
    ("job_id", "text"),
    ("ordinal", "integer"),
    ("at", "timestamptz"),
    ("type", "text"),
    ("state", "text"),
    ("attempt", "integer"),
    ("worker_id", "text"),
    ("actor", "text"),
    ("due_time", "timestamptz"),
    ("lease_expiry", "timestamptz"),
    ("error", "text"),
    ("failure_detail", "text"),
    ("terminal_cause", "text"),
    ("partition", "integer"),
    ("sequence", "bigint"),
)


def whole_row(record: JobRecord) -> Row:
    """A record in the order of `JOB_COLUMNS`."""
    return (
        record.job_id,
        record.queue,
        shown(record.wire_name),
        record.state.value,
        STATE_ORDINALS[record.state],
        record.attempt,
        record.returned,
        record.enqueue_sequence,
        record.due_time,
        record.mode.value,
        record.parents_remaining,
        shown(record.lease_owner),
        record.lease_expiry,
        record.cancel_requested,
        record.terminal_at,
        shown(record.terminal_cause),
        record.payload,
        record.output if record.state is JobState.SUCCEEDED else None,
        orjson.dumps(write_retry(record.retry)),
        shown(record.trace_context),
        shown(record.workflow_id),
        record.schedule_id,
        record.enqueued_at,
        record.updated_at,
        record.partition,
        record.sequence,
    )


def changing_row(record: JobRecord, *, has_output: bool) -> Row:
    """A record in the order of `CHANGING_COLUMNS`; without a new output the stored one stays."""
    return (
        record.job_id,
        record.state.value,
        STATE_ORDINALS[record.state],
        record.attempt,
        record.returned,
        record.due_time,
        record.parents_remaining,
        shown(record.lease_owner),
        record.lease_expiry,
        record.cancel_requested,
        record.terminal_at,
        shown(record.terminal_cause),
        record.output if has_output else None,
        record.updated_at,
        record.sequence,
    )


def step_row(event: JobTransition) -> Row:
    """A step in the order of `STEP_COLUMNS`; a field that its type lacks is null."""
    return (
        event.job_id,
        event.ordinal,
        event.at,
        event.TYPE,
        event.state.value,
        event.attempt,
        shown(getattr(event, "worker_id", None)),
        shown(event.actor),
        getattr(event, "due_time", None),
        getattr(event, "lease_expiry", None),
        shown(getattr(event, "error", None)),
        shown(getattr(event, "failure_detail", None)),
        shown(getattr(event, "terminal_cause", None)),
        event.partition,
        event.sequence,
    )


def tag_parts(tag: Tag) -> tuple[str, str | None]:
    """A tag as its key and value; a label has no value."""
    return (tag, None) if isinstance(tag, str) else tag


def read_tags(keys: Sequence[str] | None, values: Sequence[str | None] | None) -> tuple[Tag, ...]:
    """The tags of a job from the arrays of their parts, in order; None when it has none."""
    return tuple(
        key if value is None else (key, value) for key, value in zip(keys or (), values or (), strict=True)
    )


def read_record(row: asyncpg.Record) -> JobRecord:
    """A whole record from a row of `jobs` with `tag_keys` and `tag_values` beside it."""
    columns: dict[str, Any] = dict(row)
    tags = read_tags(columns.pop("tag_keys"), columns.pop("tag_values"))
    return read_columns(columns, tags)


def read_columns(columns: dict[str, Any], tags: tuple[Tag, ...]) -> JobRecord:
    """A whole record from the columns of `JOB_COLUMNS`, and its tags."""
    columns["state"] = JobState(columns["state"])
    columns["mode"] = DependencyMode(columns["mode"])
    columns["retry"] = read_retry(orjson.loads(columns["retry"]))
    columns["output"] = NULL if columns["output"] is None else columns["output"]
    del columns["state_ordinal"]
    return JobRecord(**columns, tags=tags)


FOLDED_COLUMNS: Final = (
    "job_id, queue, state, attempt, returned, enqueue_sequence, due_time, parents_remaining, lease_owner, "
    "lease_expiry, cancel_requested, terminal_at, terminal_cause, enqueued_at, updated_at, partition, "
    "sequence"
)
"""What the fold needs to know of a stored job; none of it can be large."""


def read_folded(row: asyncpg.Record) -> JobRecord:
    """A record that is fit to be folded and written by `changing_row`, from a row of `FOLDED_COLUMNS`.

    What no event changes after birth was not read and is never written from here: it is left blank.
    """
    columns: dict[str, Any] = dict(row)
    columns["state"] = JobState(columns["state"])
    return JobRecord(
        **columns,
        wire_name="",
        mode=DependencyMode.ON_SUCCESS,
        payload=NULL,
        output=NULL,
        tags=(),
        retry=DEFAULT_RETRY,
        trace_context=None,
        workflow_id=None,
        schedule_id=None,
    )


QUEUE_COLUMNS: Final = (
    ("queue", "text"),
    ("partition", "integer"),
    ("paused", "boolean"),
    ("paused_at", "timestamptz"),
    ("paused_by", "text"),
    ("concurrency_limit", "bigint"),
    ("updated_at", "timestamptz"),
    ("sequence", "bigint"),
)


def queue_row(settings: QueueSettings) -> Row:
    """Settings in the order of `QUEUE_COLUMNS`."""
    return (
        settings.queue,
        settings.partition,
        settings.paused,
        settings.paused_at,
        shown(settings.paused_by),
        settings.concurrency_limit,
        settings.updated_at,
        settings.sequence,
    )


def read_queue(row: asyncpg.Record) -> QueueSettings:
    """Settings from a row of `QUEUE_COLUMNS`."""
    columns: dict[str, Any] = dict(row)
    return QueueSettings(**columns)


POSITION_COLUMNS: Final = "partition, sequence, next_offset, unread, last_offset, last_digest"


def position_row(position: Position) -> Row:
    """A position in the order of `POSITION_COLUMNS`."""
    last = (None, None) if position.last is None else (position.last.offset, position.last.digest)
    return position.partition, position.sequence, position.next_offset, position.unread, *last


def read_position(row: asyncpg.Record) -> Position:
    """A position from a row of `POSITION_COLUMNS`."""
    partition, sequence, next_offset, unread, last_offset, last_digest = row
    last = None if last_offset is None or last_digest is None else Mark(last_offset, last_digest)
    return Position(partition, sequence, next_offset, unread, last)


def arrays(rows: Iterable[Row]) -> list[list[object]]:
    """Rows as one array for each column, the shape that `unnest` takes; nothing when there are no rows."""
    return [list(column) for column in zip(*rows, strict=True)]
