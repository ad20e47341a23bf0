"""Lost answers, a slow log, cancelled calls, a closed client: nothing is doubled and nothing hangs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest
from tests.client.core_engine import PARTITIONS, TOPICS, CoreEngine, ProbedLog, until

from tidelog.client.client import Client
from tidelog.client.errors import ClientClosed, ReplyTimeout, SendUnconfirmed
from tidelog.client.newjob import NewJob
from tidelog.log.port import LogError, LogUnavailable, OutcomeUnknown, UnknownTopic
from tidelog_events.identity import partition_of
from tidelog_events.replies import Answer


def losing(count: int) -> Callable[[Answer], bool]:
    """Lose so many answers, and no more."""
    lost = iter(range(count))
    return lambda _: next(lost, None) is not None


async def test_a_lost_answer_is_asked_for_again(client: Client, engine: CoreEngine) -> None:
    engine.loses = losing(1)
    job_id = await client.enqueue("x", timeout=0.5)

    assert engine.job_ids == [job_id]
    first, second = engine.commands
    assert first == second
    assert client.pending == 0


async def test_a_caller_may_ask_again(client: Client, engine: CoreEngine) -> None:
    engine.loses = losing(2)
    with pytest.raises(ReplyTimeout) as caught:
        await client.enqueue("x", key="k", timeout=0.5)
    assert caught.value.job_id == "default/k"
    assert client.pending == 0

    again = await client.enqueue("x", key="k", command_id=caught.value.command_id)
    assert again == "default/k"
    assert engine.job_ids == ["default/k"]


async def test_silence_is_described(client: Client) -> None:
    with pytest.raises(ReplyTimeout) as caught:  # there is no engine
        await client.enqueue("x", key="k", queue="billing", command_id="c-1", timeout=0.5)

    message = str(caught.value)
    assert message.startswith(
        "No answer to enqueue of billing/k within 0.5 s; whether it was decided is unknown"
    )
    assert "with the same key and command_id='c-1'" in message
    assert (
        f"check that `tidelog engine` runs for partition {partition_of('billing', PARTITIONS)}"
        in message.lower()
    )


async def test_commands_that_mean_something_else_the_second_time_are_sent_once(
    client: Client, log: ProbedLog
) -> None:
    for call in (client.requeue, client.cancel, client.pause_queue):
        log.appends.clear()
        with pytest.raises(ReplyTimeout):
            await call("default/k" if call != client.pause_queue else "default", timeout=0.3)
        assert log.appends == [1]


async def test_a_late_answer_harms_nobody(client: Client, engine: CoreEngine) -> None:
    job = NewJob("x")
    engine.loses = losing(2)
    with pytest.raises(ReplyTimeout):
        await client.enqueue(job, timeout=0.5)
    engine.loses = lambda _: False
    await asyncio.gather(client.enqueue("y", command_id="one"), client.enqueue(job))
    assert len(engine.job_ids) == 2


@pytest.mark.parametrize("is_appended", [True, False])
async def test_an_unconfirmed_append_is_repeated(
    client: Client, engine: CoreEngine, log: ProbedLog, is_appended: bool
) -> None:
    log.failures = [(OutcomeUnknown("no answer from the log"), is_appended)]
    job_id = await client.enqueue("x", timeout=60)  # long before half of the time
    assert engine.job_ids == [job_id]

    log.failures = [(OutcomeUnknown("no answer from the log"), is_appended)]
    sent = await client.send("x")
    await client.enqueue("after")
    assert engine.job_ids[1] == sent
    assert len(engine.job_ids) == 3


async def test_a_short_outage_is_waited_out(client: Client, engine: CoreEngine, log: ProbedLog) -> None:
    log.failures = [(LogUnavailable("away"), False)] * 2
    job_id = await client.enqueue("x")
    assert engine.job_ids == [job_id]
    assert len(engine.commands) == 1


async def test_send_says_when_the_log_did_not_confirm(client: Client, log: ProbedLog) -> None:
    log.gate.clear()
    with pytest.raises(SendUnconfirmed, match="did not confirm the enqueue of default/k") as caught:
        await client.send("x", key="k", command_id="c-1", timeout=0.5)
    assert (caught.value.job_id, caught.value.command_id) == ("default/k", "c-1")


async def test_what_the_log_refuses_is_told_to_the_caller(
    client: Client, log: ProbedLog, engine: CoreEngine
) -> None:
    log.failures = [(UnknownTopic("The log has no topic"), False)]
    with pytest.raises(UnknownTopic):
        await client.enqueue("x")
    assert client.pending == 0
    assert engine.job_ids == []
    job_id = await client.enqueue("x")
    assert engine.job_ids == [job_id]


async def test_concurrent_calls_share_an_append(client: Client, engine: CoreEngine, log: ProbedLog) -> None:
    ids = await asyncio.gather(*(client.enqueue("x", key=str(n)) for n in range(50)))

    assert ids == [f"default/{n}" for n in range(50)]
    assert log.appends == [50]
    assert engine.job_ids == ids  # in the order of the calls


async def test_a_batch_gathers_while_another_is_under_way(
    client: Client, engine: CoreEngine, log: ProbedLog
) -> None:
    log.gate.clear()
    first = asyncio.create_task(client.enqueue("x", key="first"))
    await until(lambda: log.appends == [1])
    others = [asyncio.create_task(client.enqueue("x", key=str(n))) for n in range(20)]
    await until(lambda: client.pending == 21)
    log.gate.set()

    await asyncio.gather(first, *others)
    assert log.appends == [1, 20]
    assert engine.job_ids[0] == "default/first"


async def test_a_cancelled_call_leaves_nothing_behind(client: Client, log: ProbedLog) -> None:
    waiting = asyncio.create_task(client.enqueue("x"))
    await until(lambda: client.pending == 1 and log.appends == [1])
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert client.pending == 0


async def test_a_call_cancelled_before_it_is_under_way_is_never_sent(
    client: Client, engine: CoreEngine, log: ProbedLog
) -> None:
    log.gate.clear()
    first = asyncio.create_task(client.enqueue("x", key="first"))
    await until(lambda: log.appends == [1])
    second = asyncio.create_task(client.enqueue("x", key="second"))
    await until(lambda: client.pending == 2)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    log.gate.set()

    await first
    await client.enqueue("x", key="third")
    assert engine.job_ids == ["default/first", "default/third"]


async def test_two_calls_cannot_share_a_command_id(client: Client) -> None:
    waiting = asyncio.create_task(client.enqueue("x", command_id="c"))
    await until(lambda: client.pending == 1)
    with pytest.raises(ValueError, match="command_id 'c' is in use"):
        await client.enqueue("y", command_id="c")
    assert client.pending == 1
    waiting.cancel()
    await asyncio.wait([waiting])


async def test_close_fails_what_waits_by_name(log: ProbedLog) -> None:
    async with Client.open(log, TOPICS) as client:
        asked = asyncio.create_task(client.enqueue("x", key="asked"))
        await until(lambda: log.appends == [1])
        log.gate.clear()
        under_way = asyncio.create_task(client.enqueue("x", key="under-way"))
        await until(lambda: log.appends == [1, 1])
        queued = asyncio.create_task(client.send("x", key="queued"))
        await asyncio.wait([queued], timeout=0.01)

    with pytest.raises(ClientClosed, match="closed while enqueue of default/asked waited for its answer"):
        await asked
    with pytest.raises(ClientClosed, match="closed while enqueue of default/under-way was sent"):
        await under_way
    with pytest.raises(ClientClosed, match="enqueue of default/queued was not sent"):
        await queued
    with pytest.raises(ClientClosed, match="enqueue of default/late was not sent"):
        await client.enqueue("x", key="late")
    assert client.pending == 0


async def test_clients_of_one_process_do_not_mix(log: ProbedLog, engine: CoreEngine) -> None:
    async with Client.open(log, TOPICS) as one, Client.open(log, TOPICS) as other:
        assert one.client_id != other.client_id
        ids = await asyncio.gather(
            *(client.enqueue("x", key=f"{n}") for n, client in enumerate([one, other] * 20))
        )
    assert sorted(engine.job_ids) == sorted(ids)
    assert len(engine.commands) == 40


async def test_a_client_that_cannot_read_says_so_at_once(
    log: ProbedLog, caplog: pytest.LogCaptureFixture
) -> None:
    log.read_failures.append(LogError("the disk is gone"))
    with caplog.at_level(logging.ERROR, logger="tidelog"):
        async with Client.open(log, TOPICS) as client:
            with pytest.raises(ClientClosed, match="the disk is gone"):
                await client.enqueue("x", timeout=60)
    assert "cannot read its answers" in caplog.text
