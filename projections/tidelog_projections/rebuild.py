"""The projection made anew beside the old one, which is read on until the new one takes its name at once.

The rows of jobs come from the state that the engines keep, which is complete; histories and audit come from
what the log of transitions still holds, by the ordinary way of a batch. A row from the state is never touched
by an event that it has in it already, so the two need not end at the same instant.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Final

import asyncpg

from tidelog_projections import archive, statistics
from tidelog_projections.apply import SWAP_LOCK, apply, begin, put_position, write_changes
from tidelog_projections.connection import SCHEMA
from tidelog_projections.errors import ProjectionRefused, RebuildRunning
from tidelog_projections.fold import Changes, QueueSettings
from tidelog_projections.history import History
from tidelog_projections.migration import migrate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable

    from tidelog_events.identity import JobId
    from tidelog_events.record import JobRecord
    from tidelog_events.schedule_record import ScheduleRecord
    from tidelog_projections.batch import Batch, Position
    from tidelog_projections.connection import Connection, Postgres

REBUILD_LOCK: Final = 0x71DE_0003
"""Advisory lock: held by the one process that rebuilds, for as long as it does."""
NEW_SCHEMA: Final = "tidelog_rebuild"
OLD_SCHEMA: Final = "tidelog_replaced"
_ROWS_AT_ONCE: Final = 1_000
_LOCK_SECONDS: Final = 30

_COPY_GRANTS: Final = (files("tidelog_projections") / "sql" / "copy_grants.sql").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class RestoredJob:
    """A job as the engines' state has it, and the parents that it was enqueued with."""

    record: JobRecord
    parents: tuple[JobId, ...]


class Rebuild:
    """A rebuild under way: `restore` each partition, `apply` what its log holds, then `finish`."""

    def __init__(self, connection: Connection, address: str, history: History, *, archive: bool) -> None:
        self._connection = connection
        self._address = address
        self._history = history
        self._archive = archive

    @classmethod
    @asynccontextmanager
    async def begin(
        cls, postgres: Postgres, history: History = History.DETAIL, *, archive: bool = False
    ) -> AsyncIterator[Rebuild]:
        """Make an empty schema to fill. Left without `finish`, the old projection stands as it was.

        Args:
            postgres: where the projection is.
            history: which steps of jobs are kept.
            archive: whether jobs whose purge the log still tells come into the archive. What stands there
                already stays in any case.

        Raises:
            RebuildRunning: another process is at it.
            ProjectionUnavailable: Postgres cannot be reached, or was lost on the way. Start again.
        """
        async with postgres.session() as connection:
            if not await connection.fetchval("SELECT pg_try_advisory_lock($1)", REBUILD_LOCK):
                raise RebuildRunning(
                    f"another process is rebuilding the projection at {postgres.address}: wait for it"
                )
            async with connection.transaction():
                # What a rebuild that was killed has left.
                await connection.execute(f"DROP SCHEMA IF EXISTS {NEW_SCHEMA} CASCADE")
                await migrate(connection, NEW_SCHEMA, 0)
            yield cls(connection, postgres.address, history, archive=archive)

    async def restore(
        self,
        queues: Iterable[QueueSettings],
        schedules: Iterable[ScheduleRecord],
        jobs: Iterable[RestoredJob],
        position: Position,
    ) -> None:
        """Write the state of one partition, and where its log of transitions begins.

        Args:
            queues: settings of its queues. Their `sequence` is to be -1: what the log holds is set over them.
            schedules: all its schedules.
            jobs: all its jobs.
            position: before the first transition that the log still holds.
        """
        changes = Changes({}, {settings.queue: settings for settings in queues})
        for schedule in schedules:
            changes.schedules.put(schedule)
        await self._write(changes)
        rest = iter(jobs)
        while chunk := list(islice(rest, _ROWS_AT_ONCE)):
            changes = Changes({})
            for job in chunk:
                changes.put(job.record, job.parents)
            await self._write(changes)
        async with self._connection.transaction():
            await begin(self._connection, NEW_SCHEMA)
            await put_position(self._connection, position)

    async def apply(self, batch: Batch) -> Position:
        """Take in a batch of transitions, as `Projection.apply` does."""
        return await apply(
            self._connection, batch, schema=NEW_SCHEMA, history=self._history, archive=self._archive
        )

    async def finish(self) -> None:
        """Put the new tables in the place of the old ones, atomically, with the rights that readers had.

        Raises:
            ProjectionRefused: somebody's view depends on the old tables, or a long query holds them.
                The old projection stands as it was.
        """
        try:
            async with self._connection.transaction():
                await self._swap()
        except asyncpg.DependentObjectsStillExistError as error:
            raise ProjectionRefused(
                f"the projection at {self._address} was rebuilt but not put in place, because other objects "
                f"depend on the old one: {error.detail}. Drop them, run `tidelog rebuild`, make them anew"
            ) from error
        except asyncpg.LockNotAvailableError as error:
            raise ProjectionRefused(
                f"the projection at {self._address} was rebuilt but not put in place, because a query held "
                f"the old one for {_LOCK_SECONDS} s. Run `tidelog rebuild` when it has ended"
            ) from error

    async def _write(self, changes: Changes) -> None:
        async with self._connection.transaction():
            await begin(self._connection, NEW_SCHEMA)
            await write_changes(self._connection, changes)

    async def _swap(self) -> None:
        connection = self._connection
        await connection.execute(f"SET LOCAL lock_timeout = '{_LOCK_SECONDS}s'")
        await connection.execute("SELECT pg_advisory_xact_lock($1)", SWAP_LOCK)
        views = await connection.fetch(
            "SELECT viewname AS name FROM pg_views WHERE schemaname = $1", NEW_SCHEMA
        )
        tables = await connection.fetch(
            "SELECT tablename AS name FROM pg_tables WHERE schemaname = $1", NEW_SCHEMA
        )
        await archive.take_along(connection, SCHEMA, NEW_SCHEMA)
        await statistics.take_along(connection, SCHEMA, NEW_SCHEMA)
        await connection.execute(_COPY_GRANTS)
        await connection.execute(f"ALTER SCHEMA {SCHEMA} RENAME TO {OLD_SCHEMA}")
        await connection.execute(f"ALTER SCHEMA {NEW_SCHEMA} RENAME TO {SCHEMA}")
        # Without CASCADE: a view that somebody made over these tables is not ours to drop.
        for kind, rows in (("VIEW", views), ("TABLE", tables)):
            names = ", ".join(f"{OLD_SCHEMA}.{row['name']}" for row in rows)
            await connection.execute(f"DROP {kind} IF EXISTS {names}")
        await connection.execute(f"DROP SCHEMA {OLD_SCHEMA}")
