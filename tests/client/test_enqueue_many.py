"""Enqueueing a batch: one round trip per generation, results in order, and no doubt about what happened."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from tests.client.core_engine import CoreEngine, ProbedLog, until

from tidelog.client.batch_errors import BatchIncomplete, NotSent
from tidelog.client.client import Client
from tidelog.client.errors import (
    CommandRefused,
    InvalidCommand,
    PayloadTooLarge,
    ReplyTimeout,
    UnknownParent,
    WireNameTooLong,
)
from tidelog.client.generations import generations
from tidelog.client.newjob import NewJob
from tidelog.handler.jobs import JobRequest
from tidelog.log.port import LogUnavailable, OutcomeUnknown
from tidelog_events.commands import Enqueue
from tidelog_events.identity import JobId, QueueName
from tidelog_events.replies import EnqueueReply
from tidelog_events.retry import DEFAULT_RETRY
from tidelog_events.states import JobState

DESCRIPTION = JobRequest("send", b"null", QueueName("billing"), DEFAULT_RETRY)


def keyed(*keys: str) -> list[NewJob]:
    return [NewJob("x", key=key) for key in keys]


async def test_ids_come_back_in_input_order_in_one_append(
    client: Client, engine: CoreEngine, log: ProbedLog
) -> None:
    queues = ["a", "b", "c", "d", "e"]
    jobs = [NewJob("x", n, queue=queues[n % 5], key=str(n)) for n in range(200)]

    assert await client.enqueue_many(jobs) == [job.job_id for job in jobs]
    assert log.appends == [200]
    assert sorted(engine.job_ids) == sorted(job.job_id for job in jobs)
    assert client.pending == 0


async def test_takes_plain_descriptions(client: Client, engine: CoreEngine) -> None:
    ids = await client.enqueue_many([DESCRIPTION, DESCRIPTION])

    assert len(set(ids)) == 2
    assert engine.job_ids == ids


async def test_nothing_is_nothing(client: Client, log: ProbedLog) -> None:
    assert await client.enqueue_many([]) == []
    assert log.appends == []


async def test_duplicates_inside_and_across_calls_return_the_id(client: Client, engine: CoreEngine) -> None:
    expected = ["default/K", "default/K", "default/L", "default/K"]
    assert await client.enqueue_many(keyed("K", "K", "L", "K")) == expected
    assert await client.enqueue_many(keyed("K", "K", "L", "K")) == expected
    assert engine.job_ids == ["default/K", "default/L"]


async def test_parents_of_the_batch_go_first(client: Client, engine: CoreEngine, log: ProbedLog) -> None:
    grandparent = NewJob("x", key="grandparent", queue="c")
    parent = NewJob("x", key="parent", queue="c", parents=[grandparent.job_id])
    child = NewJob("x", key="child", queue="c", parents=[parent.job_id, grandparent.job_id])
    other = NewJob("x", key="other")

    ids = await client.enqueue_many([child, parent, other, grandparent])

    assert ids == [child.job_id, parent.job_id, other.job_id, grandparent.job_id]
    assert log.appends == [2, 1, 1]
    record = engine.job(child.job_id)
    assert record is not None
    assert (record.state, record.parents_remaining) == (JobState.AWAITING_PARENT, 2)


async def test_a_circle_is_refused_before_anything_is_sent(client: Client, log: ProbedLog) -> None:
    a = NewJob("x", key="a", parents=["default/b"])
    b = NewJob("x", key="b", parents=["default/a"])
    below = NewJob("x", key="below", parents=["default/a"])
    with pytest.raises(UnknownParent, match=r"wait for each other\. Nothing was sent"):
        await client.enqueue_many([below, a, b])
    with pytest.raises(UnknownParent):
        await client.enqueue_many([NewJob("x", key="self", parents=["default/self"])])
    assert log.appends == []


async def test_a_refused_job_costs_the_others_nothing(client: Client, engine: CoreEngine) -> None:
    good, bad = NewJob("x"), NewJob("x", parents=["default/nobody"])
    child = NewJob("x", parents=[bad.job_id])
    with pytest.raises(BatchIncomplete, match="2 of 3 jobs") as caught:
        await client.enqueue_many([bad, good, child])

    results = caught.value.results
    assert isinstance(results[0], UnknownParent)
    assert results[1] == good.job_id
    assert isinstance(results[2], UnknownParent)
    assert engine.job_ids == [good.job_id]


async def test_an_unanswered_parent_holds_back_its_generation(
    client: Client, engine: CoreEngine, log: ProbedLog
) -> None:
    engine.loses = lambda answer: isinstance(answer, EnqueueReply) and answer.job_id == "default/a"
    a, b = keyed("a", "b")
    child = NewJob("x", key="child", parents=[b.job_id])
    with pytest.raises(BatchIncomplete) as caught:
        await client.enqueue_many([child, a, b], timeout=0.2)

    held, unanswered, answered = caught.value.results
    assert isinstance(held, NotSent)
    assert isinstance(unanswered, ReplyTimeout)
    assert unanswered.job_id == a.job_id
    assert answered == b.job_id
    assert log.appends == [2, 1]  # what had no answer was sent once more, alone

    engine.loses = lambda _: False
    assert await client.enqueue_many([child, a, b]) == [child.job_id, a.job_id, b.job_id]


async def test_without_a_log_nothing_was_sent(client: Client, log: ProbedLog) -> None:
    log.failures = [(LogUnavailable("away"), False)] * 50
    with pytest.raises(LogUnavailable, match="away"):
        await client.enqueue_many(keyed("a", "b"), timeout=0.1)
    assert client.pending == 0


async def test_command_ids_must_differ(client: Client) -> None:
    with pytest.raises(ValueError, match="same command_id"):
        await client.enqueue_many([NewJob("x", command_id="c"), NewJob("y", command_id="c")])


async def test_a_large_batch_goes_out_in_portions(client: Client, engine: CoreEngine, log: ProbedLog) -> None:
    ids = await client.enqueue_many([NewJob("x", queue=f"q{n % 7}") for n in range(2_500)])

    assert len(set(ids)) == 2_500
    assert log.appends == [250, 500, 1_000, 750]  # the first one small, so that engines begin early
    assert len(engine.commands) == 2_500


async def test_the_first_are_on_their_way_before_the_last_are_written(
    client: Client, engine: CoreEngine, log: ProbedLog
) -> None:
    log.gate.clear()
    enqueueing = asyncio.create_task(client.enqueue_many([DESCRIPTION] * 3_000))
    await until(lambda: log.appends == [250])
    assert 250 <= client.pending < 3_000
    log.gate.set()

    ids = await enqueueing
    assert engine.job_ids == ids
    assert len(set(ids)) == 3_000


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (replace(DESCRIPTION, payload=b'"%b"' % (b"p" * 65_536)), PayloadTooLarge),
        (replace(DESCRIPTION, wire_name="w" * 129), WireNameTooLong),
        (replace(DESCRIPTION, queue=QueueName("no queue")), InvalidCommand),
    ],
)
async def test_all_are_checked_before_the_first_is_sent(
    client: Client, log: ProbedLog, bad: JobRequest, error: type[CommandRefused]
) -> None:
    with pytest.raises(error):
        await client.enqueue_many([*[DESCRIPTION] * 1_000, bad])
    assert log.appends == []
    assert client.pending == 0


async def test_an_outage_in_the_middle_loses_none(client: Client, engine: CoreEngine, log: ProbedLog) -> None:
    log.failures = [(OutcomeUnknown("no answer"), True), *[(LogUnavailable("away"), False)] * 3]
    ids = await client.enqueue_many([DESCRIPTION] * 2_000, timeout=0.5)

    assert sorted(engine.job_ids) == sorted(ids)
    assert len(ids) == 2_000


async def test_portions_are_bounded_in_bytes_too(client: Client, engine: CoreEngine, log: ProbedLog) -> None:
    await client.enqueue_many([NewJob("x", "p" * 60_000) for _ in range(100)])
    assert sum(log.appends) == 100
    assert len(log.appends) == 2
    assert all(isinstance(command, Enqueue) for command in engine.commands)


def test_a_long_chain_is_ordered_without_recursion() -> None:
    chain: dict[JobId, NewJob] = {}
    parents: list[str] = []
    for n in range(5_000):
        job = NewJob("x", key=f"{n}", parents=parents)
        parents = [job.job_id]
        chain[job.job_id] = job

    ordered = generations(dict(reversed(chain.items())))
    assert [[job.job_id for job in generation] for generation in ordered] == [[job_id] for job_id in chain]
