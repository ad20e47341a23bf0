"""`TIDELOG_ARCHIVE`: what was purged stays readable, life by life, over rebuilds too (section 10)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.projection.log import TOPICS, append, new_log
from tests.projection.story import DAY, START, Story, batch_of, random_story, records_of
from tests.projection.tables import Tables

from tidelog.projector import rebuild
from tidelog_events.identity import JobId, QueueName
from tidelog_events.instants import SECOND
from tidelog_events.states import JobState
from tidelog_events.transitions import Purged
from tidelog_projections.errors import InvalidQuery
from tidelog_projections.projection import Projection

JOB = JobId("default/job")


@pytest.fixture
async def archiving(postgres_dsn: str) -> AsyncIterator[Projection]:
    """A projection that keeps what is purged."""
    async with await Projection.connect(postgres_dsn, archive=True) as projection:
        yield projection


def a_life(story: Story, output: str) -> None:
    """A job that waits for a parent, collects a tag, succeeds, and is purged a day later."""
    story.enqueue("default/parent")
    story.enqueue(tags=["urgent", {"customer": "4\0 2"}], parents=["default/parent"], payload={"n": 10**30})
    for job_id in ("default/parent", JOB):
        story.claim()
        story.report(job_id, output=output, add_tags=["done"])
    story.pass_time(DAY + 1)


async def test_a_purged_job_stays_as_it_was(archiving: Projection, tables: Tables) -> None:
    story = Story()
    a_life(story, "first")
    await archiving.apply(batch_of(story.events))
    assert await archiving.job(JOB) is None
    found = await archiving.archived_job(JOB)
    assert found is not None
    assert (found.record.state, found.record.output_value) == (JobState.SUCCEEDED, "first")
    assert found.record.payload == b'{"n":1000000000000000000000000000000}'
    assert found.record.tags == ("urgent", ("customer", "4␀ 2"), "done")
    assert found.parents == ("default/parent",)
    assert found.purged_at == START + DAY * SECOND
    # By anybody's SQL too; and nothing of the job is left in the tables of what is there.
    [row] = await tables.rows("SELECT state, tags FROM jobs_archive WHERE tags @> '[\"urgent\"]'")
    assert row == {"state": "Succeeded", "tags": '["urgent", {"customer": "4␀ 2"}, "done"]'}
    for table in ("jobs", "job_transitions", "job_tags", "job_dependencies"):
        assert (await tables.everything())[table] == [], table


@pytest.mark.parametrize("batch", [1, 7, 1_000])
async def test_each_life_of_an_id_is_kept_however_the_log_is_cut(
    archiving: Projection, tables: Tables, batch: int
) -> None:
    """Also when a birth and the purges before and after it come in one batch."""
    story = Story()
    for output in ("first", "second", "third"):
        a_life(story, output)
    for first in range(0, len(story.events), batch):
        await archiving.apply(batch_of(story.events[first : first + batch]))
    rows = await tables.rows(
        "SELECT output::text AS output FROM jobs_archive WHERE job_id = $1 ORDER BY purged_at", JOB
    )
    assert [row["output"] for row in rows] == ['"first"', '"second"', '"third"']
    found = await archiving.archived_job(JOB)
    assert found is not None
    assert found.record.output_value == "third"


async def test_without_the_setting_nothing_is_kept(projection: Projection, tables: Tables) -> None:
    story = Story()
    a_life(story, "first")
    await projection.apply(batch_of(story.events))
    assert await tables.rows("SELECT * FROM jobs_archive") == []


@pytest.mark.parametrize("batch", [3, 1_000])
async def test_every_purge_of_a_random_story_is_archived_once(
    archiving: Projection, tables: Tables, batch: int
) -> None:
    story = random_story(seed=5, steps=400)
    for first in range(0, len(story.events), batch):
        await archiving.apply(batch_of(story.events[first : first + batch]))
    rows = await tables.rows("SELECT job_id, purged_at, terminal_at FROM jobs_archive ORDER BY 2, 1")
    purged = [event for event in story.events if isinstance(event, Purged)]
    assert sorted(row["job_id"] for row in rows) == sorted(event.job_id for event in purged)
    assert len(purged) > 10
    assert all(row["terminal_at"] < row["purged_at"] for row in rows)
    assert await tables.depths() == await tables.counted_depths()


async def test_a_rebuild_takes_the_archive_along(archiving: Projection, tables: Tables) -> None:
    """Its rows cannot be made again: the log may have forgotten those lives, and the state has."""
    story = random_story(seed=6, steps=400)
    await archiving.apply(batch_of(story.events))
    before = await tables.everything()
    assert len(before["jobs_archive"]) > 10
    empty = await new_log()
    await rebuild(empty, TOPICS, archiving)
    assert (await tables.everything())["jobs_archive"] == before["jobs_archive"]

    # What the log still tells whole is made again, and does not come twice.
    log = await new_log()
    await append(log, [*records_of(story.events, TOPICS), *story.changelog(TOPICS)])
    await tables.rows("DELETE FROM jobs_archive WHERE queue = 'alpha'")
    await rebuild(log, TOPICS, archiving)
    after = await tables.everything()
    assert set(after["jobs_archive"]) <= set(before["jobs_archive"])
    assert any("'alpha'" in row for row in after["jobs_archive"])
    assert after["jobs"] == before["jobs"]


async def test_a_rebuild_archives_the_lives_before_the_one_that_is_there(
    archiving: Projection, tables: Tables
) -> None:
    """The state, from which rows come otherwise, knows the newest life of an id only."""
    story = Story()
    for output in ("first", "second"):
        a_life(story, output)
    story.enqueue(payload="third")
    log = await new_log()
    await append(log, [*records_of(story.events, TOPICS), *story.changelog(TOPICS)])
    await rebuild(log, TOPICS, archiving)
    rebuilt = await tables.everything()
    assert len(rebuilt["jobs_archive"]) == 4

    await tables.rows("TRUNCATE jobs_archive, jobs, job_transitions, job_tags, job_dependencies")
    await tables.rows("TRUNCATE queue_depths, queues, projection_position")
    await archiving.apply(batch_of(story.events))
    applied = await tables.everything()
    for table in ("jobs", "job_tags", "job_dependencies", "jobs_archive", "queue_depths"):
        assert rebuilt[table] == applied[table], table


async def test_a_rebuild_without_the_setting_takes_it_along_too(
    archiving: Projection, postgres_dsn: str, tables: Tables
) -> None:
    story = Story()
    a_life(story, "first")
    await archiving.apply(batch_of(story.events))
    async with await Projection.connect(postgres_dsn) as switched_off:
        await rebuild(await new_log(), TOPICS, switched_off)
    assert [row["job_id"] for row in await tables.rows("SELECT job_id FROM jobs_archive ORDER BY 1")] == [
        JOB,
        "default/parent",
    ]


async def test_the_archive_is_read_in_pages_by_filter_and_tag(archiving: Projection) -> None:
    story = Story()
    for number in range(5):
        story.enqueue(f"alpha/n{number}", tags=[{"number": str(number)}])
        story.claim("alpha")
        story.report(f"alpha/n{number}")
    story.enqueue("beta/other")
    story.do("cancel", job_id="beta/other")
    story.pass_time(DAY)
    await archiving.apply(batch_of(story.events))

    seen: list[str] = []
    after: str | None = None
    while True:
        page = await archiving.archived_jobs(queue=QueueName("alpha"), limit=2, after=after)
        seen += [job.record.job_id for job in page.jobs]
        after = page.after
        if after is None:
            break
    assert seen == [f"alpha/n{number}" for number in (4, 3, 2, 1, 0)]
    [tagged] = (await archiving.archived_jobs(any_tag=["number=3", ("number", "3")])).jobs
    assert tagged.record.job_id == "alpha/n3"
    [cancelled] = (await archiving.archived_jobs(state=JobState.CANCELLED)).jobs
    assert cancelled.record.job_id == "beta/other"
    assert (await archiving.archived_jobs(wire_name="nobody")).jobs == []

    first = await archiving.archived_jobs(limit=2)
    with pytest.raises(InvalidQuery, match="other filters"):
        await archiving.archived_jobs(queue=QueueName("alpha"), limit=2, after=first.after)
    with pytest.raises(InvalidQuery, match="no cursor"):
        await archiving.jobs(limit=2, after=first.after)
