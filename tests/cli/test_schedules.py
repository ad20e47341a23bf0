"""Looking at schedules, triggering and removing them; declaring them to workers that come and go."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.cli.running import SECONDS, Installation, Process
from tests.projection.story import Story, batch_of
from tests.projection.tables import Rows, Tables

from tidelog.client.client import Client
from tidelog.client.schedule import Schedule
from tidelog.log.address import open_log
from tidelog.log.topics import Topics
from tidelog_events.zones import ZoneDatabase
from tidelog_projections.projection import Projection

NEW_YEAR = "0 0 1 1 *"


def put(installation: Installation, schedule: Schedule) -> None:
    """Put a schedule, as a program would."""

    async def call() -> None:
        async with (
            await open_log(installation.variables["TIDELOG_LOG"]) as log,
            Client.open(log, Topics()) as client,
        ):
            await client.put_schedule(schedule, actor="ann")

    asyncio.run(call())


def listed(installation: Installation, queue: str) -> list[dict[str, object]]:
    """What `tidelog schedules` says of a queue."""
    found = installation.json("schedules", "--queue", queue)
    assert isinstance(found, dict)
    schedules: list[dict[str, object]] = found["schedules"]
    return schedules


def test_schedules_are_listed_with_what_comes_next(running: Installation) -> None:
    put(
        running,
        Schedule("listed/new-year", NEW_YEAR, "greet", {"name": "Ann"}, time_zone="Asia/Kathmandu"),
    )
    put(running, Schedule("listed/paced", "0 12 1 7 *", "greet", no_overlap=True, catch_up="Coalesce"))
    new_year, paced = listed(running, "listed")
    assert (new_year["schedule_id"], new_year["cron"], new_year["time_zone"]) == (
        "listed/new-year",
        NEW_YEAR,
        "Asia/Kathmandu",
    )
    assert str(new_year["next_due"]).endswith("-12-31T18:15:00Z")
    assert (new_year["payload"], new_year["put_by"]) == ({"name": "Ann"}, "ann")
    assert (paced["no_overlap"], paced["catch_up"], paced["last_job_id"]) == (True, "Coalesce", None)
    shown = running.run("schedules", "--queue", "listed").stdout
    assert re.search(r"listed/new-year .*-01-01T00:00:00\+05:45 .*-12-31T18:15:00Z", shown)
    assert "overdue" not in shown
    assert listed(running, "elsewhere") == []
    refused = running.run("schedules", "--queue", "no queue")
    assert (refused.exit_code, refused.stdout) == (1, "Invalid\n")


def test_a_schedule_is_triggered_by_hand(running: Installation) -> None:
    put(running, Schedule("greetings/by-hand", NEW_YEAR, "greet", {"name": "Ann"}))
    done = running.run("trigger", "greetings/by-hand", "--actor", "bob")
    assert done.exit_code == 0, done.output
    job_id = done.stdout.strip()
    assert job_id.startswith("greetings/by-hand@trigger-")
    history = running.json("history", job_id)
    assert isinstance(history, dict)
    assert history["transitions"][0]["actor"] == "bob"
    [schedule] = [found for found in listed(running, "greetings") if "by-hand" in str(found["schedule_id"])]
    assert schedule["last_job_id"] == job_id
    again = running.json("trigger", "greetings/by-hand")
    assert isinstance(again, dict)
    assert again.keys() == {"result", "schedule_id", "job_id"}
    assert again["result"] == "Triggered"
    assert again["job_id"] != job_id


def test_a_schedule_is_shown_with_all_that_is_known_of_it(running: Installation) -> None:
    put(running, Schedule("shown/new-year", NEW_YEAR, "\x1b[31mred", tags=["a", {"b": "c"}]))
    shown = running.run("schedule", "shown/new-year").stdout
    assert "\x1b" not in shown
    assert re.search(r"^wire_name +\\x1b\[31mred *$", shown, re.MULTILINE)
    assert re.search(r"^tags +a b=c *$", shown, re.MULTILINE)
    found = running.json("schedule", "shown/new-year")
    assert isinstance(found, dict)
    assert (found["cron"], found["skips"]) == (NEW_YEAR, [])
    missing = running.run("schedule", "shown/none")
    assert (missing.exit_code, missing.stdout) == (1, "ScheduleNotFound\n")


def test_a_schedule_is_removed(running: Installation) -> None:
    put(running, Schedule("removed/new-year", NEW_YEAR, "greet"))
    done = running.run("unschedule", "removed/new-year", "--actor", "ann")
    assert (done.exit_code, done.stdout) == (0, "Ok\n")
    assert listed(running, "removed") == []
    for command in ("unschedule", "trigger"):
        refused = running.run(command, "removed/new-year")
        assert (refused.exit_code, refused.stdout) == (1, "ScheduleNotFound\n")
    wrong = running.run("trigger", "no id")
    assert (wrong.exit_code, wrong.stdout) == (1, "Invalid\n")


def test_what_is_wrong_with_a_schedule_is_said(installation: Installation, postgres_dsn: str) -> None:
    story = Story()
    story.do("put_schedule", schedule_id="q/late", cron="0 * * * *", wire_name="w")
    story.do("put_schedule", schedule_id="q/lost", cron="0 * * * *", time_zone="Europe/Oslo", wire_name="w")
    story.state.timetable.zones = ZoneDatabase("a release without Oslo", {"UTC": "UTC"})
    story.pass_time(2 * 3_600)

    async def project() -> None:
        async with await Projection.connect(postgres_dsn) as projection:
            await projection.apply(batch_of(story.events))

    asyncio.run(project())
    variables = {**installation.variables, "TIDELOG_POSTGRES": postgres_dsn}
    shown = Installation(installation.folder, variables).run("schedules")
    assert re.search(r"^q/late .*q/late@20260101T020000Z +Scheduled +0 +overdue", shown.stdout, re.MULTILINE)
    assert re.search(r"^q/lost .* 0 +.*Europe/Oslo", shown.stdout, re.MULTILINE)
    assert "whether this is the newest state is not known" in shown.stderr


CLOCKS = """\
from tidelog import App, every

