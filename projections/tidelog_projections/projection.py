"""The projection as one object: what the projector, the client and the command line hold."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Final, Self

from tidelog_events.identity import JobId, Partition, QueueName, ScheduleId, Sequence
from tidelog_events.instants import Instant
from tidelog_events.record import JobRecord
from tidelog_events.schedule_view import ScheduleSkip, ScheduleView
from tidelog_events.states import JobState
from tidelog_events.wire import Tag
from tidelog_projections import apply, archive, queries, schedule_queries, workers
from tidelog_projections.archive import ArchivedJob, ArchivePage
from tidelog_projections.batch import Batch, Position
from tidelog_projections.circumstances import Circumstances, circumstances
from tidelog_projections.connection import SCHEMA, Postgres
from tidelog_projections.embedded import EmbeddedPostgres, embedded_folder
from tidelog_projections.history import History
from tidelog_projections.migration import ensure_schema
from tidelog_projections.paging import DEFAULT_PAGE, JobFilter, JobOrder, JobPage
from tidelog_projections.queries import CancelRequest, HistoryStep, QueueDepths
from tidelog_projections.workers import WorkerRow

if TYPE_CHECKING:
    from tidelog_projections.connection import Connection

_FIRST_POLL: Final = 0.005
_LAST_POLL: Final = 0.05
_MAX_CONNECTIONS: Final = 5
_PATIENCE_SECONDS: Final = 5.0


class Projection:
    """Reads and writes the tables of contract section 10. Belongs to the event loop that connected it.

    Every method is bounded: a lost connection is tried again for a few seconds (`patience`), then
    `ProjectionUnavailable` is raised, which names the address without its password. What Postgres refuses for
    good is `ProjectionRefused`. A cancellation leaves nothing half written.
    """

    def __init__(
        self,
        postgres: Postgres,
        server: EmbeddedPostgres | None = None,
        history: History = History.DETAIL,
        *,
        archive: bool = False,
    ) -> None:
        self._postgres = postgres
        self._server = server
        self._history = history
        self._archive = archive

    @classmethod
    async def connect(
        cls,
        address: str,
        *,
        max_connections: int = _MAX_CONNECTIONS,
        patience: float = _PATIENCE_SECONDS,
        history: History = History.DETAIL,
        archive: bool = False,
    ) -> Self:
        """Connect, and make the schema or bring it up to date if that is needed.

        Args:
            address: a `postgresql://` DSN, or `embedded:FOLDER` for a server of its own in that folder.
            max_connections: the size of the pool.
            patience: seconds for which a lost connection is tried again.
            history: which steps of jobs are kept by what is written through this object.
            archive: whether it keeps jobs that are purged in `jobs_archive`.

        Raises:
            ProjectionUnavailable: nobody answers there, or the user, password or database is refused.
            ProjectionRefused: the server is too old, or the role may not make the schema.
            SchemaTooNew: a later release made the schema.
            EmbeddedPostgresError: the embedded server does not start, or is not installed.
        """
        folder = embedded_folder(address)
        server = None if folder is None else await EmbeddedPostgres.start(folder)
        try:
            postgres = await Postgres.connect(
                address if server is None else server.dsn, max_connections=max_connections, patience=patience
            )
            try:
                await postgres.run(ensure_schema)
            except BaseException:
                await postgres.close()
                raise
        except BaseException:
            if server is not None:
                await server.stop()
            raise
        return cls(postgres, server, history, archive=archive)

    @property
    def address(self) -> str:
        """Where Postgres is, without the password, for messages to people."""
        return self._postgres.address

    @property
    def history_policy(self) -> History:
        """Which steps of jobs are kept."""
        return self._history

    @property
    def keeps_archive(self) -> bool:
        """Whether jobs that are purged are kept in `jobs_archive`."""
        return self._archive

    @property
    def postgres(self) -> Postgres:
        """The pool itself, for a rebuild."""
        return self._postgres

    async def close(self) -> None:
        """Close the connections, and leave the embedded server if there is one, within a few seconds."""
        await self._postgres.close()
        if self._server is not None:
            await self._server.stop()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def apply(self, batch: Batch) -> Position:
        """Take a batch of one partition in, in one transaction, and return the position after it.

        What the position has passed already changes nothing, so a batch may be handed in again.

        Raises:
            SequenceGap: an event is missing before or within the batch.
            Unstorable: a value among the events fits no column.
        """
        return await self._postgres.run(
            lambda connection: apply.apply(
                connection, batch, schema=SCHEMA, history=self._history, archive=self._archive
            )
        )

    async def positions(self) -> dict[Partition, Position]:
        """How far each partition has come; one that nothing was read of is missing."""
        return await self._postgres.run(queries.positions)

    async def position(self, partition: Partition) -> Sequence:
        """The sequence of the last event of a partition that was taken in; -1 before the first."""
        return await self._postgres.run(lambda connection: queries.position(connection, partition))

    async def job(self, job_id: JobId) -> JobRecord | None:
        """The record of a job, payload and output to the letter; None when there is none (any more)."""
        return await self._postgres.run(lambda connection: queries.job(connection, job_id))

    async def jobs(
        self,
        *,
        state: JobState | None = None,
        queue: QueueName | None = None,
        wire_name: str | None = None,
        any_tag: Iterable[Tag] = (),
        order: JobOrder = JobOrder.LATEST_DUE,
        limit: int = DEFAULT_PAGE,
        after: str | None = None,
    ) -> JobPage:
        """A page of jobs, by due time and then by id.

        Args:
            state, queue, wire_name: list only jobs that are so.
            any_tag: list only jobs that have one of these; each is a label or a (key, value) pair.
            order: latest due first, or earliest.
            limit: 1 to 500.
            after: the cursor that came with the last page of the same filters and order.

        Raises:
            InvalidQuery: the limit is out of bounds, or the cursor is none or another listing's.
        """
        filters = JobFilter(
            state=state, queue=queue, wire_name=wire_name, any_tag=tuple(any_tag), order=order
        )
        return await self._postgres.run(
            lambda connection: queries.jobs(connection, filters, limit=limit, after=after)
        )

    async def archived_job(self, job_id: JobId) -> ArchivedJob | None:
        """The life of that id that was purged last; None when none is kept."""
        return await self._postgres.run(lambda connection: archive.newest_life(connection, job_id))

    async def archived_jobs(
        self,
        *,
        state: JobState | None = None,
        queue: QueueName | None = None,
        wire_name: str | None = None,
        any_tag: Iterable[Tag] = (),
        limit: int = DEFAULT_PAGE,
        after: str | None = None,
    ) -> ArchivePage:
        """A page of jobs that were purged, the last purged first. Arguments and errors as for `jobs`."""
        filters = JobFilter(state=state, queue=queue, wire_name=wire_name, any_tag=tuple(any_tag))
        return await self._postgres.run(
            lambda connection: archive.page(connection, filters, limit=limit, after=after)
        )

    async def workers(self) -> list[WorkerRow]:
        """Every worker that is known, the one heard of last first."""
        return await self._postgres.run(workers.workers)

    async def forget_silent_workers(self, now: Instant) -> None:
        """Drop the workers that hold nothing and have been silent for a week."""
        await self._postgres.run(lambda connection: workers.forget_silent(connection, now))

    async def history(self, job_id: JobId) -> list[HistoryStep]:
        """The newest 64 steps of a job, oldest first; empty when there is no such job."""
        return await self._postgres.run(lambda connection: queries.history(connection, job_id))

    async def cancel_requests(self, job_id: JobId) -> list[CancelRequest]:
        """Who asked the worker of a job to stop, in this life of its id, oldest first; the newest 64."""
        return await self._postgres.run(lambda connection: queries.cancel_requests(connection, job_id))

    async def circumstances(self, job_id: JobId) -> Circumstances:
        """A job with all that may be in its way, of one instant."""
        return await self._postgres.run(lambda connection: circumstances(connection, job_id))

    async def queues(self) -> list[QueueDepths]:
        """Every queue with its settings and depths, by name."""
        return await self._postgres.run(queries.queues)

    async def schedules(self, queue: QueueName | None = None) -> list[ScheduleView]:
        """All schedules, or those of a queue, by id."""
        return await self._postgres.run(lambda connection: schedule_queries.schedules(connection, queue))

    async def schedule(self, schedule_id: ScheduleId) -> ScheduleView | None:
        """One schedule; None when there is none (any more)."""
        return await self._postgres.run(lambda connection: schedule_queries.schedule(connection, schedule_id))

    async def schedule_skips(self, schedule_id: ScheduleId) -> list[ScheduleSkip]:
        """The newest 64 ticks of a schedule that were skipped, oldest first."""
        return await self._postgres.run(
            lambda connection: schedule_queries.schedule_skips(connection, schedule_id)
        )

    async def wait_for(self, partition: Partition, sequence: Sequence, *, timeout: float) -> bool:
        """Wait until the events of a partition up to `sequence` can be read; False after `timeout` seconds.

        `partition` and `sequence` are those of a reply, so that a caller reads what it has written.
        """

        async def is_reached(connection: Connection) -> bool:
            return await queries.position(connection, partition) >= sequence

        return await self._poll(is_reached, timeout)

    async def wait_terminal(self, job_id: JobId, *, timeout: float) -> JobRecord | None:
        """Wait until a job has ended, and return its record; None after `timeout` seconds.

        A job that is not known (yet) is waited for.
        """
        deadline = time.monotonic() + timeout

        async def has_ended(connection: Connection) -> bool:
            return await queries.is_terminal(connection, job_id)

        while await self._poll(has_ended, deadline - time.monotonic()):
            record = await self.job(job_id)
            # Between the two reads it may have been requeued or purged.
            if record is not None and record.state.is_terminal:
                return record
        return None

    async def _poll(self, condition: Callable[[Connection], Awaitable[bool]], timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        delay = _FIRST_POLL
        while not await self._postgres.run(condition):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            await asyncio.sleep(min(delay, left))
            delay = min(delay * 2, _LAST_POLL)
        return True
