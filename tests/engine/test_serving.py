"""The main path over a log: commands in; transitions, state and replies out."""

from __future__ import annotations

import asyncio

import orjson
import pytest
from tests.conformance.cluster import SECONDS, Cluster, read_to_end
from tests.core.playing import cancel, claim, enqueue, report, success, time_of
from tests.engine.house import ME, REPLY_PARTITIONS, TOPICS, House, eventually, running

from tidelog.engine import EngineError
from tidelog.log.port import Cleanup, TopicSpec
from tidelog_events.identity import partition_of


async def test_a_job_goes_its_way(house: House) -> None:
    async with house.running():
        assert (await house.ask(enqueue("q/a", command_id="1")))["result"] == "Ok"
        granted = await house.ask(claim("q", "w", command_id="2"))
        assert granted["jobs"][0]["job_id"] == "q/a"
        house.clock.advance(5)
        reported = await house.ask(report("w", success("q/a", output=[1]), command_id="3"))
        assert (reported["results"], reported["sequence"]) == (["Applied"], 2)
    assert await house.steps() == ["enqueued q/a", "leased q/a", "succeeded q/a"]
    assert (await house.transitions())[2]["at"] == time_of(5)
    state = await house.state()
    assert set(state) == {"@position", "q/a"}
    kept = orjson.loads(state["q/a"])
    assert (kept["state"], kept["output"], kept["attempt"]) == ("Succeeded", [1], 1)


async def test_records_carry_the_keys_of_the_contract(house: House) -> None:
    async with house.running():
        await house.ask(enqueue("q/a", command_id="1"))
        await house.ask({"type": "pause_queue", "queue": "q", "command_id": "2"})
    transitions = await read_to_end(house.log, TOPICS.transitions)
    assert [record.key for record in transitions] == [b"q/a", b"q"]
    state = await read_to_end(house.log, TOPICS.state)
    assert {record.key for record in state} == {b"@position", b"q/a", b"q"}


async def test_a_takeover_says_hello_to_every_partition_of_replies(wide_house: House) -> None:
    async with wide_house.running():
        pass
    for number in range(REPLY_PARTITIONS):
        records = await read_to_end(wide_house.log, TOPICS.replies, number)
        assert [record.key for record in records] == [None] * 4
        said = [orjson.loads(record.value or b"") for record in records]
        assert sorted(hello["partition"] for hello in said) == [0, 1, 2, 3]
        assert {(hello["type"], hello["position"]) for hello in said} == {("hello", 0)}


async def test_a_hello_says_from_which_command_on_the_engine_goes_on(house: House) -> None:
    async with house.running():
        await house.ask(enqueue("q/a", command_id="1"))
    await house.send(enqueue("q/b", command_id="2"))
    async with house.running():
        await house.until_step("enqueued q/b")
    hellos = [orjson.loads(record.value or b"") for record in await read_to_end(house.log, TOPICS.replies)]
    assert [hello["position"] for hello in hellos if hello["type"] == "hello"] == [0, 1]


async def test_a_command_without_reply_to_is_decided_and_answered_to_nobody(house: House) -> None:
    async with house.running():
        await house.send({**enqueue("q/a", command_id="1"), "reply_to": None})
        await house.until_step("enqueued q/a")
    assert [reply for reply in await house.replies() if reply["type"] != "hello"] == []


async def test_a_parked_claim_is_served_by_a_later_command(house: House) -> None:
    async with house.running():
        await house.send(claim("q", "w", wait_seconds=60, command_id="parked"))
        await house.ask(enqueue("q/a", command_id="1"))
        assert (await house.reply("parked"))["jobs"][0]["job_id"] == "q/a"


async def test_the_owner_of_a_job_is_told_of_its_cancellation_wherever_it_reads(house: House) -> None:
    async with house.running():
        await house.ask(enqueue("q/a", command_id="1"))
        await house.ask(claim("q", "w", command_id="2"))
    async with house.running():
        await house.send({**cancel("q/a", command_id="3"), "reply_to": "operator"})
        await house.until_step("cancel_requested q/a")
    records = [await read_to_end(house.log, TOPICS.replies, number) for number in range(REPLY_PARTITIONS)]
    (push,) = [
        record
        for found in records
        for record in found
        if b'"type":"cancel_requested"' in (record.value or b"")
    ]
    assert (push.key, push.partition) == (ME.encode(), partition_of(ME, REPLY_PARTITIONS))


async def test_the_end_of_a_wait_comes_by_the_clock(house: House) -> None:
    async with house.running():
        await house.send(claim("q", "w", wait_seconds=60, command_id="parked"))
        await house.ask(cancel("q/none", command_id="behind it"))
        house.clock.advance(60)
        assert (await house.reply("parked"))["jobs"] == []


async def test_leases_expire_and_ended_jobs_are_purged_by_the_clock(house: House) -> None:
    async with house.running():
        await house.ask(enqueue("q/a", retry={"max_attempts": 1}, command_id="1"))
        await house.ask(claim("q", "w", lease_seconds=10, command_id="2"))
        house.clock.advance(10)
        await house.until_step("lease_expired q/a")
        house.clock.advance(14 * 24 * 3_600)
        await house.until_step("purged q/a")
    assert set(await house.state()) == {"@position"}, "the id is free, and nothing is kept of it"


async def test_a_clock_that_goes_back_holds_time_still(house: House) -> None:
    async with house.running():
        house.clock.advance(100)
        await house.ask(enqueue("q/a", command_id="1"))
        house.clock.advance(-50)
        await house.ask(claim("q", "w", command_id="2"))
    async with house.running():
        await house.ask(enqueue("q/b", command_id="3"))
    assert [event["at"] for event in await house.transitions()] == [time_of(100)] * 3


async def test_a_graceful_stop_leaves_no_task_behind(house: House) -> None:
    before = asyncio.all_tasks()
    engine = await house.engine()
    async with running(engine):
        await eventually(lambda: engine.serving == {0})
        await house.ask(enqueue("q/a", command_id="1"))
    assert engine.serving == frozenset()
    assert asyncio.all_tasks() == before


async def test_a_cancellation_ends_all_at_once(house: House) -> None:
    engine = await house.engine()
    task = asyncio.create_task(engine.run(asyncio.Event()))
    await eventually(lambda: engine.serving == {0})
    task.cancel()
    async with asyncio.timeout(SECONDS):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert engine.serving == frozenset()


async def test_topics_of_different_widths_are_refused_by_name(cluster: Cluster) -> None:
    log = await cluster.connect()
    specs = [spec for spec in TOPICS.specs(2, REPLY_PARTITIONS) if spec.name != TOPICS.state]
    await log.create_topics([*specs, TopicSpec(TOPICS.state, 3, Cleanup.COMPACT)])
    engine = await House(cluster, log, 2).engine()
    with pytest.raises(EngineError, match=r"t\.commands has 2, .*t\.state has 3"):
        await engine.run(asyncio.Event())
