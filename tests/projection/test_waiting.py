"""Waiting for a position and for the end of a job: bounded, and woken by what comes in."""

from __future__ import annotations

import asyncio

from tests.projection.story import PARTITION, Story, batch_of

from tidelog_events.identity import JobId, Partition, Sequence
from tidelog_events.states import JobState
from tidelog_projections.projection import Projection

JOB = JobId("default/job")
BOUND = 20.0


async def test_a_position_that_is_reached_already(projection: Projection) -> None:
    story = Story()
    story.enqueue()
    await projection.apply(batch_of(story.events))
    assert await projection.wait_for(PARTITION, Sequence(0), timeout=0)
    assert await projection.wait_for(PARTITION, Sequence(-1), timeout=0)
    assert await projection.wait_for(Partition(5), Sequence(-1), timeout=0)
    assert await projection.position(PARTITION) == 0
    assert await projection.position(Partition(5)) == -1


async def test_a_position_that_does_not_come(projection: Projection) -> None:
    assert not await projection.wait_for(PARTITION, Sequence(0), timeout=0)
    assert not await projection.wait_for(PARTITION, Sequence(0), timeout=0.02)


async def test_a_position_that_comes_while_one_waits(projection: Projection) -> None:
    story = Story()
    story.enqueue()
    waiting = asyncio.create_task(projection.wait_for(PARTITION, Sequence(0), timeout=BOUND))
    await projection.apply(batch_of(story.events))
    assert await waiting
    assert await projection.job(JOB) is not None


async def test_the_end_of_a_job(projection: Projection) -> None:
    story = Story()
    waiting = asyncio.create_task(projection.wait_terminal(JOB, timeout=BOUND))
    story.enqueue()
    story.claim()
    await projection.apply(batch_of(story.events))
    assert await projection.wait_terminal(JOB, timeout=0) is None
    assert not waiting.done()
    story.report(output=7)
    await projection.apply(batch_of(story.events))
    record = await waiting
    assert record is not None
    assert (record.state, record.output) == (JobState.SUCCEEDED, b"7")


async def test_a_job_that_never_comes(projection: Projection) -> None:
    assert await projection.wait_terminal(JOB, timeout=0.02) is None
