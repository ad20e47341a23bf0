"""Reading jobs back from Postgres: one's own writes are seen, and every wait is bounded."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from tidelog.client.errors import ClientClosed, NoProjection, ProjectionBehind, WaitTimeout
from tidelog.together import together
from tidelog_events.identity import JobId, Partition, QueueName, ScheduleId, Sequence
from tidelog_events.record import JobRecord
from tidelog_events.schedule_view import ScheduleView

if TYPE_CHECKING:
    from tidelog_projections.batch import Position
    from tidelog_projections.circumstances import Circumstances


class Projection(Protocol):
    """What a client needs of the projection."""

    async def job(self, job_id: JobId) -> JobRecord | None:
        """A job as it is now; None when there is no such job."""
        ...

    async def wait_for(self, partition: Partition, sequence: Sequence, *, timeout: float) -> bool:
        """Wait until the events up to that one are in Postgres; False when `timeout` seconds pass first."""
        ...

    async def wait_terminal(self, job_id: JobId, *, timeout: float) -> JobRecord | None:
        """Wait until a job is there and has ended; None when `timeout` seconds pass first."""
        ...

    async def schedule(self, schedule_id: ScheduleId) -> ScheduleView | None:
        """A schedule as it is now; None when there is no such schedule."""
        ...

    async def schedules(self, queue: QueueName | None = None) -> list[ScheduleView]:
        """All schedules, or those of a queue, by id."""
        ...

    async def positions(self) -> dict[Partition, Position]:
        """How far Postgres has come with each partition that anything was read of."""
        ...

    async def circumstances(self, job_id: JobId) -> Circumstances:
        """A job with all that may be in its way, of one instant."""
        ...

    async def close(self) -> None:
        """Give up the connections."""
        ...


ProjectionOpener = Callable[[], Awaitable[Projection]]


class Jobs(Protocol):
    """What a client needs in order to read jobs; the testing kit reads them without Postgres."""

    async def get(self, job_id: JobId, partition: Partition, *, timeout: float) -> JobRecord | None:
        """A job, not older than the last answer that the client had from its partition."""
        ...

    async def wait(self, job_id: JobId, partition: Partition, *, timeout: float) -> JobRecord:
        """A job as soon as it has ended."""
        ...

    async def schedule(
        self, schedule_id: ScheduleId, partition: Partition, *, timeout: float
    ) -> ScheduleView | None:
        """A schedule, not older than the last answer that the client had from its partition."""
        ...

    async def schedules(
        self, queue: QueueName | None, partition: Partition | None, *, timeout: float
    ) -> list[ScheduleView]:
        """The schedules of a queue, which lives in that partition, or of all."""
        ...


class JobReader:
    """Reads jobs and schedules over a connection to Postgres that is opened by the first read."""

    def __init__(self, opener: ProjectionOpener | None, positions: Mapping[Partition, Sequence]) -> None:
        self._opener = opener
        self._positions = positions
        self._opening = asyncio.Lock()
        self._projection: Projection | None = None
        self._is_closed = False

    async def get(self, job_id: JobId, partition: Partition, *, timeout: float) -> JobRecord | None:
        """A job, not older than the last answer that this client had from its partition.

        Raises:
            ProjectionBehind: Postgres did not catch up within `timeout` seconds.
            NoProjection: this client was opened without Postgres.
        """
        projection = await self._caught_up(partition, timeout)
        return await projection.job(job_id)

    async def wait(self, job_id: JobId, partition: Partition, *, timeout: float) -> JobRecord:
        """A job as soon as it has ended, seen no earlier than `get` would see it.

        Raises:
            WaitTimeout: it did not end within `timeout` seconds.
            ProjectionBehind, NoProjection: as for `get`.
        """
        deadline = time.monotonic() + timeout
        # Or the end before a requeue of our own would be taken for the end.
        projection = await self._caught_up(partition, timeout)
        record = await projection.wait_terminal(job_id, timeout=max(0.0, deadline - time.monotonic()))
        if record is None:
            raise WaitTimeout(job_id, timeout, await projection.job(job_id))
        return record

    async def schedule(
        self, schedule_id: ScheduleId, partition: Partition, *, timeout: float
    ) -> ScheduleView | None:
        """A schedule, not older than the last answer that this client had from its partition.

        Raises as `get` does.
        """
        projection = await self._caught_up(partition, timeout)
        return await projection.schedule(schedule_id)

    async def schedules(
        self, queue: QueueName | None, partition: Partition | None, *, timeout: float
    ) -> list[ScheduleView]:
        """The schedules of a queue, which lives in that partition, or of all. Raises as `get` does."""
        asked = list(self._positions) if partition is None else [partition]
        await together(self._caught_up(known, timeout) for known in asked)
        return await (await self.opened()).schedules(queue)

    async def close(self) -> None:
        """Give up the connection, also one that is being opened, and open no other one."""
        self._is_closed = True
        async with self._opening:
            projection, self._projection = self._projection, None
        if projection is not None:
            await projection.close()

    async def _caught_up(self, partition: Partition, timeout: float) -> Projection:
        projection = await self.opened()
        position = self._positions.get(partition)
        if position is not None and not await projection.wait_for(partition, position, timeout=timeout):
            raise ProjectionBehind(partition, timeout)
        return projection

    async def opened(self) -> Projection:
        """The projection. Raises `NoProjection`, `ClientClosed`, and what opening it raises."""
        if self._opener is None:
            raise NoProjection(
                "This client was opened without Postgres, so it cannot read jobs. Use App.client(), "
                "or hand a projection to Client.open()."
            )
        async with self._opening:  # two first reads at once must not open two
            if self._is_closed:
                raise ClientClosed("The client was closed: it reads nothing any more.")
            if self._projection is None:
                self._projection = await self._opener()
            return self._projection
