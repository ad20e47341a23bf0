"""What is known of workers: leases they hold, when they were last heard of, what they did (section 10)."""

from __future__ import annotations

import random

import pytest
from tests.projection.log import TOPICS, append, new_log
from tests.projection.story import DAY, START, Story, batch_of, random_story, records_of
from tests.projection.tables import Rows, Tables
from tests.providers.postgres import create_database, drop_database
from tests.roles import at_work

from tidelog.projector import Projector, rebuild
from tidelog_events.instants import SECOND, Instant
from tidelog_events.jsontext import Json
from tidelog_projections.projection import Projection

_HELD = (
    "SELECT lease_owner AS worker_id, count(*) AS leases FROM jobs WHERE lease_owner IS NOT NULL GROUP BY 1"
)


async def held(tables: Tables) -> tuple[Rows, Rows]:
    """The leases of each worker that holds some, as `workers` has them and as the jobs have them."""
    told = await tables.rows("SELECT worker_id, leases FROM workers WHERE leases <> 0 ORDER BY 1")
    return told, await tables.rows(f"{_HELD} ORDER BY 1")


async def test_a_worker_is_seen_by_its_grants_its_heartbeats_and_its_reports(projection: Projection) -> None:
    story = Story()
    for key in ("done", "fails", "unroutable", "kept"):
        story.enqueue(f"default/{key}", retry={"max_attempts": 1})
    story.claim(max_jobs=4)
    await projection.apply(batch_of(story.events))
    [worker] = await projection.workers()
    assert (worker.worker_id, worker.leases) == ("worker-1", 4)
    assert (worker.first_seen, worker.last_seen) == (START, START)

    told = len(story.events)
    story.pass_time(60)
    story.report("default/done")
    story.report("default/fails", "Failure", error="boom")
    story.report("default/unroutable", "Unroutable", reason="nobody")
    story.pass_time(60)
    row: dict[str, Json] = {"job_id": "default/kept", "attempt": 1}
    story.do("heartbeat", worker_id="worker-1", leases=[row], lease_seconds=30)
    await projection.apply(batch_of(story.events[told:]))
    [worker] = await projection.workers()
    assert (worker.leases, worker.succeeded, worker.failed, worker.expired) == (1, 1, 2, 0)
    assert (worker.first_seen, worker.last_seen) == (START, START + 120 * SECOND)


async def test_a_lease_that_runs_out_is_no_sign_of_life(projection: Projection) -> None:
    story = Story()
    story.enqueue()
    story.claim()
    story.pass_time(601)
    await projection.apply(batch_of(story.events))
    [worker] = await projection.workers()
    assert (worker.leases, worker.expired, worker.last_seen) == (0, 1, START)


@pytest.mark.parametrize("seed", range(3))
async def test_wherever_the_log_is_cut_workers_hold_what_the_jobs_say(
    projection: Projection, tables: Tables, postgres_server: str, seed: int
) -> None:
    story = random_story(seed, steps=300)
    choose = random.Random(seed)  # noqa: S311  a test that can be repeated
    done = 0
    while done < len(story.events):
        start, done = done, min(len(story.events), done + choose.choice([1, 7, 40]))
        await projection.apply(batch_of(story.events[max(0, start - 5) : done]))
        told, counted = await held(tables)
        assert told == counted
    by_pieces = await projection.workers()

    other_dsn = await create_database(postgres_server)
    async with await Projection.connect(other_dsn) as other:
        await other.apply(batch_of(story.events))
        assert await other.workers() == by_pieces
    await drop_database(postgres_server, other_dsn)


async def test_a_rebuild_counts_again_and_a_partition_alone_forgets_nothing(
    projection: Projection, tables: Tables
) -> None:
    story = random_story(seed=3, steps=300)
    await projection.apply(batch_of(story.events))
    before = await projection.workers()
    log = await new_log()
    await append(log, [*records_of(story.events, TOPICS), *story.changelog(TOPICS)])
    await rebuild(log, TOPICS, projection, clock=lambda: START)
    assert await projection.workers() == before
    told, counted = await held(tables)
    assert told == counted


async def test_workers_that_were_silent_for_a_week_are_forgotten(projection: Projection) -> None:
    story = Story()
    for key in ("held", "ended"):
        story.enqueue(f"default/{key}")
    story.claim(worker_id="holds-one")
    story.claim(worker_id="is-gone")
    for job_id, record in story.state.jobs.items():
        if record.lease_owner == "is-gone":
            story.report(job_id)
    log = await new_log()
    await append(log, records_of(story.events, TOPICS))
    now = Instant(START + 7 * DAY * SECOND)

    async with at_work(Projector(log, TOPICS, projection, clock=lambda: now)):
        assert await projection.wait_for(story.state.partition, story.events[-1].sequence, timeout=20)
    assert len(await projection.workers()) == 2
    async with at_work(Projector(log, TOPICS, projection, clock=lambda: Instant(now + 1))):
        while len(found := await projection.workers()) > 1:
            pass
    assert [worker.worker_id for worker in found] == ["holds-one"]
