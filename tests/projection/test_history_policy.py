"""How much of a job's history is kept is a setting (contract section 11, `TIDELOG_HISTORY`)."""

from __future__ import annotations

import pytest
from tests.projection.story import Story, batch_of

from tidelog_events.identity import JobId
from tidelog_events.states import JobState
from tidelog_projections.history import History
from tidelog_projections.projection import Projection

JOB = JobId("default/job")


@pytest.mark.parametrize(
    ("history", "types", "details"),
    [
        (History.DETAIL, ["enqueued", "leased", "dead_lettered"], [None, None, "the stack"]),
        (History.TRANSITIONS, ["enqueued", "leased", "dead_lettered"], [None, None, None]),
        (History.OFF, [], []),
    ],
)
async def test_steps_and_failure_details_are_kept_as_set(
    postgres_dsn: str, history: History, types: list[str], details: list[str | None]
) -> None:
    story = Story()
    story.enqueue()
    story.claim()
    story.report(outcome="Failure", error="boom", failure_detail="the stack", next_due=None)
    async with await Projection.connect(postgres_dsn, history=history) as projection:
        await projection.apply(batch_of(story.events))
        record = await projection.job(JOB)
        steps = await projection.history(JOB)
    assert record is not None
    assert (record.state, record.terminal_cause) == (JobState.DEAD_LETTERED, "boom")
    assert [step.type for step in steps] == types
    assert [step.failure_detail for step in steps] == details
