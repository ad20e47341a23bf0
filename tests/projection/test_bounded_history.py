"""Of each job the newest 64 steps are kept (contract section 3, Bounds), and nothing once it is purged."""

from __future__ import annotations

import pytest
from tests.projection.story import DAY, Story, batch_of
from tests.projection.tables import Tables

from tidelog_events.bounds import MAX_HISTORY_ROWS
from tidelog_events.identity import JobId
from tidelog_projections.projection import Projection

JOB = JobId("default/job")


def _long_life(rounds: int) -> Story:
    story = Story()
    story.enqueue()
    for _ in range(rounds):
        story.claim()
        story.report(outcome="Returned")
    return story


@pytest.mark.parametrize("size", [1, 7, 63, 64, 65, 1_000])
async def test_the_newest_64_steps_are_kept_however_they_come_in(projection: Projection, size: int) -> None:
    story = _long_life(rounds=50)
    for first in range(0, len(story.events), size):
        await projection.apply(batch_of(story.events[first : first + size]))
    steps = await projection.history(JOB)
    assert [step.ordinal for step in steps] == list(range(101 - MAX_HISTORY_ROWS, 101))


async def test_exactly_64_steps_are_all_kept(projection: Projection) -> None:
    story = _long_life(rounds=31)
    story.claim()
    await projection.apply(batch_of(story.events))
    assert [step.ordinal for step in await projection.history(JOB)] == list(range(64))


@pytest.mark.parametrize("size", [1, 3, 100])
async def test_a_purge_takes_everything_of_the_job_and_a_second_life_starts_clean(
    projection: Projection, tables: Tables, size: int
) -> None:
    story = Story()
    story.enqueue("default/parent")
    story.enqueue(tags=["first"], parents=["default/parent"])
    story.claim()
    story.report("default/parent")
    story.claim()
    story.report(output=1)
    story.pass_time(2 * DAY)
    purged = len(story.events)
    story.enqueue(tags=["second"])
    for first in range(0, purged, size):
        await projection.apply(batch_of(story.events[first : min(first + size, purged)]))
    for table in ("jobs", "job_tags", "job_transitions", "job_dependencies", "queue_depths"):
        assert await tables.rows(f"SELECT * FROM {table}") == []  # noqa: S608

    await projection.apply(batch_of(story.events[purged:]))
    record = await projection.job(JOB)
    assert record is not None
    assert (record.tags, record.output, record.attempt) == (("second",), b"null", 0)
    assert [step.ordinal for step in await projection.history(JOB)] == [0]
    assert await tables.depths() == await tables.counted_depths()


async def test_two_lives_in_one_batch_leave_the_second(projection: Projection, tables: Tables) -> None:
    story = Story()
    story.enqueue(tags=["first", "more"], payload=1)
    story.do("cancel", job_id="default/job")
    story.pass_time(2 * DAY)
    story.enqueue(tags=["second"], payload=2)
    await projection.apply(batch_of(story.events[:1]))
    await projection.apply(batch_of(story.events))
    record = await projection.job(JOB)
    assert record is not None
    assert (record.payload, record.tags, record.terminal_cause) == (b"2", ("second",), None)
    assert [step.type for step in await projection.history(JOB)] == ["enqueued"]
    assert await tables.depths() == await tables.counted_depths()
