"""Texts and JSON that people do send: stored and read back right, and never the end of the projection."""

from __future__ import annotations

import pytest
from tests.projection.story import PARTITION, Story, batch_of
from tests.projection.tables import Tables

from tidelog_events.bounds import MAX_CONCURRENCY_LIMIT
from tidelog_events.identity import JobId
from tidelog_events.instants import parse_instant
from tidelog_events.jsontext import Json, loads
from tidelog_events.transitions import Enqueued, Leased
from tidelog_projections.batch import Batch, Happened
from tidelog_projections.errors import Unstorable
from tidelog_projections.projection import Projection

JOB = JobId("default/job")


async def test_a_nul_is_shown_in_every_text_column(projection: Projection, tables: Tables) -> None:
    story = Story()
    story.enqueue(
        wire_name="na\0me",
        tags=["la\0bel", {"ke\0y": "va\0lue"}],
        trace_context="tra\0ce",
        workflow_id="wo\0rk",
    )
    story.claim()
    story.report(outcome="Failure", error="er\0ror", failure_detail="de\0tail", next_due=None)
    story.do("requeue", job_id=JOB, actor="an\0n")
    story.do("pause_queue", queue="default", actor="an\0n")
    await projection.apply(batch_of(story.events))

    record = await projection.job(JOB)
    assert record is not None
    assert (record.wire_name, record.trace_context, record.workflow_id) == ("na␀me", "tra␀ce", "wo␀rk")
    assert record.tags == ("la␀bel", ("ke␀y", "va␀lue"))
    dead = (await projection.history(JOB))[2]
    assert (dead.error, dead.failure_detail, dead.terminal_cause) == ("er␀ror", "de␀tail", "er␀ror")
    assert {row["actor"] for row in await tables.rows("SELECT actor FROM audit")} == {"an␀n"}
    assert (await projection.queues())[0].settings.paused_by == "an␀n"
    # Filters find what was stored, by the text that the user sent.
    assert len((await projection.jobs(wire_name="na\0me")).jobs) == 1
    assert len((await projection.jobs(any_tag=[("ke\0y", "va\0lue")])).jobs) == 1


async def test_the_largest_concurrency_limit_is_kept(projection: Projection) -> None:
    story = Story()
    story.do("set_concurrency_limit", queue="default", limit=MAX_CONCURRENCY_LIMIT)
    await projection.apply(batch_of(story.events))
    assert (await projection.queues())[0].settings.concurrency_limit == MAX_CONCURRENCY_LIMIT


async def test_a_tag_that_comes_again_is_still_one_tag(projection: Projection) -> None:
    story = Story()
    story.enqueue(tags=["la\0bel"])
    story.claim()
    await projection.apply(batch_of(story.events))
    story.report(add_tags=["la\0bel", "new", {"a": "b"}])
    await projection.apply(batch_of(story.events))
    record = await projection.job(JOB)
    assert record is not None
    assert record.tags == ("la␀bel", "new", ("a", "b"))


@pytest.mark.parametrize(
    "text",
    [
        b'"\\u0000"',
        b'{"n":123456789012345678901234567890123456789012345678901234567890}',
        b"[1.10,1e5,-0.0,0]",
        b'"\xf0\x9f\x90\x98 \xe2\x80\xae \\" \\\\ \\n"',
        b'{"":{"":""}}',
        b"null",
        b'"' + b"x" * 60_000 + b'"',
        b"[" * 512 + b"]" * 512,
    ],
    ids=["nul", "huge-number", "floats", "unicode", "empty-names", "null", "long", "deep"],
)
async def test_payload_and_output_are_kept_to_the_letter(projection: Projection, text: bytes) -> None:
    story = Story()
    story.enqueue(payload=loads(text))
    story.claim()
    story.report(output=loads(text))
    for event in story.events:
        # The letters of the engine's own encoder are not the subject here.
        for name in ("payload", "output"):
            if hasattr(event, name):
                setattr(event, name, text)
    await projection.apply(batch_of(story.events))
    record = await projection.job(JOB)
    assert record is not None
    assert (record.payload, record.output) == (text, text)
    [listed] = (await projection.jobs()).jobs
    assert (listed.payload, listed.output) == (text, text)


async def test_texts_of_60_000_characters(projection: Projection) -> None:
    long = "й" * 60_000
    story = Story()
    story.enqueue()
    story.claim()
    [dead] = story.report(outcome="Failure", error="x", failure_detail="y", next_due=None)
    for name in ("error", "failure_detail", "terminal_cause"):
        setattr(dead, name, long)
    await projection.apply(batch_of(story.events))
    record = await projection.job(JOB)
    assert record is not None
    assert record.terminal_cause == long
    step = (await projection.history(JOB))[-1]
    assert (step.error, step.failure_detail, step.terminal_cause) == (long, long, long)


@pytest.mark.parametrize("when", ["0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"])
async def test_the_first_and_the_last_instant(projection: Projection, when: str) -> None:
    story = Story()
    story.enqueue(due_time=when)
    await projection.apply(batch_of(story.events))
    record = await projection.job(JOB)
    assert record is not None
    assert record.due_time == parse_instant(when)


async def test_the_longest_names_fit_the_indices(projection: Projection) -> None:
    story = Story()
    tag: Json = {"𝄞" * 200: "𝄢" * 200}
    story.enqueue("q" * 100 + "/" + "k" * 100, wire_name="𝄞" * 128, tags=[tag])
    await projection.apply(batch_of(story.events))
    page = await projection.jobs(wire_name="𝄞" * 128, any_tag=[("𝄞" * 200, "𝄢" * 200)])
    assert len(page.jobs) == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [("attempt", 2**40), ("attempt", "one"), ("attempt", None), ("wire_name", 7), ("payload", b"{")],
)
async def test_what_fits_no_column_is_refused_whole(
    projection: Projection, tables: Tables, name: str, value: object
) -> None:
    story = Story()
    story.enqueue("default/good")
    [bad] = story.enqueue()
    setattr(bad, name, value)
    with pytest.raises(Unstorable, match="partition 0"):
        await projection.apply(batch_of(story.events))
    assert await tables.rows("SELECT * FROM jobs") == []
    assert await projection.positions() == {}


async def test_an_event_about_an_unknown_job_leaves_its_step_and_no_row(
    projection: Projection, tables: Tables
) -> None:
    story = Story()
    story.enqueue()
    story.claim()
    enqueued, leased = story.events
    assert isinstance(enqueued, Enqueued)
    assert isinstance(leased, Leased)
    leased.sequence = enqueued.sequence
    await projection.apply(Batch(PARTITION, [Happened(0, leased)], 1))
    assert await projection.job(JOB) is None
    assert [step.type for step in await projection.history(JOB)] == ["leased"]
    assert await tables.depths() == []