app = App(name="clocks")


@app.job("tick", queue="clocks")
async def tick() -> None:
    pass


app.schedule("clocks/second", every(seconds=1), tick.job(), catch_up="{catch_up}")
{more}
"""
"""An application whose schedule ticks all the time."""


def declare(folder: Path, *, catch_up: str = "Skip", more: str = "") -> None:
    """Write the application `clocks`, or write it anew."""
    (folder / "clocks.py").write_text(CLOCKS.format(catch_up=catch_up, more=more), encoding="utf-8")


@pytest.fixture
async def tables(postgres_dsn: str) -> AsyncIterator[Tables]:
    """The tables of `clocks`."""
    async with Tables.of(postgres_dsn) as tables:
        yield tables


@pytest.fixture
def clocks(installation: Installation, postgres_dsn: str) -> Installation:
    """An installation, ready to start, whose Postgres outlives its processes."""
    declare(installation.folder)
    made = Installation(installation.folder, {**installation.variables, "TIDELOG_POSTGRES": postgres_dsn})
    assert made.run("init").exit_code == 0
    return made


async def until(tables: Tables, query: str, holds: Callable[[Rows], bool]) -> Rows:
    """Look until the rows of a query are as they are to be."""
    deadline = time.monotonic() + SECONDS
    while not holds(rows := await tables.rows(query)):
        assert time.monotonic() < deadline, rows
        os.sched_yield()
    return rows


JOBS = "SELECT job_id, due_time, extract(epoch FROM due_time)::bigint AS tick FROM jobs ORDER BY due_time"
SKIPS = "SELECT extract(epoch FROM tick)::bigint AS tick FROM schedule_skips"
PUTS = "SELECT actor, target FROM audit WHERE action = 'put_schedule' ORDER BY at"


async def test_no_tick_is_lost_or_comes_twice_when_everything_is_killed_and_started_again(
    clocks: Installation, tables: Tables
) -> None:
    with clocks.start("up", "clocks:app") as process:
        process.expect("Tidelog is up")
        await until(tables, JOBS, lambda rows: len(rows) >= 2)
        process.signal(signal.SIGKILL)
        process.end()
        before = len(await tables.rows(JOBS))
    with clocks.start("up", "clocks:app") as process:
        process.expect("Tidelog is up")
        rows = await until(tables, JOBS, lambda rows: len(rows) >= before + 3)
        process.expect("1 declared schedules are in place")
        process.signal(signal.SIGTERM)
        assert process.end() == 0
    ticks = sorted([row["tick"] for row in [*await tables.rows(JOBS), *await tables.rows(SKIPS)]])
    assert ticks == list(range(ticks[0], ticks[0] + len(ticks)))
    assert len(ticks) >= len(rows)
    # The second start found it defined as it declares it.
    assert await tables.rows(PUTS) == [{"actor": "app clocks", "target": "clocks/second"}]


async def test_workers_that_start_at_once_define_each_schedule_once(
    clocks: Installation, tables: Tables
) -> None:
    """Also when the engine comes last. What is declared no more goes when that is asked for."""
    declare(clocks.folder, more='app.schedule("clocks/yearly", "0 0 1 1 *", tick.job())')
    with ExitStack() as running:
        workers = [running.enter_context(clocks.start("worker", "clocks:app")) for _ in range(2)]
        for worker in workers:
            worker.expect("serves clocks")
        running.enter_context(clocks.start("projector"))
        running.enter_context(clocks.start("engine"))
        for worker in workers:
            worker.expect("2 declared schedules are in place")
        rows = await until(tables, PUTS, lambda rows: len(rows) >= 2)
        assert {row["target"] for row in rows} == {"clocks/second", "clocks/yearly"}
        end(workers)

        declare(clocks.folder, catch_up="Coalesce")
        with clocks.start("worker", "clocks:app", "--prune-schedules") as worker:
            worker.expect("clocks/yearly is declared no more; it was removed")
            left = "SELECT schedule_id, catch_up FROM schedules"
            await until(tables, left, lambda rows: len(rows) == 1)
            end([worker])
    assert await tables.rows("SELECT schedule_id, catch_up FROM schedules") == [
        {"schedule_id": "clocks/second", "catch_up": "Coalesce"}
    ]
    assert len(await tables.rows(PUTS)) == 3


def end(processes: list[Process]) -> None:
    for process in processes:
        process.signal(signal.SIGTERM)
    assert [process.end() for process in processes] == [0] * len(processes)


def test_a_wrong_declaration_is_said_before_anything_starts(installation: Installation) -> None:
    declare(installation.folder, more='app.schedule("clocks/odd", "61 * * * *", tick.job())')
    with installation.start("worker", "clocks:app") as worker:
        assert worker.end() == 2
        said = "".join(worker.said)
    assert "The schedule 'clocks/odd' cannot be declared" in said
    assert "Traceback" not in said


def test_an_application_without_a_name_cannot_be_pruned(installation: Installation) -> None:
    with installation.start("worker", "shop:app", "--processes", "2", "--prune-schedules") as worker:
        assert worker.end() == 2
        assert "the application needs a name: App(name=...)" in "".join(worker.said)
