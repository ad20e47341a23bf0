"""Cancel, requeue and the controls of queues: each result of the contract is a value or an exception."""

from __future__ import annotations

import pytest
from tests.client.core_engine import PARTITIONS, CoreEngine

from tidelog.client.client import Client
from tidelog.client.errors import InvalidCommand, NotCancellable, NotRequeueable
from tidelog.core.decide import decide
from tidelog_events.commands import Claim, Failure, Report, SetConcurrencyLimit
from tidelog_events.identity import JobId, QueueName, WorkerId, partition_of, queue_of
from tidelog_events.replies import Result
from tidelog_events.states import JobState

WORKER = WorkerId("w")


def lease(engine: CoreEngine, job_id: JobId) -> None:
    """Let a worker have the job."""
    state = engine.states[partition_of(queue_of(job_id), PARTITIONS)]
    decide(state, Claim(worker_id=WORKER, queue=queue_of(job_id)), state.now, (1_000,))


def fail(engine: CoreEngine, job_id: JobId) -> None:
    """Let the worker report a failure without another try."""
    state = engine.states[partition_of(queue_of(job_id), PARTITIONS)]
    outcome = Failure(job_id=job_id, attempt=1, error="boom", next_due=None)
    decide(state, Report(worker_id=WORKER, outcomes=[outcome]), state.now, (1_001,))


def state_of(engine: CoreEngine, job_id: JobId) -> JobState:
    record = engine.job(job_id)
    if record is None:
        raise LookupError(job_id)
    return record.state


async def test_cancels_what_waits_at_once_in_the_name_of_the_actor(
    client: Client, engine: CoreEngine
) -> None:
    job_id = await client.enqueue("x")

    assert await client.cancel(job_id, actor="ann") is Result.CANCELLED_IMMEDIATELY
    record = engine.job(job_id)
    assert record is not None
    assert (record.state, record.terminal_cause) == (JobState.CANCELLED, "ann")
    with pytest.raises(NotCancellable, match=job_id):
        await client.cancel(job_id)


async def test_asks_the_worker_of_what_runs(client: Client, engine: CoreEngine) -> None:
    job_id = await client.enqueue("x")
    lease(engine, job_id)

    assert await client.cancel(job_id) is Result.CANCELLATION_REQUESTED
    assert state_of(engine, job_id) is JobState.LEASED


async def test_requeues_what_is_dead(client: Client, engine: CoreEngine) -> None:
    job_id = await client.enqueue("x")
    with pytest.raises(NotRequeueable, match=job_id):
        await client.requeue(job_id)
    lease(engine, job_id)
    fail(engine, job_id)
    assert state_of(engine, job_id) is JobState.DEAD_LETTERED

    await client.requeue(job_id, actor="ann")
    assert state_of(engine, job_id) is JobState.SCHEDULED


async def test_controls_queues(client: Client, engine: CoreEngine) -> None:
    def settings() -> tuple[bool, int | None]:
        queue = engine.states[partition_of("billing", PARTITIONS)].queue(QueueName("billing"))
        return queue.paused, queue.limit

    await client.pause_queue("billing", actor="ann")
    assert settings() == (True, None)
    await client.resume_queue("billing")
    assert settings() == (False, None)
    await client.set_concurrency_limit("billing", 3)
    assert settings() == (False, 3)
    await client.set_concurrency_limit("billing", None, actor="ann", command_id="c-9")
    assert settings() == (False, None)
    last = engine.commands[-1]
    assert isinstance(last, SetConcurrencyLimit)
    assert (last.actor, last.command_id) == ("ann", "c-9")


async def test_names_the_field_that_is_wrong(client: Client) -> None:
    for call, field in (
        (client.cancel("no id"), "job_id"),
        (client.requeue("/k"), "job_id"),
        (client.get("q/"), "job_id"),
        (client.wait("q"), "job_id"),
        (client.pause_queue("a b"), "queue"),
        (client.resume_queue(""), "queue"),
        (client.set_concurrency_limit("q", 0), "limit"),
        (client.cancel("q/k", actor="a" * 201), "actor"),
        (client.cancel("q/k", command_id="c" * 101), "command_id"),
    ):
        with pytest.raises(InvalidCommand) as caught:
            await call
        assert caught.value.field == field
