"""Who asked a running job to stop is known of this life of the id, whatever of its history is kept."""

from __future__ import annotations

import pytest
from tests.projection.story import DAY, Story, batch_of

from tidelog_events.identity import JobId
from tidelog_projections.history import History
from tidelog_projections.projection import Projection

JOB = JobId("default/job")


@pytest.mark.parametrize("history", [History.DETAIL, History.OFF])
async def test_requests_of_this_life_only_and_no_cancel_at_once(postgres_dsn: str, history: History) -> None:
    story = Story()
    for actor, output in (("of the first life", 1), ("ann", 2)):
        story.enqueue()
        story.claim()
        story.do("cancel", job_id=JOB, actor=actor)
        story.do("cancel", job_id=JOB, actor=None)
        if output == 1:
            story.report(output=output)
            story.pass_time(DAY + 1)
    async with await Projection.connect(postgres_dsn, history=history) as projection:
        await projection.apply(batch_of(story.events))
        assert [request.actor for request in await projection.cancel_requests(JOB)] == ["ann", None]

        told = len(story.events)
        story.report(outcome="Failure", error="boom")  # back to Scheduled, and the wish is still there
        story.do("cancel", job_id=JOB, actor="bob")
        await projection.apply(batch_of(story.events[told:]))
        assert [request.actor for request in await projection.cancel_requests(JOB)] == ["ann", None]
