"""Crashes, zombies and lost commits: each command is decided once, and the log is the only truth."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from tests.conformance.cluster import SECONDS, Cluster
from tests.core.playing import (
    cancel,
    claim,
    dead,
    enqueue,
    limit,
    pause,
    report,
    requeue,
    resume,
    success,
)
from tests.engine.faults import Fault, FaultyLog, once
from tests.engine.house import HASTY, RESTLESS, TOPICS, House, eventually, running

from tidelog.engine import EngineSettings
from tidelog.log.port import Fenced, LogUnavailable, NewRecord, OutcomeUnknown
from tidelog_events.identity import partition_of

DAY = 24 * 3_600


class TestRestart:
    async def test_jobs_leases_settings_and_duplicates_survive(self, house: House) -> None:
        async with house.running():
            await house.ask(enqueue("q/a", command_id="1"))
            await house.ask(claim("q", "w", lease_seconds=30, command_id="2"))
            await house.ask(enqueue("q/b", command_id="3"))
            await house.ask(pause("q", actor="ann", command_id="4"))
            await house.ask(limit("r", 1, command_id="5"))
            await house.ask(enqueue("r/a", command_id="6"))
            await house.ask(enqueue("r/b", command_id="7"))
            await house.ask(claim("r", "w", command_id="8"))
            await house.ask(cancel("q/a", command_id="9"))
        async with house.running():
            again = await house.ask(enqueue("q/a", command_id="10"))
            assert again["result"] == "Duplicate"
            await house.send(enqueue("q/b", command_id="3"))
            assert (await house.ask(claim("q", "v", command_id="11")))["jobs"] == []
            assert (await house.ask(claim("r", "v", command_id="12")))["jobs"] == []
            renewed = await house.ask(
                {
                    "type": "heartbeat",
                    "worker_id": "w",
                    "leases": [{"job_id": "q/a", "attempt": 1, "lease": 1}],
                    "lease_seconds": 30,
                    "command_id": "13",
                }
            )
            assert renewed["leases"] == [{"job_id": "q/a", "renewed": True, "cancel_requested": True}]
            await house.ask(resume("q", command_id="14"))
            assert len((await house.ask(claim("q", "v", command_id="15")))["jobs"]) == 1
            house.clock.advance(30)
            await house.until_step("lease_expired q/a")
        answers = [reply["result"] for reply in await house.replies() if reply.get("command_id") == "3"]
        assert answers == ["Ok", "Ok"], "a resend is answered as the first time, also by another engine"

    async def test_waiting_children_and_kept_parents_survive(self, house: House) -> None:
        async with house.running():
            await house.ask(enqueue("q/p", command_id="1"))
            await house.ask(enqueue("q/c", parents=["q/p"], command_id="2"))
            await house.ask(enqueue("q/d", parents=["q/p", "q/c"], command_id="3"))
            await house.ask(claim("q", "w", command_id="4"))
        async with house.running():
            await house.ask(report("w", success("q/p"), command_id="5"))
        async with house.running():
            house.clock.advance(2 * DAY)
            await house.ask(cancel("q/c", command_id="6"))
            await house.until_step("purged q/p")
        assert (await house.steps())[4:] == [
            "succeeded q/p",
            "released q/c",
            "parent_resolved q/d",
            "cancelled q/c",
            "cancelled q/d",
            "purged q/p",
        ]

    async def test_what_fell_due_meanwhile_is_handled_late(self, house: House) -> None:
        async with house.running():
            await house.ask(enqueue("q/a", retry={"max_attempts": 1}, command_id="1"))
            await house.ask(claim("q", "w", lease_seconds=30, command_id="2"))
            await house.ask(enqueue("q/b", command_id="3"))
            await house.ask(cancel("q/b", command_id="4"))
        house.clock.advance(2 * DAY)
        async with house.running():
            await house.until_step("purged q/b")
        assert (await house.steps())[-2:] == ["lease_expired q/a", "purged q/b"]

    async def test_a_purged_id_is_free_after_a_restart(self, house: House) -> None:
        async with house.running():
            await house.ask(enqueue("q/a", command_id="1"))
            await house.ask(cancel("q/a", command_id="2"))
            house.clock.advance(DAY)
            await house.until_step("purged q/a")
        async with house.running():
            assert (await house.ask(enqueue("q/a", command_id="3")))["result"] == "Ok"

    async def test_a_requeued_job_starts_again_after_a_restart(self, house: House) -> None:
        async with house.running():
            await house.ask(enqueue("q/a", command_id="1"))
            await house.ask(claim("q", "w", command_id="2"))
            await house.ask(report("w", dead("q/a"), command_id="3"))
        async with house.running():
            await house.ask(requeue("q/a", command_id="4"))
        async with house.running():
            grant = (await house.ask(claim("q", "w", command_id="5")))["jobs"][0]
        assert (grant["attempt"], grant["lease"]) == (1, 4)

    async def test_commands_sent_while_no_engine_runs_are_decided_later(self, house: House) -> None:
        await house.send_all([enqueue(f"q/{number}", command_id=str(number)) for number in range(20)])
        async with house.running():
            await house.reply("19")
        assert await house.steps() == [f"enqueued q/{number}" for number in range(20)]


class TestLostCommits:
    """However an append fails, the engine takes over again and goes on from what stands in the log."""

    @pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.LOST, Fault.UNACKNOWLEDGED])
    async def test_each_command_is_decided_once(self, house: House, cluster: Cluster, fault: Fault) -> None:
        log = FaultyLog(await cluster.connect(), once(fault, TOPICS.transitions))
        async with house.running(log) as engine:
            commands = [enqueue(f"q/{number}", command_id=str(number)) for number in range(5)]
            await house.send_all([*commands, claim("q", "w", max_jobs=3, command_id="claim")])
            assert len((await house.reply("claim"))["jobs"]) == 3
            assert (await house.ask(enqueue("q/9", command_id="9")))["result"] == "Ok"
            counters = engine.counters
        assert (counters.takeovers, counters.outcome_unknown) == (2, int(fault is not Fault.REFUSED))
        steps = await house.steps()
        assert Counter(step.split()[0] for step in steps) == {"enqueued": 6, "leased": 3}
        answers = Counter(reply.get("command_id") for reply in await house.replies())
        assert all(answers[command_id] == 1 for command_id in ("0", "1", "2", "3", "4", "9", "claim"))

    @pytest.mark.parametrize("fault", [Fault.LOST, Fault.UNACKNOWLEDGED])
    async def test_the_state_taken_over_is_that_of_the_log(
        self, house: House, cluster: Cluster, fault: Fault
    ) -> None:
        """What a lost transaction had changed in memory is gone, what a committed one changed is there."""
        async with house.running():
            await house.ask(enqueue("q/a", command_id="1"))
        log = FaultyLog(await cluster.connect(), once(fault, TOPICS.transitions))
        processor = house.processor(log)
        await house.send(claim("q", "w", command_id="2"))
        with pytest.raises(OutcomeUnknown):
            await processor.serve()
        written = fault is Fault.UNACKNOWLEDGED
        assert (b'"Leased"' in (await house.state())["q/a"]) is written
        async with house.running():
            assert len((await house.reply("2"))["jobs"]) == 1
        assert await house.steps() == ["enqueued q/a", "leased q/a"]

    async def test_a_log_that_is_away_for_long_is_tried_again(self, house: House, cluster: Cluster) -> None:
        failures = 5

        def on_append(records: Sequence[NewRecord]) -> Fault | None:
            nonlocal failures
            failures -= 1
            return Fault.REFUSED if failures >= 0 and records else None

        async with house.running(FaultyLog(await cluster.connect(), on_append)) as engine:
            assert (await house.ask(enqueue("q/a", command_id="1")))["result"] == "Ok"
            assert (engine.counters.failures, engine.counters.takeovers) == (5, 6)

    async def test_a_cancelled_engine_does_not_wait_for_its_next_try(
        self, house: House, cluster: Cluster
    ) -> None:
        log = FaultyLog(await cluster.connect(), lambda _: Fault.REFUSED)
        engine = await house.engine(log, settings=EngineSettings(look_up=0.01, first_pause=3_600))
        task = asyncio.create_task(engine.run(asyncio.Event()))
        await eventually(lambda: engine.counters.failures == 1)
        task.cancel()
        async with asyncio.timeout(SECONDS / 2):
            with pytest.raises(asyncio.CancelledError):
                await task
        assert engine.counters.takeovers == 1

    async def test_a_stopped_engine_does_not_wait_for_its_next_try(
        self, house: House, cluster: Cluster
    ) -> None:
        log = FaultyLog(await cluster.connect(), lambda _: Fault.REFUSED)
        engine = await house.engine(log, settings=EngineSettings(look_up=0.01, first_pause=3_600))
        async with running(engine):
            await eventually(lambda: engine.counters.failures == 1)


class TestCrash:
    async def test_between_reading_and_committing_nothing_has_happened(
        self, house: House, cluster: Cluster
    ) -> None:
        reached = asyncio.Event()

        def on_append(records: Sequence[NewRecord]) -> Fault | None:
            if any(record.topic == TOPICS.transitions for record in records):
                reached.set()
                return Fault.HANGS
            return None

        task = asyncio.create_task(house.processor(FaultyLog(await cluster.connect(), on_append)).serve())
        await house.send_all([enqueue("q/a", command_id="1"), claim("q", "w", command_id="2")])
        async with asyncio.timeout(SECONDS):
            await reached.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await house.steps() == []
        async with house.running():
            assert len((await house.reply("2"))["jobs"]) == 1
        assert await house.steps() == ["enqueued q/a", "leased q/a"]

    async def test_a_zombie_writes_nothing_more(self, house: House, cluster: Cluster) -> None:
        zombie = house.processor(await cluster.connect())
        zombie_task = asyncio.create_task(zombie.serve())
        await eventually(lambda: zombie.serving)
        await house.ask(enqueue("q/a", command_id="1"))
        heir = house.processor(await cluster.connect())
        heir_task = asyncio.create_task(heir.serve())
        await eventually(lambda: heir.serving)
        assert (await house.ask(claim("q", "w", command_id="2")))["jobs"]
        async with asyncio.timeout(SECONDS):
            with pytest.raises(Fenced):
                await zombie_task
        await house.ask(report("w", success("q/a"), command_id="3"))
        heir.stop()
        await heir_task
        assert await house.steps() == ["enqueued q/a", "leased q/a", "succeeded q/a"]
        answers = Counter(reply.get("command_id") for reply in await house.replies())
        assert (answers["1"], answers["2"], answers["3"]) == (1, 1, 1)

    async def test_a_hung_writer_is_replaced_by_the_watchdog(self, house: House, cluster: Cluster) -> None:
        log = FaultyLog(await cluster.connect(), once(Fault.HANGS, TOPICS.transitions))
        settings = EngineSettings(look_up=0.01, stalled=0.5, first_pause=0.01)
        engine = await house.engine(log, settings=settings)
        async with running(engine):
            assert (await house.ask(enqueue("q/a", command_id="1")))["result"] == "Ok"
            assert (engine.counters.stalled, engine.counters.takeovers) == (1, 2)
        assert await house.steps() == ["enqueued q/a"]


class TestSharing:
    async def test_engines_share_the_partitions_and_take_over_from_one_that_stops(
        self, wide_house: House
    ) -> None:
        first, second = await wide_house.engine(), await wide_house.engine()
        async with running(first):
            await eventually(lambda: len(first.serving) == 4)
            async with running(second):
                await eventually(lambda: len(first.serving) == len(second.serving) == 2)
                assert first.serving | second.serving == {0, 1, 2, 3}
                for number in range(12):
                    reply = await wide_house.ask(enqueue(f"queue-{number}/a", command_id=f"a{number}"))
                    assert reply["result"] == "Ok"
            await eventually(lambda: len(first.serving) == 4)
            for number in range(12):
                reply = await wide_house.ask(enqueue(f"queue-{number}/a", command_id=f"b{number}"))
                assert reply["result"] == "Duplicate"
        homes = {partition_of(f"queue-{number}", 4) for number in range(12)}
        assert sum([len(await wide_house.steps(home)) for home in homes]) == 12

    async def test_one_that_loses_a_partition_goes_on_with_the_rest(
        self, wide_house: House, cluster: Cluster
    ) -> None:
        queues = {partition_of(f"queue-{number}", 4): f"queue-{number}" for number in range(30)}
        async with wide_house.running() as engine:
            thief = wide_house.processor(await cluster.connect(), partition=0)
            task = asyncio.create_task(thief.serve())
            await eventually(lambda: thief.serving or task.done())
            for partition, queue in queues.items():
                reply = await wide_house.ask(enqueue(f"{queue}/a", command_id=queue))
                assert (reply["result"], reply["partition"]) == ("Ok", partition)
            await eventually(lambda: engine.counters.fenced == 1)
            thief.stop()
            await asyncio.wait([task], timeout=SECONDS)
            assert task.done()
            task.exception()
        assert [len(await wide_house.steps(partition)) for partition in range(4)] == [1, 1, 1, 1]

    async def test_a_third_engine_is_the_standby(self, house: House) -> None:
        first, standby = await house.engine(), await house.engine()
        async with running(standby):
            await eventually(lambda: standby.serving == {0})
            async with running(first):
                await house.ask(enqueue("q/a", command_id="1"))
            await house.ask(claim("q", "w", command_id="2"))
        assert await house.steps() == ["enqueued q/a", "leased q/a"]


async def test_an_engine_on_a_closed_log_says_so(house: House, cluster: Cluster) -> None:
    log = await cluster.connect()
    engine = await house.engine(log, settings=HASTY, processor_settings=RESTLESS)
    await log.close()
    with pytest.raises(LogUnavailable):
        await engine.run(asyncio.Event())
