"""The next batch is decided while the last one is committed, and nothing is told of either before its own."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count

import pytest
from tests.conformance.cluster import SECONDS, Cluster
from tests.core.playing import cancel, claim, enqueue, time_of
from tests.engine.faults import Fault, FaultyLog, Held, once
from tests.engine.house import HASTY, RESTLESS, TOPICS, House, eventually, running

from tidelog.engine import EngineSettings, ProcessorSettings
from tidelog.log.port import Fenced, Isolation, Log, NewRecord, Reader, Record, TopicPartition


class WatchedReader(Reader):
    def __init__(self, reader: Reader, log: WatchedLog) -> None:
        self._reader = reader
        self._log = log

    async def read(self, *, max_records: int, timeout: float) -> list[Record]:
        self._log.decided = self._log.read
        self._log.turns += 1
        records = await self._reader.read(max_records=max_records, timeout=timeout)
        self._log.read += len(records)
        self._log.returned += 1
        return records

    def position(self, tp: TopicPartition) -> int:
        return self._reader.position(tp)

    def seek(self, tp: TopicPartition, offset: int) -> None:
        self._reader.seek(tp, offset)

    def pause(self, tp: TopicPartition) -> None:
        self._reader.pause(tp)

    def resume(self, tp: TopicPartition) -> None:
        self._reader.resume(tp)

    async def close(self) -> None:
        await self._reader.close()


class WatchedLog(FaultyLog):
    """A log that holds one append, and knows what the engine has decided: it reads on after that.

    Attributes:
        read, decided: commands that were, since the log was opened.
        turns, returned: how often the engine began to read, and had something or nothing from it.
    """

    def __init__(self, log: Log, held: Held) -> None:
        super().__init__(log, once(held, TOPICS.transitions))
        self.held = held
        self.read = self.decided = self.turns = self.returned = 0

    async def reader(
        self, offsets: Mapping[TopicPartition, int], isolation: Isolation = Isolation.COMMITTED
    ) -> Reader:
        reader = await super().reader(offsets, isolation)
        inputs = {topic for topic, _ in offsets}
        return WatchedReader(reader, self) if TOPICS.commands in inputs else reader

    async def until_decided(self, count: int) -> None:
        """Wait until so many commands were decided."""
        await eventually(lambda: self.decided >= count)

    async def until_read(self, count: int, *, or_else: Callable[[], bool]) -> None:
        """Wait until so many commands were read, or something else has happened."""
        await eventually(lambda: self.read >= count or or_else())

    async def until_turned(self) -> None:
        """Wait until the engine has looked at the clock and at its input once more."""
        turns = self.turns
        await eventually(lambda: self.turns >= turns + 2)


async def watched(cluster: Cluster, then: Fault | None = None) -> WatchedLog:
    return WatchedLog(await cluster.connect(), Held(then))


async def decide_behind_a_commit(house: House, log: WatchedLog) -> None:
    """Have one enqueue under way into the log, and an enqueue and a claim decided behind it."""
    await house.send(enqueue("q/a", command_id="a"))
    async with asyncio.timeout(SECONDS):
        await log.held.reached.wait()
    await house.send_all([enqueue("q/b", command_id="b"), claim("q", "w", max_jobs=2, command_id="claim")])
    await log.until_decided(3)


def answered(replies: list[dict[str, object]]) -> Counter[object]:
    return Counter(reply["command_id"] for reply in replies if reply["type"] != "hello")


ONCE_EACH = {"a": 1, "b": 1, "claim": 1}
STEPS = ["enqueued q/a", "enqueued q/b", "leased q/a", "leased q/b"]


async def test_a_batch_is_decided_while_the_one_before_is_committed(house: House, cluster: Cluster) -> None:
    log = await watched(cluster)
    async with house.running(log):
        await decide_behind_a_commit(house, log)
        house.clock.advance(10)
        log.held.let_go.set()
        assert len((await house.reply("claim"))["jobs"]) == 2
    assert await house.steps() == STEPS
    assert {event["at"] for event in await house.transitions()} == {time_of(0)}


async def test_nothing_is_told_before_it_stands_in_the_log(house: House, cluster: Cluster) -> None:
    log = await watched(cluster)
    async with house.running(log):
        await decide_behind_a_commit(house, log)
        assert answered(await house.replies()) == {}
        assert await house.steps() == []
        log.held.let_go.set()
        await house.reply("claim")
    assert answered(await house.replies()) == ONCE_EACH


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.LOST, Fault.UNACKNOWLEDGED])
async def test_a_commit_that_fails_takes_what_was_decided_behind_it_along(
    house: House, cluster: Cluster, fault: Fault
) -> None:
    log = await watched(cluster, fault)
    async with house.running(log) as engine:
        await decide_behind_a_commit(house, log)
        house.clock.advance(10)
        log.held.let_go.set()
        assert len((await house.reply("claim"))["jobs"]) == 2
        assert engine.counters.takeovers == 2
    assert await house.steps() == STEPS
    first, *later = [event["at"] for event in await house.transitions()]
    assert first == time_of(0 if fault is Fault.UNACKNOWLEDGED else 10)
    assert later == [time_of(10)] * 3, "what was decided behind it was decided anew"
    assert answered(await house.replies()) == ONCE_EACH


async def test_a_fenced_commit_takes_what_was_decided_behind_it_along(house: House, cluster: Cluster) -> None:
    log = await watched(cluster)
    zombie = asyncio.create_task(house.processor(log).serve())
    await decide_behind_a_commit(house, log)
    async with house.running():
        assert len((await house.reply("claim"))["jobs"]) == 2
        log.held.let_go.set()
        async with asyncio.timeout(SECONDS):
            with pytest.raises(Fenced):
                await zombie
    assert await house.steps() == STEPS
    assert answered(await house.replies()) == ONCE_EACH


async def test_a_stop_lets_both_batches_end(house: House, cluster: Cluster) -> None:
    log = await watched(cluster)
    engine = await house.engine(log)
    async with running(engine):
        await decide_behind_a_commit(house, log)
        asyncio.get_running_loop().call_soon(log.held.let_go.set)
    assert await house.steps() == STEPS
    assert answered(await house.replies()) == ONCE_EACH


async def test_what_is_decided_ends_also_when_nothing_more_is_read(house: House, cluster: Cluster) -> None:
    """The loop is over while the first commit is still under way."""
    log = await watched(cluster)
    processor = house.processor(log)
    task = asyncio.create_task(processor.serve())
    await decide_behind_a_commit(house, log)
    processor.stop()
    await eventually(lambda: log.returned == log.turns)
    log.held.let_go.set()
    async with asyncio.timeout(SECONDS):
        await task
    assert await house.steps() == STEPS
    assert answered(await house.replies()) == ONCE_EACH


async def test_a_stop_does_not_wait_for_a_commit_that_never_ends(house: House, cluster: Cluster) -> None:
    before = asyncio.all_tasks()
    log = await watched(cluster)
    settings = ProcessorSettings(idle_seconds=0.01, commit_seconds=0.1)
    engine = await house.engine(log, processor_settings=settings)
    async with running(engine):
        await decide_behind_a_commit(house, log)
    assert asyncio.all_tasks() == before
    async with house.running():
        await house.reply("claim")
    assert await house.steps() == STEPS
    assert answered(await house.replies()) == ONCE_EACH


async def test_a_cancellation_ends_both_batches_at_once(house: House, cluster: Cluster) -> None:
    before = asyncio.all_tasks()
    log = await watched(cluster)
    task = asyncio.create_task(house.processor(log).serve())
    await decide_behind_a_commit(house, log)
    task.cancel()
    async with asyncio.timeout(SECONDS):
        with pytest.raises(asyncio.CancelledError):
            await task
    assert asyncio.all_tasks() == before
    assert await house.steps() == []


async def test_what_falls_due_while_a_commit_runs_is_decided_on_time(house: House, cluster: Cluster) -> None:
    async with house.running():
        await house.ask(enqueue("q/a", command_id="1"))
        await house.ask(claim("q", "w", lease_seconds=5, command_id="2"))
    log = await watched(cluster)
    async with house.running(log):
        await house.send(enqueue("q/b", due_time=time_of(60), command_id="3"))
        async with asyncio.timeout(SECONDS):
            await log.held.reached.wait()
        house.clock.advance(5)
        await log.until_turned()
        house.clock.advance(1)
        log.held.let_go.set()
        await house.until_step("lease_expired q/a")
    events = await house.transitions()
    assert (events[2]["type"], events[2]["at"]) == ("enqueued", time_of(0))
    assert (events[3]["type"], events[3]["at"]) == ("lease_expired", time_of(5))


async def test_a_parked_claim_is_served_behind_a_commit(house: House, cluster: Cluster) -> None:
    log = await watched(cluster)
    async with house.running(log):
        await house.send(claim("q", "w", wait_seconds=60, command_id="parked"))
        await log.until_decided(1)
        await house.send(enqueue("r/a", command_id="1"))
        async with asyncio.timeout(SECONDS):
            await log.held.reached.wait()
        await house.send(enqueue("q/a", command_id="2"))
        await log.until_decided(3)
        log.held.let_go.set()
        assert [job["job_id"] for job in (await house.reply("parked"))["jobs"]] == ["q/a"]


async def test_no_more_is_decided_ahead_than_one_transaction_holds(house: House, cluster: Cluster) -> None:
    sizes: list[int] = []
    held = Held()

    def on_append(records: Sequence[NewRecord]) -> Held | None:
        enqueued = sum(record.topic == TOPICS.transitions for record in records)
        sizes.append(enqueued)
        return held if sizes[-1] and not any(sizes[:-1]) else None

    log = FaultyLog(await cluster.connect(), on_append)
    settings = ProcessorSettings(idle_seconds=0.01, max_commands=3)
    async with house.running(log, processor_settings=settings):
        await house.send_all([enqueue(f"q/{number}", command_id=str(number)) for number in range(20)])
        async with asyncio.timeout(SECONDS):
            await held.reached.wait()
        held.let_go.set()
        await house.reply("19")
    assert sum(sizes) == 20
    assert max(sizes) == 3


async def test_commands_that_keep_coming_hide_no_commit_that_hangs(house: House, cluster: Cluster) -> None:
    log = await watched(cluster)  # and never let go
    settings = EngineSettings(look_up=HASTY.look_up, stalled=0.5, first_pause=HASTY.first_pause)
    roomy = ProcessorSettings(idle_seconds=RESTLESS.idle_seconds, max_commands=10_000)
    engine = await house.engine(log, settings=settings, processor_settings=roomy)
    async with running(engine):
        await house.send(enqueue("q/a", command_id="a"))
        for sent in count(2):
            await house.send(cancel("q/none", command_id="again"))
            await log.until_read(sent, or_else=lambda: engine.counters.stalled > 0)
            if engine.counters.stalled:
                break
            assert sent < 1_000, "the watchdog saw progress in what hangs"
        assert (await house.reply("a"))["result"] == "Ok"
