"""A rebuild gives the rows that were there, keeps readers' rights, and harms nothing when it fails."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.projection.log import TOPICS, ForgetfulStore, append, new_log
from tests.projection.story import PARTITION, Story, batch_of, random_story, records_of
from tests.projection.tables import Tables
from tests.roles import at_work

from tidelog.projector import Projector, rebuild
from tidelog.projector.rebuild import RebuildProgress
from tidelog_events.identity import JobId, Sequence
from tidelog_projections.batch import Position
from tidelog_projections.errors import ProjectionRefused, RebuildRunning, SequenceGap
from tidelog_projections.projection import Projection
from tidelog_projections.rebuild import Rebuild, RestoredJob

JOB = JobId("default/job")


@pytest.mark.parametrize("seed", range(4))
async def test_a_rebuild_gives_the_rows_that_were_there(
    projection: Projection, tables: Tables, seed: int
) -> None:
    story = random_story(seed, steps=300)
    log = await new_log()
    await append(log, [*records_of(story.events, TOPICS), *story.changelog(TOPICS)])
    await projection.apply(batch_of(story.events))
    before = await tables.everything()
    await tables.rows("TRUNCATE jobs, job_transitions, job_tags, queue_depths, queues")
    seen: list[tuple[int, int]] = []

    def watch(now: RebuildProgress) -> None:
        seen.append((now.jobs, now.transitions))

    progress = await rebuild(log, TOPICS, projection, progress=watch)
    assert await tables.everything() == before
    assert (progress.done, progress.jobs) == (1, len(story.state.jobs))
    assert seen[-1] == (len(story.state.jobs), len(story.events))


async def test_without_state_the_transitions_are_enough(projection: Projection, tables: Tables) -> None:
    story = random_story(seed=9, steps=300)
    log = await new_log()
    await append(log, records_of(story.events, TOPICS))
    await projection.apply(batch_of(story.events))
    before = await tables.everything()
    await rebuild(log, TOPICS, projection)
    assert await tables.everything() == before


@pytest.mark.parametrize("kept", [0, 1, 40])
async def test_jobs_whose_events_the_log_forgot_come_from_the_state(
    projection: Projection, tables: Tables, kept: int
) -> None:
    story = random_story(seed=4, steps=300)
    store = ForgetfulStore()
    log = await new_log(store=store)
    cut = len(story.events) - kept
    await append(log, records_of(story.events[:cut], TOPICS))
    store.forget()
    await append(log, [*records_of(story.events[cut:], TOPICS), *story.changelog(TOPICS)])
    await projection.apply(batch_of(story.events))
    before = await tables.everything()

    await rebuild(log, TOPICS, projection)
    after = await tables.everything()
    for table in ("jobs", "job_tags", "job_dependencies", "queue_depths", "projection_position"):
        assert after[table] == before[table], table
    # And it is fit to go on from.
    story.enqueue("alpha/after")
    async with at_work(Projector(log, TOPICS, projection)):
        await append(log, records_of(story.events[-1:], TOPICS))
        assert await projection.wait_for(PARTITION, story.events[-1].sequence, timeout=20)


@pytest.mark.parametrize("seed", range(4))
async def test_rows_that_are_ahead_of_the_position_are_not_set_back(
    projection: Projection, tables: Tables, seed: int
) -> None:
    story = random_story(seed + 50, steps=300)
    events = story.events
    await projection.apply(batch_of(events))
    before = await tables.everything()
    half = len(events) // 2
    async with Rebuild.begin(projection.postgres) as new:
        jobs = [RestoredJob(job, tuple(job.parents)) for job in story.state.jobs.values()]
        await new.restore([], [], jobs, Position(PARTITION))
        await new.apply(batch_of(events[:half]))
        await new.finish()
    for first in range(half, len(events), 10):
        await projection.apply(batch_of(events[first : first + 10]))
        assert await tables.depths() == await tables.counted_depths()
    assert await tables.everything() == before


async def test_a_projector_that_runs_meanwhile_goes_on(projection: Projection, tables: Tables) -> None:
    story = random_story(seed=8, steps=200)
    log = await new_log()
    await append(log, [*records_of(story.events[:50], TOPICS)])
    async with at_work(Projector(log, TOPICS, projection)):
        assert await projection.wait_for(PARTITION, Sequence(49), timeout=20)
        async with Rebuild.begin(projection.postgres) as new:
            await new.restore([], [], [], Position(PARTITION))
            await new.apply(batch_of(story.events[:20]))
            await append(log, [*records_of(story.events[50:60], TOPICS)])
            assert await projection.wait_for(PARTITION, Sequence(59), timeout=20)
            await new.finish()
        # The new position is behind the one that the projector has come to: it goes back to it.
        await append(log, records_of(story.events[60:], TOPICS))
        assert await projection.wait_for(PARTITION, story.events[-1].sequence, timeout=20)
    after = await tables.everything()
    await rebuild(log, TOPICS, projection)
    assert await tables.everything() == after


async def test_only_one_rebuild_at_a_time(projection: Projection) -> None:
    log = await new_log()
    async with Rebuild.begin(projection.postgres):
        with pytest.raises(RebuildRunning, match="another process is rebuilding the projection at postgres"):
            await rebuild(log, TOPICS, projection)
    await rebuild(log, TOPICS, projection)


async def test_a_rebuild_that_fails_leaves_the_old_projection(projection: Projection, tables: Tables) -> None:
    story = Story()
    story.enqueue()
    await projection.apply(batch_of(story.events))
    before = await tables.everything()
    async with Rebuild.begin(projection.postgres) as new:
        await new.restore([], [], [], Position(PARTITION))
        with pytest.raises(SequenceGap):
            await new.apply(batch_of(random_story(seed=1, steps=30).events[5:]))
    assert await tables.everything() == before


async def test_somebody_elses_view_is_not_dropped(projection: Projection, tables: Tables) -> None:
    story = Story()
    story.enqueue()
    await projection.apply(batch_of(story.events))
    log = await new_log()
    await append(log, records_of(story.events, TOPICS))
    await tables.rows("CREATE VIEW public.report AS SELECT job_id FROM tidelog.jobs")
    with pytest.raises(ProjectionRefused, match=r"view report depends on .*tidelog rebuild"):
        await rebuild(log, TOPICS, projection)
    assert await tables.rows("SELECT * FROM public.report") == [{"job_id": "default/job"}]
    assert await projection.job(JOB) is not None
    await tables.rows("DROP VIEW public.report")
    await rebuild(log, TOPICS, projection)
    assert await projection.job(JOB) is not None


async def test_readers_keep_their_rights(projection: Projection, tables: Tables) -> None:
    role = f"reader_{uuid4().hex}"
    await tables.rows(f"CREATE ROLE {role}")
    try:
        await tables.rows(f"GRANT USAGE ON SCHEMA tidelog TO {role}")
        await tables.rows(f"GRANT SELECT ON tidelog.jobs TO {role} WITH GRANT OPTION")
        await tables.rows("GRANT SELECT ON tidelog.audit TO PUBLIC")
        await rebuild(await new_log(), TOPICS, projection)
        [rights] = await tables.rows(
            "SELECT has_schema_privilege($1, 'tidelog', 'USAGE') AS schema,"
            " has_table_privilege($1, 'tidelog.jobs', 'SELECT WITH GRANT OPTION') AS jobs,"
            " has_table_privilege($1, 'tidelog.audit', 'SELECT') AS audit,"
            " has_table_privilege($1, 'tidelog.queues', 'SELECT') AS queues",
            role,
        )
        assert rights == {"schema": True, "jobs": True, "audit": True, "queues": False}
    finally:
        await tables.rows(f"DROP OWNED BY {role}")
        await tables.rows(f"DROP ROLE {role}")
