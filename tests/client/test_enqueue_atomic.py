"""An atomic batch: all of its commands come into the log or none, and nobody is left in doubt for long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from tests.client.core_engine import PARTITIONS, TOPICS, CoreEngine, ProbedLog, until
from tests.conformance.cluster import read_to_end

from tidelog.client.batch_errors import MAX_ATOMIC_JOBS, BatchIncomplete, BatchTooLarge, BatchUnconfirmed
from tidelog.client.client import Client
from tidelog.client.errors import (
    ClientClosed,
    InvalidCommand,
    PayloadTooLarge,
    ReplyTimeout,
    TooManyParents,
    UnknownParent,
    WireNameTooLong,
)
from tidelog.client.newjob import NewJob
from tidelog.handler.jobs import JobRequest
from tidelog.log.port import Fenced, LogError, LogUnavailable, OutcomeUnknown, UnknownTopic
from tidelog_events.identity import QueueName, partition_of
from tidelog_events.replies import Answer
from tidelog_events.retry import DEFAULT_RETRY
from tidelog_events.states import JobState

QUEUES = ["a", "b", "c", "d", "e"]


def spread(count: int = 10) -> list[NewJob]:
    """Jobs over several queues, which live in several partitions."""
    assert len({partition_of(queue, PARTITIONS) for queue in QUEUES}) > 1
    return [NewJob("x", n, queue=QUEUES[n % 5], key=str(n)) for n in range(count)]


async def test_all_go_in_one_transaction(client: Client, engine: CoreEngine, log: ProbedLog) -> None:
    jobs = spread(200)
    assert await client.enqueue_many(jobs, atomic=True) == [job.job_id for job in jobs]
    assert [len(transaction) for transaction in log.transactions] == [200]
    assert log.appends == []
    assert sorted(engine.job_ids) == sorted(job.job_id for job in jobs)
    assert client.pending == 0


async def test_the_writer_is_opened_once_and_has_little_time(
    client: Client, engine: CoreEngine, log: ProbedLog
) -> None:
    assert log.writers == []
    for job in spread(3):
        await client.enqueue_many([job], atomic=True)
    assert log.writers == [5.0]
    assert len(engine.job_ids) == 3


async def test_nothing_is_nothing(client: Client, log: ProbedLog) -> None:
    assert await client.enqueue_many([], atomic=True) == []
    assert log.transactions == []


async def test_parents_stand_before_their_children(
    client: Client, engine: CoreEngine, log: ProbedLog
) -> None:
    grandparent = NewJob("x", key="grandparent")
    parent = NewJob("x", key="parent", parents=[grandparent.job_id])
    child = NewJob("x", key="child", parents=[parent.job_id, grandparent.job_id])
    plain = JobRequest("send", b"null", QueueName("default"), DEFAULT_RETRY)

    ids = await client.enqueue_many([child, plain, parent, child, grandparent], atomic=True)

    assert ids == [child.job_id, ids[1], parent.job_id, child.job_id, grandparent.job_id]
    assert len(log.transactions) == 1
    record = engine.job(child.job_id)
    assert record is not None
    assert (record.state, record.parents_remaining) == (JobState.AWAITING_PARENT, 2)


@pytest.mark.parametrize(
    ("bad", "error"),
    [
        (lambda: NewJob("x", queue="no queue"), InvalidCommand),
        (lambda: NewJob("x", "p" * 65_536), PayloadTooLarge),
        (lambda: NewJob("w" * 129), WireNameTooLong),
        (lambda: NewJob("x", parents=[f"q/{n}" for n in range(17)]), TooManyParents),
        (lambda: NewJob("x", key="self", parents=["default/self"]), UnknownParent),
    ],
)
async def test_nothing_is_sent_of_a_batch_with_a_bad_job(
    client: Client, log: ProbedLog, bad: Callable[[], NewJob], error: type[Exception]
) -> None:
    with pytest.raises(error):
        await client.enqueue_many([*spread(), bad()], atomic=True)
    with pytest.raises(ValueError, match="same command_id"):
        await client.enqueue_many([NewJob("x", command_id="c"), NewJob("y", command_id="c")], atomic=True)
    assert (log.writers, log.transactions, log.appends) == ([], [], [])


async def test_too_large_a_batch_is_refused(client: Client, log: ProbedLog) -> None:
    plain = JobRequest("send", b"null", QueueName("default"), DEFAULT_RETRY)
    with pytest.raises(BatchTooLarge, match="has 10001 jobs; an atomic one may have at most 10000") as many:
        await client.enqueue_many([plain] * (MAX_ATOMIC_JOBS + 1), atomic=True)
    large = JobRequest("send", b'"%b"' % (b"p" * 65_000), QueueName("default"), DEFAULT_RETRY)
    with pytest.raises(BatchTooLarge, match=r"has 260 jobs of \d+ bytes"):
        await client.enqueue_many([large] * 260, atomic=True)
    assert (many.value.jobs, many.value.size) == (10_001, None)
    assert (log.writers, log.transactions) == ([], [])
    assert client.pending == 0


async def test_an_engine_may_still_refuse_one(client: Client, engine: CoreEngine) -> None:
    good, bad = NewJob("x"), NewJob("x", parents=["default/nobody"])
    with pytest.raises(BatchIncomplete) as caught:
        await client.enqueue_many([bad, good], atomic=True)
    assert isinstance(caught.value.results[0], UnknownParent)
    assert caught.value.results[1] == good.job_id
    assert engine.job_ids == [good.job_id]


@pytest.mark.parametrize("is_appended", [True, False])
async def test_an_unconfirmed_transaction_is_repeated_by_a_new_writer(
    client: Client, engine: CoreEngine, log: ProbedLog, is_appended: bool
) -> None:
    log.failures = [(OutcomeUnknown("no answer from the log"), is_appended)]
    jobs = spread()
    assert await client.enqueue_many(jobs, atomic=True) == [job.job_id for job in jobs]
    assert sorted(engine.job_ids) == sorted(job.job_id for job in jobs)
    assert log.closed_writers == len(log.writers) - 1


@pytest.mark.parametrize("failure", [LogUnavailable("away"), Fenced("its transaction took too long")])
async def test_what_is_certain_to_have_failed_is_repeated(
    client: Client, engine: CoreEngine, log: ProbedLog, failure: LogError
) -> None:
    log.failures = [(failure, False)] * 2
    await client.enqueue_many(spread(), atomic=True)
    assert len(engine.commands) == 10


async def test_an_outcome_that_stays_unknown_is_said_and_may_be_repeated(
    client: Client, log: ProbedLog
) -> None:
    log.failures = [(OutcomeUnknown("no answer"), True), *[(LogUnavailable("away"), False)] * 50]
    jobs = spread()
    with pytest.raises(BatchUnconfirmed, match=r"a batch of 11 jobs .* all of them or none") as caught:
        await client.enqueue_many([*jobs, jobs[0]], atomic=True, timeout=0.4)  # there is no engine
    assert caught.value.jobs == (*jobs, jobs[0])
    assert client.pending == 0

    log.failures = []
    with pytest.raises(BatchIncomplete):
        await client.enqueue_many(caught.value.jobs, atomic=True, timeout=0.3)


async def test_answers_show_that_a_transaction_stands(
    client: Client, engine: CoreEngine, log: ProbedLog
) -> None:
    log.failures = [(OutcomeUnknown("no answer"), True), *[(LogUnavailable("away"), False)] * 50]
    jobs = spread()
    assert await client.enqueue_many(jobs, atomic=True) == [job.job_id for job in jobs]
    assert len(engine.commands) == 10


async def test_what_is_unconfirmed_is_held_as_it_was_sent(client: Client, log: ProbedLog) -> None:
    """Descriptions too, whose ids were minted on the way: to enqueue them again makes no other jobs."""
    log.failures = [(OutcomeUnknown("no answer"), True), *[(LogUnavailable("away"), False)] * 50]
    plain = JobRequest("send", b"null", QueueName("default"), DEFAULT_RETRY)
    with pytest.raises(BatchUnconfirmed) as caught:
        await client.enqueue_many(
            [plain, NewJob("x", parents=["default/p"]), plain], atomic=True, timeout=0.1
        )
    commands = [await read_to_end(log, TOPICS.commands, number) for number in range(PARTITIONS)]
    sent = {record.value for records in commands for record in records}
    assert len(sent) == 3
    assert {job.encoded(client.client_id) for job in caught.value.jobs} == sent


async def test_without_a_log_nothing_was_sent(client: Client, log: ProbedLog) -> None:
    log.failures = [(LogUnavailable("away"), False)] * 50
    with pytest.raises(LogUnavailable, match="away"):
        await client.enqueue_many(spread(), atomic=True, timeout=0.1)
    log.failures = [(UnknownTopic("The log has no topic"), False)]
    with pytest.raises(UnknownTopic):
        await client.enqueue_many(spread(), atomic=True)
    assert client.pending == 0


async def test_a_lost_answer_is_asked_for_again_without_a_transaction(
    client: Client, engine: CoreEngine, log: ProbedLog
) -> None:
    answers: list[Answer] = []

    def is_the_first(answer: Answer) -> bool:
        answers.append(answer)
        return len(answers) == 1

    engine.loses = is_the_first
    ids = await client.enqueue_many(spread(), atomic=True, timeout=0.5)
    assert len(ids) == 10
    assert (len(log.transactions), log.appends) == (1, [1])


async def test_silence_after_the_commit_is_told_job_by_job(client: Client) -> None:
    with pytest.raises(BatchIncomplete) as caught:  # there is no engine
        await client.enqueue_many(spread(2), atomic=True, timeout=0.3)
    assert [type(result) for result in caught.value.results] == [ReplyTimeout, ReplyTimeout]


async def test_a_cancelled_call_does_not_leave_a_transaction_open(
    client: Client, engine: CoreEngine, log: ProbedLog
) -> None:
    log.gate.clear()
    enqueueing = asyncio.create_task(client.enqueue_many(spread(), atomic=True))
    await until(lambda: len(log.transactions) == 1)
    waiting = asyncio.create_task(client.enqueue_many([NewJob("x", key="second")], atomic=True))
    await until(lambda: client.pending == 11)
    for task in (enqueueing, waiting):
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert client.pending == 0
    log.gate.set()

    await client.enqueue_many([NewJob("x", key="third")], atomic=True)
    assert [len(transaction) for transaction in log.transactions] == [10, 1]
    assert len(engine.job_ids) == 11
    assert "default/second" not in engine.job_ids


async def test_close_lets_a_transaction_end(log: ProbedLog, engine: CoreEngine) -> None:
    async with Client.open(log, TOPICS) as client:
        log.gate.clear()
        enqueueing = asyncio.create_task(client.enqueue_many(spread(), atomic=True))
        await until(lambda: len(log.transactions) == 1)
        log.gate.set()
    with pytest.raises(ClientClosed, match="waited for its answer"):
        await enqueueing
    with pytest.raises(ClientClosed, match="was not sent"):
        await client.enqueue_many(spread(1), atomic=True)
    await until(lambda: len(engine.job_ids) == 10)
    assert log.closed_writers == 1
