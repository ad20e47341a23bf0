"""Pages of jobs: filters, order, and a cursor that goes on exactly where the last page stopped.

Pages go by key (due time, then id), not by offset: a page costs the same wherever it is, and jobs that come
or go meanwhile neither repeat nor hide others.
"""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum
from hashlib import blake2b
from typing import Final, NamedTuple

import orjson

from tidelog_events.identity import JobId, QueueName, Sequence
from tidelog_events.instants import Instant
from tidelog_events.record import JobRecord
from tidelog_events.states import JobState
from tidelog_events.wire import Tag, write_tag
from tidelog_projections.errors import InvalidQuery

DEFAULT_PAGE: Final = 50
MAX_PAGE: Final = 500
"""The most jobs that one page may hold."""


class JobOrder(StrEnum):
    """In what order jobs are listed; equal due times by id."""

    LATEST_DUE = "latest-due"
    EARLIEST_DUE = "earliest-due"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFilter:
    """Which jobs to list; what is None or empty does not matter. A tag is a label or a pair."""

    state: JobState | None = None
    queue: QueueName | None = None
    wire_name: str | None = None
    any_tag: tuple[Tag, ...] = ()
    order: JobOrder = JobOrder.LATEST_DUE

    def digest(self) -> str:
        """What tells this filter from others, short enough for a cursor."""
        tags = [write_tag(tag) for tag in self.any_tag]
        written = orjson.dumps([self.state, self.queue, self.wire_name, tags, self.order])
        return blake2b(written, digest_size=9).hexdigest()


@dataclass(frozen=True, slots=True)
class JobPage:
    """Some jobs, and the cursor for the next ones; `after` is None on the last page."""

    jobs: list[JobRecord]
    after: str | None


class PageKey(NamedTuple):
    """The last job of a page."""

    due_time: Instant
    job_id: JobId


def check_limit(limit: int) -> None:
    """Raises `InvalidQuery` unless the limit is 1 to `MAX_PAGE`."""
    if not 1 <= limit <= MAX_PAGE:
        raise InvalidQuery(f"limit is {limit}; a page holds 1 to {MAX_PAGE} jobs")


class ArchiveKey(NamedTuple):
    """The last job of a page of the archive."""

    purged_at: Instant
    job_id: JobId
    enqueue_sequence: Sequence


def write_cursor(key: PageKey, filters: JobFilter) -> str:
    """An opaque cursor, good for the same filter only."""
    return _write([*key, filters.digest()])


def read_cursor(cursor: str, filters: JobFilter) -> PageKey:
    """The key in a cursor.

    Raises:
        InvalidQuery: it is no cursor, or it belongs to another filter or order.
    """
    match _read(cursor):
        case [int(due_time), str(job_id), str(digest)] if "\0" not in job_id:
            _check_digest(cursor, digest, filters)
            return PageKey(Instant(due_time), JobId(job_id))
        case _:
            raise _no_cursor(cursor)


def write_archive_cursor(key: ArchiveKey, filters: JobFilter) -> str:
    """As `write_cursor`, for a listing of the archive."""
    return _write([*key, filters.digest()])


def read_archive_cursor(cursor: str, filters: JobFilter) -> ArchiveKey:
    """As `read_cursor`, for a listing of the archive; one of jobs that are there is none of it."""
    match _read(cursor):
        case [int(purged_at), str(job_id), int(sequence), str(digest)] if "\0" not in job_id:
            _check_digest(cursor, digest, filters)
            return ArchiveKey(Instant(purged_at), JobId(job_id), Sequence(sequence))
        case _:
            raise _no_cursor(cursor)


def _write(parts: list[int | str]) -> str:
    return urlsafe_b64encode(orjson.dumps(parts)).rstrip(b"=").decode()


def _read(cursor: str) -> object:
    try:
        padded = cursor.encode("ascii") + b"=" * (-len(cursor) % 4)
        return orjson.loads(urlsafe_b64decode(padded))
    except (binascii.Error, ValueError):
        raise _no_cursor(cursor) from None


def _check_digest(cursor: str, digest: str, filters: JobFilter) -> None:
    if digest != filters.digest():
        raise InvalidQuery(
            f"the cursor {cursor!r} belongs to a listing with other filters or another order. "
            "Repeat those, or start from the first page without a cursor"
        )


def _no_cursor(cursor: str) -> InvalidQuery:
    return InvalidQuery(
        f"{cursor[:100]!r} is no cursor. Use the one that came with the last page, or start without one"
    )
