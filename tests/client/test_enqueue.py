"""Enqueueing one job: what is said arrives, what is wrong is named, what is repeated is the same job."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from tests.client.core_engine import CoreEngine, ProbedLog

from tidelog.app import App
from tidelog.client.client import Client
from tidelog.client.errors import (
    CommandRefused,
    InvalidCommand,
    PayloadTooLarge,
    TooManyParents,
    UnknownParent,
    WireNameTooLong,
)
from tidelog.client.newjob import NewJob
from tidelog.handler.jobs import JobRequest, Retry
from tidelog_events.identity import JobId, QueueName
from tidelog_events.instants import from_datetime
from tidelog_events.record import JobRecord
from tidelog_events.retry import DEFAULT_RETRY, RetryPolicy
from tidelog_events.states import DependencyMode, JobState


def job_of(engine: CoreEngine, job_id: str) -> JobRecord:
    record = engine.job(JobId(job_id))
    if record is None:
        raise LookupError(job_id)
    return record


async def test_returns_an_id_of_the_default_queue_with_a_minted_key(
    client: Client, engine: CoreEngine
) -> None:
    job_id = await client.enqueue("resize", {"w": 80})

    queue, _, key = job_id.partition("/")
    assert queue == "default"
    assert len(key) == 32
    assert key[12] == "7"
    record = job_of(engine, job_id)
    assert (record.wire_name, record.payload, record.state) == ("resize", b'{"w":80}', JobState.SCHEDULED)
    assert client.pending == 0


async def test_carries_everything_that_is_said(client: Client, engine: CoreEngine) -> None:
    parent = await client.enqueue("parent", key="p", queue="other")
    due = datetime(2031, 5, 6, 7, 8, 9, 10, tzinfo=timezone(timedelta(hours=2)))
    job_id = await client.enqueue(
        JobRequest("send", b"[1]", QueueName("billing"), RetryPolicy(3)),
        queue="other",
        key="invoice-42",
        due=due,
        parents=[parent, parent],
        mode="OnAnyTerminal",
        tags=["urgent", ("customer", "42"), {"region": "eu"}, "urgent"],
        retry=Retry(max_attempts=5, delays=[1, 2.5]),
        trace_context="00-abc",
        workflow_id="wf",
        actor="ann",
        command_id="c-1",
    )

    assert job_id == "other/invoice-42"
    record = job_of(engine, job_id)
    assert record.due_time == from_datetime(due)
    assert record.mode is DependencyMode.ON_ANY_TERMINAL
    assert record.parents_remaining == 1
    assert record.tags == ("urgent", ("customer", "42"), ("region", "eu"))
    assert record.retry == Retry(5, [1, 2.5]).policy
    assert (record.trace_context, record.workflow_id) == ("00-abc", "wf")
    assert engine.commands[-1].command_id == "c-1"


async def test_a_description_says_queue_and_retry(client: Client, engine: CoreEngine) -> None:
    description = JobRequest("send", b'{"a":1}', QueueName("billing"), RetryPolicy(3))
    job_id = await client.enqueue(description)

    assert job_id.startswith("billing/")
    assert job_of(engine, job_id).retry == RetryPolicy(3)
    assert job_of(engine, await client.enqueue("x")).retry == DEFAULT_RETRY


async def test_delay_counts_from_now(client: Client, engine: CoreEngine) -> None:
    before = datetime.now(UTC)
    job_id = await client.enqueue("x", delay=60.5)
    after = datetime.now(UTC)

    delay = timedelta(seconds=60.5)
    same = await client.enqueue("x", delay=delay)
    assert from_datetime(before + delay) <= job_of(engine, same).due_time
    assert from_datetime(before + delay) <= job_of(engine, job_id).due_time <= from_datetime(after + delay)


@pytest.mark.parametrize(
    ("delay", "due", "named"),
    [
        (1, datetime.now(UTC), "delay .* and due .* exclude each other"),
        (-1, None, "delay is -1 s"),
        (float("nan"), None, "delay is nan s"),
        (None, datetime(2030, 1, 1), "due: .* no time zone"),  # noqa: DTZ001 - the very thing that is refused
    ],
)
async def test_refuses_times_that_would_have_to_be_guessed(
    client: Client, delay: float | None, due: datetime | None, named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        await client.enqueue("x", delay=delay, due=due)


async def test_a_known_job_is_no_error(client: Client, engine: CoreEngine) -> None:
    first = await client.enqueue("x", 1, key="k")
    again = await client.enqueue("x", 2, key="k")

    assert first == again == "default/k"
    assert engine.job_ids == ["default/k"]
    assert job_of(engine, first).payload == b"1"


async def test_a_new_job_may_be_sent_again(client: Client, engine: CoreEngine) -> None:
    new = NewJob("x", {"n": 1})
    assert await client.enqueue(new) == await client.enqueue(new) == new.job_id
    assert engine.job_ids == [new.job_id]
    with pytest.raises(ValueError, match="says everything already"):
        await client.enqueue(new, key="other")


async def test_a_description_takes_no_other_payload(client: Client) -> None:
    description = JobRequest("send", b"null", QueueName("billing"), DEFAULT_RETRY)
    with pytest.raises(ValueError, match="'send' is described with its payload"):
        await client.enqueue(description, {"a": 1})


async def test_what_describes_no_job_is_told_apart(client: Client) -> None:
    app = App()

    @app.job("greet")
    def greet() -> dict[str, str]:
        return {}

    slips: list[tuple[Any, str]] = [
        (greet, r"<job 'greet' on default> is a handler; .* by its \.job\(\.\.\.\)"),
        (greet(), r"\{\} describes no job\. Give what handler\.job\(\.\.\.\) returns"),
    ]
    for slip, message in slips:
        with pytest.raises(TypeError, match=message):
            await client.enqueue(slip)
        with pytest.raises(TypeError, match=message):
            await client.enqueue_many([slip])
        with pytest.raises(TypeError, match=message):
            app.schedule("default/greetings", "0 3 * * *", slip)
    with pytest.raises(TypeError, match=r"retry is 3; write Retry\(max_attempts="):
        await client.enqueue(greet.job(), retry=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda: NewJob("x", "a" * 65_535), PayloadTooLarge, "65537 bytes .* 65536"),
        (lambda: NewJob("w" * 129), WireNameTooLong, "129 characters; at most 128"),
        (lambda: NewJob("x", parents=[f"q/{n}" for n in range(17)]), TooManyParents, "17 .* 16"),
        (lambda: NewJob(""), InvalidCommand, "wire_name"),
        (lambda: NewJob("x", queue=""), InvalidCommand, "queue '' is no queue name"),
        (lambda: NewJob("x", key="a b"), InvalidCommand, "key 'a b' must be 1 to 100 characters"),
        (lambda: NewJob("x", float("nan")), InvalidCommand, "payload is not a JSON value"),
        (lambda: NewJob("x", object()), InvalidCommand, "payload is not a JSON value"),
        (lambda: NewJob("x", "\ud800"), InvalidCommand, "payload is not a JSON value"),
        (lambda: NewJob("x", parents=["no-id"]), InvalidCommand, r"parents\[0\]"),
        (lambda: NewJob("x", tags=["t" * 201]), InvalidCommand, r"tags\[0\] has a text of 201 characters"),
        (lambda: NewJob("x", parents="q/1"), InvalidCommand, r"parents is 'q/1', and must be a list"),
        (lambda: NewJob("x", tags="urgent"), InvalidCommand, r"must be a list: \['urgent'\]"),
        (lambda: NewJob("x", tags={"a": "b"}), InvalidCommand, "must be a list"),  # type: ignore[arg-type]
        (lambda: NewJob("x", actor="a" * 201), InvalidCommand, "actor"),
        (lambda: NewJob("x", mode="Sometimes"), InvalidCommand, "mode"),
        (lambda: NewJob("x", trace_context="t" * 451), InvalidCommand, "trace_context"),
    ],
)
def test_what_can_be_known_here_is_refused_here(
    build: Callable[[], NewJob], error: type[CommandRefused], message: str
) -> None:
    with pytest.raises(error, match=message):
        build()


def test_exactly_the_bound_is_accepted() -> None:
    NewJob("x", "a" * 65_534)
    NewJob("w" * 128)
    NewJob("x", parents=[f"q/{n % 16}" for n in range(40)])


def test_a_payload_is_measured_as_engines_write_it() -> None:
    numbers = [1e16] * 10_922  # "1e+16," in Python's spelling: over the bound; "1e16," in the engines': not
    assert NewJob("x", numbers).payload_size <= 65_536


async def test_an_engine_refuses_an_unknown_parent(client: Client, engine: CoreEngine) -> None:
    with pytest.raises(UnknownParent, match=r"default/child was not enqueued.*default/nobody"):
        await client.enqueue("x", key="child", parents=["default/nobody"])
    assert engine.job_ids == []
    assert client.pending == 0


async def test_an_engine_names_the_field_that_it_refuses(client: Client, engine: CoreEngine) -> None:
    nested: list[object] = []
    for _ in range(600):
        nested = [nested]
    with pytest.raises(InvalidCommand, match=r"payload .*512 levels") as caught:
        await client.enqueue("x", nested)
    assert caught.value.field == "payload"
    assert engine.job_ids == []


async def test_send_returns_once_the_log_has_the_command(client: Client, log: ProbedLog) -> None:
    job_id = await client.send("x", {"n": 1}, key="k")  # there is no engine

    assert job_id == "default/k"
    assert log.appends == [1]
    assert client.pending == 0


async def test_what_was_sent_is_decided(client: Client, engine: CoreEngine) -> None:
    job_id = await client.send("x")
    await client.enqueue("after")  # same queue: the log keeps the order

    assert engine.job_ids[0] == job_id
    assert engine.commands[0].reply_to is None
