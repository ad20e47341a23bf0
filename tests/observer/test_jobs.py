"""The job of a delivery is the job as it was right after that transition, wherever that has to be found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.cluster import SECONDS, Cluster, MemoryCluster, SqliteCluster, read_to_end
from tests.engine.house import TOPICS, House, eventually
from tests.observer.stage import AT_ONCE, HASTY
from tests.roles import at_work

from tidelog.app import App
from tidelog.log.port import TopicSpec
from tidelog.observer.context import ObserverContext
from tidelog.observer.observer import Observer
from tidelog_events.codec import decode_transition
from tidelog_events.record import JobRecord
from tidelog_events.transitions import Enqueued, JobFact

RETENTION_SECONDS = 24 * 3_600


@pytest.fixture(params=["memory", "sqlite"])
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    cluster: Cluster = MemoryCluster() if request.param == "memory" else SqliteCluster(tmp_path)
    yield await House.build(cluster)
    await cluster.close()


@asynccontextmanager
async def observing(house: House, handler: Any, **options: Any) -> AsyncIterator[Observer]:
    app = App()
    app.observer("watch", **{"start": "beginning", "retry": AT_ONCE, **options})(handler)
    [definition] = app.observers
    observer = Observer(await house.cluster.connect(), TOPICS, definition, settings=HASTY)
    async with at_work(observer, bound=SECONDS):
        yield observer


async def expected(house: House) -> dict[int, JobRecord]:
    """The record of the job after each event about one, folded from the whole log."""
    records: dict[str, JobRecord] = {}
    found: dict[int, JobRecord] = {}
    for entry in await read_to_end(house.log, TOPICS.transitions):
        event = decode_transition(entry.value)
        if isinstance(event, Enqueued):
            records[event.job_id] = JobRecord.born(event)
        elif isinstance(event, JobFact):
            records[event.job_id].apply(event)
        if isinstance(event, JobFact):
            found[event.sequence] = JobRecord(
                **{name: getattr(records[event.job_id], name) for name in JobRecord.__dataclass_fields__}
            )
    return found


async def enqueue(house: House, *keys: str, tags: Collection[object] = (), delay: float = 0) -> None:
    for key in keys:
        reply = await house.ask(
            {
                "type": "enqueue",
                "command_id": f"enqueue-{key}-{house.clock()}",
                "wire_name": "w",
                "job_id": f"q/{key}",
                "payload": {"key": key},
                "tags": list(tags),
                **({} if not delay else {"due_time": f"2026-01-0{1 + int(delay // 86_400)}T12:00:00Z"}),
            }
        )
        assert reply["result"] == "Ok"


async def run_all(house: House, mark: str, *, fail: bool = False) -> None:
    """Claim what is due and report it, with a tag that the attempt adds."""
    granted = await house.ask(
        {"type": "claim", "command_id": f"claim-{mark}", "worker_id": "w", "queue": "q", "max_jobs": 100}
    )
    outcome = (
        {"outcome": "Failure", "error": "no", "failure_detail": "no\n  line 1"}
        if fail
        else {"outcome": "Success"}
    )
    await house.ask(
        {
            "type": "report",
            "command_id": f"report-{mark}",
            "worker_id": "w",
            "outcomes": [
                {"job_id": job["job_id"], "attempt": job["attempt"], "add_tags": [mark], **outcome}
                for job in granted["jobs"]
            ],
        }
    )


class Asker:
    """A handler that asks for the job of each delivery."""

    def __init__(self) -> None:
        self.found: dict[int, JobRecord | None] = {}
        self.details: list[str | None] = []

    async def ask(self, context: ObserverContext) -> None:
        self.details.append(context.failure_detail)
        self.found[context.sequence] = await context.job()

    def ask_in_thread(self, context: ObserverContext) -> None:
        self.found[context.sequence] = context.job_sync()


async def test_each_delivery_finds_its_job_as_it_was(house: House) -> None:
    asker = Asker()
    async with house.running():
        await enqueue(house, "a", "b", tags=["born"])
        async with observing(house, asker.ask):
            await run_all(house, "first", fail=True)
            house.clock.advance(10)
            await run_all(house, "second")
            await enqueue(house, "late")
            wanted = await expected(house)
            await eventually(lambda: len(asker.found) == len(wanted))
    assert asker.found == wanted
    assert wanted[max(wanted) - 1].tags == ("born", "first", "second")
    assert "no\n  line 1" in asker.details


async def test_a_plain_function_finds_it_too(house: House) -> None:
    asker = Asker()
    async with house.running():
        await enqueue(house, "a")
        await run_all(house, "first")
        async with observing(house, asker.ask_in_thread):
            wanted = await expected(house)
            await eventually(lambda: len(asker.found) == len(wanted))
    assert asker.found == wanted


async def test_it_is_right_when_begun_in_the_middle_of_lives(house: House) -> None:
    """Some have changed since, some have not, some are purged by now, some ids belong to another job."""
    async with house.running():
        await enqueue(house, "unchanged", delay=86_400 * 2)
        await enqueue(house, "reborn", "purged", "failing")
        first = Asker()
        async with observing(house, first.ask):
            await eventually(lambda: len(first.found) == 4)
        await run_all(house, "one", fail=True)
        house.clock.advance(10)
        await run_all(house, "two")
        house.clock.advance(RETENTION_SECONDS + 1)
        await enqueue(house, "reborn")
        assert "purged q/purged" in await house.steps()
        house.clock.advance(86_400)
        await run_all(house, "three")
        wanted = await expected(house)
        rest = Asker()
        async with observing(house, rest.ask):
            await eventually(lambda: len(rest.found) == len(wanted) - 4)
    assert {**first.found, **rest.found} == wanted


async def test_a_purged_job_is_found_at_its_purge(house: House) -> None:
    async with house.running():
        await enqueue(house, "a", tags=["vip"])
        await run_all(house, "done")
        house.clock.advance(RETENTION_SECONDS + 1)
        await enqueue(house, "b")
        asker = Asker()
        async with observing(house, asker.ask, types=["purged"], tags=["vip"]):
            await eventually(lambda: len(asker.found) == 1)
    [job] = asker.found.values()
    assert job is not None
    assert (job.job_id, job.payload_value, job.tags) == ("q/a", {"key": "a"}, ("vip", "done"))


async def test_what_the_log_has_forgotten_is_taken_from_what_engines_know(
    tmp_path: Path,
) -> None:
    cluster = SqliteCluster(tmp_path)
    log = await cluster.connect()
    await log.create_topics([TopicSpec(TOPICS.transitions, 1, retention_seconds=3_600)])
    house = await House.build(cluster)
    async with house.running():
        await enqueue(house, "a", tags=["vip"])
        await cluster.expire(TOPICS.transitions)
        await run_all(house, "done")
        asker = Asker()
        async with observing(house, asker.ask, tags=["vip"]):
            await eventually(lambda: len(asker.found) == 2)
    assert [job.payload_value for job in asker.found.values() if job is not None] == 2 * [{"key": "a"}]
    await cluster.close()


async def test_tags_decide_as_of_the_transition(house: House) -> None:
    """Also those that it adds, and after a restart those that stand in events before it."""
    async with house.running():
        await enqueue(house, "a", tags=[{"tenant": "acme"}])
        await enqueue(house, "b")
        async with observing(house, Asker().ask, tags=["first"]) as observer:
            await eventually(lambda: observer.counters.passed == 2)
        await run_all(house, "first", fail=True)
        house.clock.advance(10)
        await run_all(house, "second")
        asker = Asker()
        async with observing(house, asker.ask, tags=["first", {"tenant": "acme"}]) as observer:
            await eventually(lambda: observer.counters.passed + len(asker.found) == 8)
    states = [(job.job_id, job.state) for job in asker.found.values() if job is not None]
    assert states == [("q/a", "Scheduled"), ("q/a", "Leased"), ("q/a", "Succeeded")]


async def test_a_handler_that_asks_late_is_told_as_of_its_own_event(house: House) -> None:
    earlier: list[ObserverContext] = []
    told: list[str | None] = []

    async def ask(context: ObserverContext) -> None:
        if earlier:
            for asked in (context, earlier[0]):
                job = await asked.job()
                told.append(None if job is None else job.state.value)
        earlier.append(context)

    async with house.running():
        await enqueue(house, "a")
        await run_all(house, "done")
        async with observing(house, ask):
            await eventually(lambda: len(earlier) == 3)
    assert told == ["Leased", "Scheduled", "Succeeded", "Scheduled"]


async def test_a_fact_about_a_schedule_has_no_tags_though_it_names_a_job(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    schedule = {"schedule_id": "q/nightly", "cron": "0 3 * * *", "wire_name": "w", "tags": ["vip"]}
    told: list[str] = []
    async with house.running():
        await house.ask({"type": "put_schedule", "command_id": "put", **schedule})
        triggered = await house.ask(
            {"type": "trigger_schedule", "command_id": "go", "schedule_id": "q/nightly"}
        )
        await house.ask({"type": "cancel", "command_id": "stop", "job_id": triggered["job_id"]})
        types = ["schedule_triggered", "enqueued", "cancelled"]
        async with observing(house, lambda event: told.append(event.TYPE), types=types, tags=["vip"]):
            await eventually(lambda: "cancelled" in told)
    assert told == ["enqueued", "cancelled"]
    assert "has forgotten" not in caplog.text


async def test_facts_about_queues_have_no_job_and_no_tags(house: House) -> None:
    async with house.running():
        await house.ask({"type": "pause_queue", "command_id": "p", "queue": "q"})
        asker = Asker()
        async with observing(house, asker.ask, types=["queue_paused"]):
            await eventually(lambda: len(asker.found) == 1)
    assert list(asker.found.values()) == [None]
