"""What each table holds after a life, seen by plain SQL (contract section 10)."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.projection.story import START, Story, batch_of
from tests.projection.tables import Tables

from tidelog_events.identity import JobId
from tidelog_events.instants import SECOND, Instant
from tidelog_events.states import JobState
from tidelog_projections.projection import Projection

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


async def test_a_new_job_has_every_field_of_the_record(projection: Projection, tables: Tables) -> None:
    story = Story()
    story.enqueue(
        payload={"order": 42},
        due_time="2026-01-01T12:00:00Z",
        tags=["red", {"tenant": "acme"}],
        retry={"max_attempts": 3, "delays": [1, 5]},
        trace_context="00-trace",
        workflow_id="flow",
        schedule_id="default/nightly",
    )
    await projection.apply(batch_of(story.events))

    [row] = await tables.rows("SELECT *, payload::text, retry::text FROM jobs")
    assert {
        name: row[name] for name in ("job_id", "queue", "wire_name", "state", "state_ordinal", "mode")
    } == {
        "job_id": "default/job",
        "queue": "default",
        "wire_name": "work",
        "state": "Scheduled",
        "state_ordinal": 0,
        "mode": "OnSuccess",
    }
    assert (row["attempt"], row["returned"], row["parents_remaining"], row["cancel_requested"]) == (
        0,
        0,
        0,
        False,
    )
    assert (row["payload"], row["output"]) == ('{"order":42}', None)
    assert row["retry"] == '{"max_attempts":3,"delays":[1,5]}'
    assert row["due_time"] == NOON
    assert row["enqueued_at"] == row["updated_at"] == datetime(2026, 1, 1, tzinfo=UTC)
    assert (row["trace_context"], row["workflow_id"], row["schedule_id"]) == (
        "00-trace",
        "flow",
        "default/nightly",
    )
    assert (row["partition"], row["enqueue_sequence"], row["sequence"]) == (0, 0, 0)
    assert row["lease_owner"] is row["lease_expiry"] is row["terminal_at"] is row["terminal_cause"] is None
    assert await tables.rows("SELECT * FROM job_tags ORDER BY position") == [
        {"job_id": "default/job", "position": 0, "key": "red", "value": None},
        {"job_id": "default/job", "position": 1, "key": "tenant", "value": "acme"},
    ]


async def test_the_record_read_back_is_the_record_of_the_engine(projection: Projection) -> None:
    story = Story()
    story.enqueue(payload=[1, {"b": None}], tags=["red"])
    story.claim()
    story.report(output={"done": True}, add_tags=[{"host": "a"}, "red"])
    await projection.apply(batch_of(story.events))

    record = await projection.job(JobId("default/job"))
    assert record is not None
    engine = story.state.jobs[JobId("default/job")]
    for name in type(record).__slots__:
        assert getattr(record, name) == getattr(engine, name), name
    assert record.tags == ("red", ("host", "a"))
    assert (record.payload, record.output) == (b'[1,{"b":null}]', b'{"done":true}')


async def test_a_job_that_never_was_is_none(projection: Projection) -> None:
    assert await projection.job(JobId("default/none")) is None
    assert await projection.history(JobId("default/none")) == []
    assert await projection.job(JobId("default/nul\0")) is None


async def test_a_lease_stands_in_the_row_and_is_renewed(projection: Projection, tables: Tables) -> None:
    story = Story()
    story.enqueue()
    story.claim()
    story.pass_time(10)
    story.do(
        "heartbeat",
        worker_id="worker-1",
        leases=[{"job_id": "default/job", "attempt": 1}],
        lease_seconds=600,
    )
    await projection.apply(batch_of(story.events))
    [row] = await tables.rows("SELECT state, lease_owner, lease_expiry, sequence FROM jobs")
    assert row == {
        "state": "Leased",
        "lease_owner": "worker-1",
        "lease_expiry": datetime(2026, 1, 1, 0, 10, 10, tzinfo=UTC),
        "sequence": 2,
    }


async def test_the_history_has_the_steps_and_what_each_says(projection: Projection) -> None:
    story = Story()
    story.enqueue(retry={"max_attempts": 2, "delays": [5]})
    story.claim()
    story.report(outcome="Failure", error="no paper", failure_detail="Traceback")
    story.pass_time(5)
    story.claim()
    story.report(outcome="Failure", error="no ink")
    story.do("requeue", job_id="default/job", actor="ann")
    await projection.apply(batch_of(story.events))

    steps = await projection.history(JobId("default/job"))
    assert [(step.ordinal, step.type, step.state, step.attempt) for step in steps] == [
        (0, "enqueued", JobState.SCHEDULED, 0),
        (1, "leased", JobState.LEASED, 1),
        (2, "retry_scheduled", JobState.SCHEDULED, 1),
        (3, "leased", JobState.LEASED, 2),
        (4, "dead_lettered", JobState.DEAD_LETTERED, 2),
        (5, "requeued", JobState.SCHEDULED, 0),
    ]
    assert steps[1].lease_expiry == START + 600 * SECOND
    assert (steps[2].error, steps[2].failure_detail, steps[2].worker_id) == (
        "no paper",
        "Traceback",
        "worker-1",
    )
    assert steps[2].due_time == START + 5 * SECOND
    assert (steps[4].error, steps[4].terminal_cause, steps[4].at) == (
        "no ink",
        "no ink",
        Instant(START + 5 * SECOND),
    )
    assert (steps[5].actor, steps[5].sequence) == ("ann", 5)


async def test_dependencies_keep_the_order_in_which_they_were_named(
    projection: Projection, tables: Tables
) -> None:
    story = Story()
    story.enqueue("default/b")
    story.enqueue("default/a")
    story.enqueue("default/child", parents=["default/b", "default/a", "default/b"])
    await projection.apply(batch_of(story.events))
    assert await tables.rows("SELECT * FROM job_dependencies ORDER BY position") == [
        {"job_id": "default/child", "parent_id": "default/b", "position": 0},
        {"job_id": "default/child", "parent_id": "default/a", "position": 1},
    ]
    [child] = await tables.rows(
        "SELECT state, state_ordinal, parents_remaining FROM jobs WHERE job_id = $1", "default/child"
    )
    assert child == {"state": "AwaitingParent", "state_ordinal": 1, "parents_remaining": 2}


async def test_queues_and_their_settings(projection: Projection) -> None:
    story = Story()
    story.enqueue()
    story.do("pause_queue", queue="billing", actor="ann")
    story.do("set_concurrency_limit", queue="billing", limit=7)
    await projection.apply(batch_of(story.events))

    billing, default = await projection.queues()
    assert (default.settings.queue, default.settings.paused, default.settings.concurrency_limit) == (
        "default",
        False,
        None,
    )
    assert default.depths[JobState.SCHEDULED] == 1
    assert sum(default.depths.values()) == 1
    settings = billing.settings
    assert (settings.paused, settings.paused_by, settings.paused_at) == (True, "ann", START)
    assert (settings.concurrency_limit, settings.sequence) == (7, 2)
    assert set(billing.depths.values()) == {0}

    story.do("resume_queue", queue="billing")
    story.do("set_concurrency_limit", queue="billing", limit=None)
    await projection.apply(batch_of(story.events))
    settings = (await projection.queues())[0].settings
    assert (settings.paused, settings.paused_by, settings.paused_at, settings.concurrency_limit) == (
        False,
        None,
        None,
        None,
    )


async def test_depths_are_those_that_one_would_count(projection: Projection, tables: Tables) -> None:
    story = Story()
    for number in range(5):
        story.enqueue(f"default/job-{number}")
    story.enqueue("other/job", parents=["default/job-4"])
    await projection.apply(batch_of(story.events))
    assert await tables.depths() == await tables.counted_depths()
    seen = len(story.events)
    story.claim(max_jobs=3)
    story.report("default/job-0")
    story.report("default/job-1", "Failure", error="no", next_due=None)
    story.do("cancel", job_id="default/job-4")
    await projection.apply(batch_of(story.events[seen:]))
    assert await tables.depths() == await tables.counted_depths()
    assert {"queue": "other", "state": "AwaitingParent", "count": 1} not in await tables.depths()


async def test_the_audit_names_who_asked_for_what(projection: Projection, tables: Tables) -> None:
    story = Story()
    for name in ("asked", "running", "told", "dead", "parent"):
        story.enqueue(f"default/{name}")
    story.enqueue("default/child", parents=["default/parent"])
    story.do("cancel", job_id="default/asked", actor="ann")
    story.do("cancel", job_id="default/parent")
    story.claim(max_jobs=3)
    story.do("cancel", job_id="default/running", actor="bob")
    story.report("default/running", "Cancelled", cause="bob")
    story.report("default/told", "Cancelled", cause="the worker's own")
    story.report("default/dead", "Failure", error="no", next_due=None)
    story.do("requeue", job_id="default/dead", actor="cleo")
    story.do("pause_queue", queue="default", actor="dan")
    story.do("pause_queue", queue="default", actor="dan")
    story.do("resume_queue", queue="default")
    story.do("set_concurrency_limit", queue="default", limit=3, actor="eve")
    await projection.apply(batch_of(story.events))
    rows = await tables.rows("SELECT actor, action, target FROM audit ORDER BY sequence")
    assert [tuple(row.values()) for row in rows] == [
        ("ann", "cancel", "default/asked"),
        (None, "cancel", "default/parent"),
        ("bob", "cancel", "default/running"),
        ("cleo", "requeue", "default/dead"),
        ("dan", "pause_queue", "default"),
        ("dan", "pause_queue", "default"),
        (None, "resume_queue", "default"),
        ("eve", "set_concurrency_limit", "default"),
    ]


async def test_an_actor_may_be_called_as_a_failed_parent_is(projection: Projection, tables: Tables) -> None:
    story = Story()
    story.enqueue()
    story.do("cancel", job_id="default/job", actor="parent-failure:Cancelled")
    await projection.apply(batch_of(story.events))
    assert await tables.rows("SELECT actor, action FROM audit") == [
        {"actor": "parent-failure:Cancelled", "action": "cancel"}
    ]
