"""The rows of workers: adding to them, forgetting those of long ago, reading them (contract section 10)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidelog_events.identity import WorkerId
from tidelog_events.instants import SECOND, Instant
from tidelog_projections.statements import unnest

if TYPE_CHECKING:
    from tidelog_projections.connection import Connection

SILENT_DAYS: Final = 7
"""A worker that holds nothing and was not heard of for so long is forgotten."""
_DAY: Final = 24 * 3_600 * SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerRow:
    """A worker, as the view `workers` has it (contract section 10).

    Attributes:
        first_seen, last_seen: when it was first and last heard of: a grant, a heartbeat or a report that
            changed something.
        leases: jobs that it holds now.
        succeeded, failed: attempts that it reported so; unroutable ones count as failed.
        expired: leases that it let run out.
    """

    worker_id: WorkerId
    first_seen: Instant
    last_seen: Instant
    leases: int
    succeeded: int
    failed: int
    expired: int


_COLUMNS: Final = (
    ("worker_id", "text"),
    ("partition", "integer"),
    ("first_seen", "timestamptz"),
    ("last_seen", "timestamptz"),
    ("leases", "integer"),
    ("succeeded", "bigint"),
    ("failed", "bigint"),
    ("expired", "bigint"),
)
# ruff: noqa: S608  the statement below is put together from our own names

# The lock on the partition's position keeps anybody else from making the same row meanwhile.
PUT_WORKERS: Final = f"""
WITH given AS (SELECT * FROM {unnest(_COLUMNS)}),
known AS (
    UPDATE worker_shares w SET
        first_seen = least(w.first_seen, given.first_seen),
        last_seen = greatest(w.last_seen, given.last_seen),
        leases = w.leases + given.leases,
        succeeded = w.succeeded + given.succeeded,
        failed = w.failed + given.failed,
        expired = w.expired + given.expired
    FROM given WHERE w.worker_id = given.worker_id AND w.partition = given.partition
    RETURNING w.worker_id, w.partition
)
INSERT INTO worker_shares (worker_id, partition, first_seen, last_seen, leases, succeeded, failed, expired)
SELECT worker_id, partition, first_seen, coalesce(last_seen, first_seen), leases, succeeded, failed, expired
FROM given
WHERE NOT EXISTS (SELECT FROM known k WHERE k.worker_id = given.worker_id AND k.partition = given.partition)
"""
"""Adds the rows of `WorkerChanges` to `worker_shares` of the schema in the search path."""

_FORGET: Final = (
    "DELETE FROM tidelog.worker_shares w WHERE w.worker_id IN (SELECT worker_id FROM tidelog.workers"
    " WHERE last_seen < $1 AND leases = 0)"
)
_WORKERS: Final = (
    "SELECT worker_id, first_seen, last_seen, leases, succeeded, failed, expired FROM tidelog.workers"
)


async def forget_silent(connection: Connection, now: Instant) -> None:
    """Drop the workers that hold nothing and have been silent for `SILENT_DAYS`."""
    await connection.execute(_FORGET, Instant(now - SILENT_DAYS * _DAY))


async def workers(connection: Connection) -> list[WorkerRow]:
    """Every worker that is known, the one heard of last first."""
    rows = await connection.fetch(f"{_WORKERS} ORDER BY last_seen DESC, worker_id")
    return [WorkerRow(**dict(row)) for row in rows]


async def named(connection: Connection, worker_ids: Iterable[WorkerId]) -> dict[WorkerId, WorkerRow]:
    """The workers among these that are known."""
    rows = await connection.fetch(f"{_WORKERS} WHERE worker_id = ANY($1::text[])", list(worker_ids))
    return {row["worker_id"]: WorkerRow(**dict(row)) for row in rows}
