"""Declared schedules are put at a worker's start: whatever is not there yet, and by many at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest
from tests.client.core_engine import TOPICS, CoreEngine, ProbedLog, running_engine, until
from tests.client.test_reading import Table

from tidelog.client.client import Client
from tidelog.client.schedule import Schedule
from tidelog.log.port import LogUnavailable
from tidelog.scheduling.sync import ScheduleSync
from tidelog_events.commands import PutSchedule, RemoveSchedule
from tidelog_events.schedule_record import ScheduleRecord

NIGHTLY = Schedule("billing/nightly", "0 3 * * *", "send-invoice")
HOURLY = Schedule("reports/hourly", "0 * * * *", "report")
TRY = 0.3
"""Seconds that a try waits for its answers."""


def schedules_of(engine: CoreEngine) -> dict[str, ScheduleRecord]:
    return {
        schedule.schedule_id: schedule
        for state in engine.states
        for schedule in state.timetable.schedules.values()
    }


def opener(log: ProbedLog, table: Table | None = None) -> Callable[[], AbstractAsyncContextManager[Client]]:
    @asynccontextmanager
    async def open_client() -> AsyncIterator[Client]:
        async with Client.open(log, TOPICS, projection=None if table is None else table.open) as client:
            yield client

    return open_client


def sync(log: ProbedLog, *schedules: Schedule) -> ScheduleSync:
    return ScheduleSync(schedules, opener(log), timeout=TRY, first_delay=0.01)


async def test_puts_what_is_declared_in_the_name_of_the_application(
    log: ProbedLog, engine: CoreEngine
) -> None:
    await ScheduleSync([NIGHTLY, HOURLY], opener(log), name="shop").run(asyncio.Event())
    found = schedules_of(engine)
    assert {name: record.cron for name, record in found.items()} == {
        "billing/nightly": "0 3 * * *",
        "reports/hourly": "0 * * * *",
    }
    assert {record.put_by for record in found.values()} == {"app shop"}


async def test_many_workers_at_once_define_each_schedule_once(log: ProbedLog, engine: CoreEngine) -> None:
    await asyncio.gather(*(sync(log, NIGHTLY, HOURLY).run(asyncio.Event()) for _ in range(8)))
    assert len([command for command in engine.commands if isinstance(command, PutSchedule)]) == 16
    assert sum(state.sequence for state in engine.states) == 2  # events: one for each schedule
    await sync(log, NIGHTLY, HOURLY).run(asyncio.Event())
    assert sum(state.sequence for state in engine.states) == 2


async def test_an_engine_that_comes_later_is_waited_for(
    log: ProbedLog, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = asyncio.create_task(sync(log, NIGHTLY).run(asyncio.Event()))
    await until(lambda: "the next try is in" in caplog.text)
    assert not waiting.done()
    async with running_engine(log.store) as engine:
        await waiting
        assert list(schedules_of(engine)) == ["billing/nightly"]
        assert sum(state.sequence for state in engine.states) == 1


async def test_a_log_that_fails_is_tried_again(log: ProbedLog, engine: CoreEngine) -> None:
    log.failures = [(LogUnavailable("the broker is away"), False)] * 2
    await sync(log, NIGHTLY, HOURLY).run(asyncio.Event())
    assert len(schedules_of(engine)) == 2


async def test_a_stop_ends_the_waiting_at_once(log: ProbedLog, caplog: pytest.LogCaptureFixture) -> None:
    stop = asyncio.Event()
    # Its first try would wait for minutes.
    waiting = asyncio.create_task(ScheduleSync([NIGHTLY], opener(log), timeout=600).run(stop))
    await until(lambda: bool(log.appends))
    stop.set()
    async with asyncio.timeout(5):
        await waiting
    assert "Traceback" not in caplog.text


class FromMars(Schedule):
    """A schedule in a zone that this release knows and the engine's does not."""

    def command(self, *, actor: str | None = None, command_id: str | None = None) -> PutSchedule:
        known = super().command(actor=actor, command_id=command_id)
        return known.model_copy(update={"time_zone": "Mars/Phobos"})


async def test_what_an_engine_refuses_is_said_and_the_others_are_put(
    log: ProbedLog, engine: CoreEngine, caplog: pytest.LogCaptureFixture
) -> None:
    refused = FromMars("billing/odd", "0 3 * * *", "send-invoice")
    await sync(log, refused, NIGHTLY).run(asyncio.Event())
    assert list(schedules_of(engine)) == ["billing/nightly"]
    assert "An engine refuses the schedule billing/odd" in caplog.text
    assert "Mars/Phobos" in caplog.text


async def test_what_is_declared_no_more_stays_unless_it_is_pruned(log: ProbedLog, engine: CoreEngine) -> None:
    table = Table()
    table.engine = engine
    table.caught_up.set()

    def start(name: str, *schedules: Schedule, prune: bool) -> ScheduleSync:
        return ScheduleSync(schedules, opener(log, table), name=name, prune=prune)

    by_hand = Schedule("billing/by-hand", "0 5 * * *", "send-invoice")
    async with Client.open(log, TOPICS) as client:
        await client.put_schedule(by_hand, actor="ann")
    await start("shop", NIGHTLY, HOURLY, prune=True).run(asyncio.Event())
    await start("other shop", Schedule("billing/other", "0 4 * * *", "x"), prune=True).run(asyncio.Event())

    await start("shop", NIGHTLY, prune=False).run(asyncio.Event())
    assert len(schedules_of(engine)) == 4
    await asyncio.gather(*(start("shop", NIGHTLY, prune=True).run(asyncio.Event()) for _ in range(3)))
    assert set(schedules_of(engine)) == {"billing/nightly", "billing/by-hand", "billing/other"}
    removals = [command for command in engine.commands if isinstance(command, RemoveSchedule)]
    assert {command.actor for command in removals} == {"app shop"}
