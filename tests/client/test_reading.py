"""Reading jobs back: the client's own writes are seen, and what cannot be known in time is said."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from tests.client.core_engine import PARTITIONS, TOPICS, CoreEngine, ProbedLog, until

from tidelog.client.client import Client
from tidelog.client.errors import ClientClosed, NoProjection, ProjectionBehind, WaitTimeout
from tidelog_events.identity import JobId, Partition, QueueName, ScheduleId, Sequence, partition_of, queue_of
from tidelog_events.record import JobRecord
from tidelog_events.schedule_record import SCHEDULE_FIELDS
from tidelog_events.schedule_view import ScheduleView
from tidelog_events.states import JobState
from tidelog_projections.batch import Position
from tidelog_projections.circumstances import Circumstances


class Table:
    """A projection that shows an engine's jobs as soon as it is let to."""

    def __init__(self) -> None:
        self.engine: CoreEngine | None = None
        self.caught_up = asyncio.Event()
        self.asked: list[tuple[Partition, Sequence]] = []
        self.opened = 0
        self.closed = 0

    async def open(self) -> Table:
        self.opened += 1
        await asyncio.sleep(0)
        return self

    async def job(self, job_id: JobId) -> JobRecord | None:
        return self.engine.job(job_id) if self.engine is not None and self.caught_up.is_set() else None

    async def wait_for(self, partition: Partition, sequence: Sequence, *, timeout: float) -> bool:
        self.asked.append((partition, sequence))
        try:
            async with asyncio.timeout(timeout):
                await self.caught_up.wait()
        except TimeoutError:
            return False
        return True

    async def wait_terminal(self, job_id: JobId, *, timeout: float) -> JobRecord | None:
        def has_ended() -> bool:
            record = None if self.engine is None else self.engine.job(job_id)
            return record is not None and record.state.is_terminal

        try:
            await until(has_ended, timeout)
        except TimeoutError:
            return None
        return await self.job(job_id)

    async def positions(self) -> dict[Partition, Position]:
        return {}

    async def circumstances(self, job_id: JobId) -> Circumstances:
        return Circumstances(job=await self.job(job_id))

    async def schedule(self, schedule_id: ScheduleId) -> ScheduleView | None:
        found = [
            view for view in await self.schedules(queue_of(schedule_id)) if view.schedule_id == schedule_id
        ]
        return found[0] if found else None

    async def schedules(self, queue: QueueName | None = None) -> list[ScheduleView]:
        if self.engine is None:
            return []
        return [
            ScheduleView(
                **{name: getattr(schedule, name) for name in SCHEDULE_FIELDS},
                last_job_state=None,
                last_skipped=None,
            )
            for state in self.engine.states
            for schedule in state.timetable.schedules.values()
            if queue is None or schedule.queue == queue
        ]

    async def close(self) -> None:
        self.closed += 1


@pytest.fixture
def table() -> Table:
    return Table()


@pytest.fixture
async def reader(log: ProbedLog, engine: CoreEngine, table: Table) -> AsyncIterator[Client]:
    """A client with a projection of the engine's jobs."""
    table.engine = engine
    async with Client.open(log, TOPICS, projection=table.open) as client:
        yield client


async def test_get_waits_for_the_projection_to_show_ones_own_writes(reader: Client, table: Table) -> None:
    await reader.enqueue("x", key="before")
    job_id = await reader.enqueue("x", key="k")
    getting = asyncio.create_task(reader.get(job_id))
    await until(lambda: bool(table.asked))
    assert not getting.done()
    table.caught_up.set()

    record = await getting
    assert record is not None
    assert record.job_id == job_id
    assert table.asked == [(partition_of("default", PARTITIONS), 1)]


async def test_get_does_not_pass_off_old_news(reader: Client, table: Table) -> None:
    job_id = await reader.enqueue("x")
    with pytest.raises(ProjectionBehind, match="tidelog projector"):
        await reader.get(job_id, timeout=0.2)
    with pytest.raises(ProjectionBehind):
        await reader.wait(job_id, timeout=0.2)
    assert table.opened == 1


async def test_what_others_wrote_is_read_as_it_is(reader: Client, table: Table) -> None:
    await reader.enqueue("x", queue="a")
    assert await reader.get("c/unknown") is None
    assert table.asked == []


async def test_wait_returns_the_job_that_has_ended(reader: Client, table: Table) -> None:
    table.caught_up.set()
    job_id = await reader.enqueue("x")
    waiting = asyncio.create_task(reader.wait(job_id, timeout=10))
    await reader.cancel(job_id)

    record = await waiting
    assert (record.job_id, record.state) == (job_id, JobState.CANCELLED)


async def test_wait_is_bounded_and_tells_what_it_saw(reader: Client, table: Table) -> None:
    table.caught_up.set()
    job_id = await reader.enqueue("x")
    with pytest.raises(WaitTimeout, match=r"did not end within 0\.2 s: it is Scheduled") as caught:
        await reader.wait(job_id, timeout=0.2)
    assert caught.value.record is not None
    with pytest.raises(WaitTimeout, match="Postgres does not know it"):
        await reader.wait("c/unknown", timeout=0.2)


async def test_postgres_is_opened_once_and_only_for_reads(
    log: ProbedLog, engine: CoreEngine, table: Table
) -> None:
    table.engine = engine
    table.caught_up.set()
    async with Client.open(log, TOPICS, projection=table.open) as client:
        await client.enqueue("x")
        assert table.opened == 0
        await asyncio.gather(*(client.get("b/c") for _ in range(5)))
    assert (table.opened, table.closed) == (1, 1)


async def test_a_client_that_is_closed_leaves_no_connection_behind(
    log: ProbedLog, engine: CoreEngine, table: Table
) -> None:
    table.engine = engine
    table.caught_up.set()
    async with Client.open(log, TOPICS, projection=table.open) as client:
        getting = asyncio.create_task(client.get("b/c"))
        await until(lambda: table.opened == 1)
    await asyncio.wait([getting])
    assert (table.opened, table.closed) == (1, 1)
    with pytest.raises(ClientClosed, match="reads nothing"):
        await client.get("b/c")
    assert (table.opened, table.closed) == (1, 1)


async def test_without_postgres_reads_say_so(client: Client) -> None:
    with pytest.raises(NoProjection):
        await client.get("a/b")
