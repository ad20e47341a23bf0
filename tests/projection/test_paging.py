"""Listing jobs: filters, order, and pages that neither repeat nor leave out."""

from __future__ import annotations

import pytest
from tests.projection.story import Story, batch_of

from tidelog_events.identity import QueueName
from tidelog_events.states import JobState
from tidelog_projections.errors import InvalidQuery
from tidelog_projections.paging import MAX_PAGE, JobOrder
from tidelog_projections.projection import Projection


async def test_sixty_jobs_that_are_due_at_once_come_as_25_and_25_and_10(projection: Projection) -> None:
    story = Story()
    for number in range(60):
        story.enqueue(f"default/job-{number:02}")
    await projection.apply(batch_of(story.events))
    for order in JobOrder:
        sizes: list[int] = []
        seen: list[str] = []
        after: str | None = None
        while True:
            page = await projection.jobs(limit=25, after=after, order=order)
            sizes.append(len(page.jobs))
            seen += [record.job_id for record in page.jobs]
            after = page.after
            if after is None:
                break
        assert sizes == [25, 25, 10]
        assert seen == sorted(story.state.jobs, reverse=order is JobOrder.LATEST_DUE)


async def test_a_page_that_is_just_full_has_no_next(projection: Projection) -> None:
    story = Story()
    for number in range(2):
        story.enqueue(f"default/job-{number}")
    await projection.apply(batch_of(story.events))
    assert (await projection.jobs(limit=2)).after is None
    assert (await projection.jobs(limit=1)).after is not None


async def test_jobs_that_come_between_two_pages_hide_none(projection: Projection) -> None:
    story = Story()
    for number in range(4):
        story.enqueue(f"default/job-{number}")
    await projection.apply(batch_of(story.events))
    first = await projection.jobs(limit=2, order=JobOrder.EARLIEST_DUE)
    story.enqueue("default/job-00")
    story.do("cancel", job_id="default/job-0")
    await projection.apply(batch_of(story.events))
    second = await projection.jobs(limit=2, order=JobOrder.EARLIEST_DUE, after=first.after)
    assert [record.job_id for record in (*first.jobs, *second.jobs)] == [f"default/job-{n}" for n in range(4)]


async def test_due_times_come_in_order(projection: Projection) -> None:
    story = Story()
    for day in (3, 1, 2):
        story.enqueue(f"default/day-{day}", due_time=f"2026-02-0{day}T00:00:00Z")
    await projection.apply(batch_of(story.events))
    latest = await projection.jobs()
    earliest = await projection.jobs(order=JobOrder.EARLIEST_DUE)
    assert [record.job_id[-1] for record in latest.jobs] == ["3", "2", "1"]
    assert [record.job_id[-1] for record in earliest.jobs] == ["1", "2", "3"]


async def test_filters_alone_and_together(projection: Projection) -> None:
    story = Story()
    story.enqueue("a/one", wire_name="resize", tags=["red", {"tenant": "acme"}])
    story.enqueue("a/two", wire_name="resize", tags=[{"red": "acme"}])
    story.enqueue("b/three", wire_name="send", tags=["red"])
    story.do("cancel", job_id="b/three")
    await projection.apply(batch_of(story.events))

    async def found(
        state: JobState | None = None,
        queue: str | None = None,
        wire_name: str | None = None,
        any_tag: tuple[str | tuple[str, str], ...] = (),
    ) -> set[str]:
        page = await projection.jobs(
            state=state,
            queue=None if queue is None else QueueName(queue),
            wire_name=wire_name,
            any_tag=any_tag,
        )
        return {record.job_id for record in page.jobs}

    assert await found() == {"a/one", "a/two", "b/three"}
    assert await found(state=JobState.CANCELLED) == {"b/three"}
    assert await found(queue="a") == {"a/one", "a/two"}
    assert await found(wire_name="send") == {"b/three"}
    assert await found(any_tag=("red",)) == {"a/one", "b/three"}
    assert await found(any_tag=(("red", "acme"),)) == {"a/two"}
    assert await found(
        any_tag=(("tenant", "acme"),), queue="a", wire_name="resize", state=JobState.SCHEDULED
    ) == {"a/one"}
    assert await found(any_tag=(("red", "acme"), "red"), queue="a") == {"a/one", "a/two"}
    assert await found(any_tag=("red",), state=JobState.SCHEDULED, queue="b") == set()


@pytest.mark.parametrize("limit", [0, -1, MAX_PAGE + 1])
async def test_a_limit_out_of_bounds_is_refused(projection: Projection, limit: int) -> None:
    with pytest.raises(InvalidQuery, match=f"limit is {limit}; a page holds 1 to {MAX_PAGE} jobs"):
        await projection.jobs(limit=limit)


@pytest.mark.parametrize(
    "cursor", ["", "x", "nonsense", "AAAA", "W10", "Int9", "WzEsMiwzXQ", "ключ", "bnVsbA", "a" * 9]
)
async def test_what_is_no_cursor_is_refused(projection: Projection, cursor: str) -> None:
    with pytest.raises(InvalidQuery, match="is no cursor"):
        await projection.jobs(after=cursor)


async def test_the_cursor_of_another_listing_is_refused(projection: Projection) -> None:
    story = Story()
    for number in range(3):
        story.enqueue(f"default/job-{number}")
    await projection.apply(batch_of(story.events))
    cursor = (await projection.jobs(limit=1, wire_name="work")).after
    assert cursor is not None
    with pytest.raises(InvalidQuery, match="other filters or another order"):
        await projection.jobs(limit=1, after=cursor)
    with pytest.raises(InvalidQuery, match="other filters or another order"):
        await projection.jobs(limit=1, wire_name="work", order=JobOrder.EARLIEST_DUE, after=cursor)
    assert len((await projection.jobs(limit=2, wire_name="work", after=cursor)).jobs) == 2
