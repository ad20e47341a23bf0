"""Schedules over the client: each result of the contract is a value or an exception."""

from __future__ import annotations

import pytest
from tests.client.core_engine import PARTITIONS, TOPICS, CoreEngine, ProbedLog
from tests.client.test_reading import Table

from tidelog.client.client import Client
from tidelog.client.errors import InvalidCommand, NoProjection, ScheduleNotFound
from tidelog.client.schedule import Schedule
from tidelog_events.commands import PutSchedule, TriggerSchedule
from tidelog_events.identity import JobId, ScheduleId, partition_of
from tidelog_events.replies import Answer
from tidelog_events.schedule_record import ScheduleRecord

NIGHTLY = Schedule("billing/nightly", "0 3 * * *", "send-invoice", {"order": "all"})


def record_of(engine: CoreEngine, schedule: Schedule) -> ScheduleRecord | None:
    """A schedule as the engine has it."""
    timetable = engine.states[partition_of(schedule.queue, PARTITIONS)].timetable
    return timetable.schedules.get(schedule.schedule_id)


async def test_puts_a_schedule_in_the_name_of_the_actor(client: Client, engine: CoreEngine) -> None:
    await client.put_schedule(NIGHTLY, actor="ann", command_id="c-1")
    record = record_of(engine, NIGHTLY)
    assert record is not None
    assert (record.cron, record.payload, record.put_by) == ("0 3 * * *", b'{"order":"all"}', "ann")
    [command] = engine.commands
    assert isinstance(command, PutSchedule)
    assert command.command_id == "c-1"

    await client.put_schedule(Schedule("billing/nightly", "0 4 * * *", "send-invoice"))
    record = record_of(engine, NIGHTLY)
    assert record is not None
    assert (record.cron, record.payload) == ("0 4 * * *", b"null")


async def test_removes_a_schedule(client: Client, engine: CoreEngine) -> None:
    await client.put_schedule(NIGHTLY)
    await client.remove_schedule("billing/nightly", actor="ann")
    assert record_of(engine, NIGHTLY) is None
    with pytest.raises(ScheduleNotFound, match="billing/nightly"):
        await client.remove_schedule("billing/nightly")


async def test_triggers_a_schedule_once_for_each_command(client: Client, engine: CoreEngine) -> None:
    await client.put_schedule(NIGHTLY)
    job_id = await client.trigger_schedule("billing/nightly", actor="ann", command_id="go-1")
    assert job_id == "billing/nightly@trigger-go-1"
    assert await client.trigger_schedule("billing/nightly", command_id="go-1") == job_id
    other = await client.trigger_schedule("billing/nightly")
    assert other != job_id
    record = engine.job(job_id)
    assert record is not None
    assert (record.payload, record.schedule_id) == (b'{"order":"all"}', "billing/nightly")
    with pytest.raises(ScheduleNotFound):
        await client.trigger_schedule("billing/daily")


async def test_a_trigger_whose_answer_is_lost_is_sent_once_more(client: Client, engine: CoreEngine) -> None:
    await client.put_schedule(NIGHTLY)
    lost: list[Answer] = []

    def loses_the_first(answer: Answer) -> bool:
        lost.append(answer)
        return len(lost) == 1

    engine.loses = loses_the_first
    job_id = await client.trigger_schedule("billing/nightly", timeout=0.4)
    triggers = [command for command in engine.commands if isinstance(command, TriggerSchedule)]
    assert len(triggers) == 2
    assert engine.job_ids == [JobId(job_id)]


async def test_reads_what_it_has_put(log: ProbedLog, engine: CoreEngine) -> None:
    table = Table()
    table.engine = engine
    table.caught_up.set()
    async with Client.open(log, TOPICS, projection=table.open) as client:
        assert await client.schedules() == []
        await client.put_schedule(NIGHTLY)
        await client.put_schedule(Schedule("reports/weekly", "0 3 * * mon", "report"))
        view = await client.schedule("billing/nightly")
        assert view is not None
        assert view.payload_value == {"order": "all"}
        assert await client.schedules("billing") == [view]
        assert {view.schedule_id for view in await client.schedules()} == {
            ScheduleId("billing/nightly"),
            ScheduleId("reports/weekly"),
        }
        assert await client.schedule("billing/none") is None
        # Each partition in which something was put has been waited for.
        assert {partition for partition, _ in table.asked} >= {
            partition_of(queue, PARTITIONS) for queue in ("billing", "reports")
        }


async def test_names_the_field_that_is_wrong(client: Client) -> None:
    for call, field in (
        (client.put_schedule(NIGHTLY, actor="a" * 201), "actor"),
        (client.put_schedule(NIGHTLY, command_id="c" * 101), "command_id"),
        (client.remove_schedule("nightly"), "schedule_id"),
        (client.trigger_schedule("billing/"), "schedule_id"),
        (client.schedule("a b/c"), "schedule_id"),
        (client.schedules("a b"), "queue"),
    ):
        with pytest.raises(InvalidCommand) as caught:
            await call
        assert caught.value.field == field
    with pytest.raises(NoProjection):
        await client.schedules()
