"""Where an observer begins: once, and from then on where it was."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest
from tests.engine.faults import FaultyLog
from tests.engine.house import eventually
from tests.observer.stage import PARTITIONS, START, TOPICS, Seen, Stage

from tidelog.handler.jobs import Retry
from tidelog.log.port import NO_NOTES, Log, Member
from tidelog.observer.errors import ObserverRuns, UnknownObserver
from tidelog.observer.forgetting import forget
from tidelog.observer.letters import request_redrive
from tidelog.observer.seeking import seek
from tidelog.observer.status import observer_statuses


async def test_now_is_when_it_first_ran_and_stays_there(stage: Stage) -> None:
    events = stage.partitions[0]
    await events.enqueued(2)
    seen = Seen()
    async with stage.observing(seen.handler(), start="now"):
        pass
    await events.enqueued(2)  # while it does not run
    async with stage.observing(seen.handler(), start="now"):
        await eventually(lambda: len(seen) == 2)
    assert seen.keys() == ["0-2", "0-3"]


async def test_it_says_in_one_line_where_it_begins(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    await stage.partitions[1].enqueued(2)
    with caplog.at_level(logging.INFO, "tidelog.observer"):
        async with stage.observing(Seen().handler(), start="now", share=PARTITIONS):
            pass
        async with stage.observing(Seen().handler(), start="beginning", observer_id="all"):
            pass
    begun = [record.getMessage() for record in caplog.records if "begins" in record.getMessage()]
    assert begun == [
        "Observer watch begins partition 0 at offset 0; partition 1 at offset 2.",
        "Observer all begins partitions 0-1 at offset 0.",
    ]


async def test_a_time_is_the_first_event_that_was_written_then_or_later(stage: Stage) -> None:
    events = stage.partitions[0]
    await events.enqueued(3)
    moment = datetime.now(UTC) + timedelta(milliseconds=2)
    await eventually(lambda: datetime.now(UTC) > moment)
    await events.enqueued(3)
    seen = Seen()
    async with stage.observing(seen.handler(), start=moment):
        await eventually(lambda: len(seen) == 3)
    assert seen.keys() == ["0-3", "0-4", "0-5"]


async def test_offsets_that_the_log_does_not_hold_are_an_alarm_and_no_reset(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.partitions[1].enqueued(1)
    member = await stage.log.join(TOPICS.observer_group("watch"), TOPICS.transitions)
    await eventually(lambda: len(member.assignment) == 2)
    await member.commit({0: 77}, timeout=20)
    await member.close()
    seen = Seen()
    async with stage.observing(seen.handler()) as observer:
        await eventually(lambda: len(seen) == 1 and 0 in observer.stopped)
        with pytest.raises(ObserverRuns):
            await seek(stage.log, TOPICS, "watch", "beginning")
    assert "offset 77" in caplog.text
    assert (await stage.committed())[0] == 77

    # The way out, which is a person's decision.
    with pytest.raises(UnknownObserver):
        await seek(stage.log, TOPICS, "watcher", "beginning")
    await stage.partitions[0].enqueued(1)
    assert await seek(stage.log, TOPICS, "watch", "beginning") == {0: 0, 1: 0}
    async with stage.observing(seen.handler()):
        await eventually(lambda: seen.has("0-0"))


async def test_one_that_is_forgotten_begins_at_its_declared_start(stage: Stage) -> None:
    events = stage.partitions[0]
    await events.enqueued(2)
    once = Retry(max_attempts=1)
    first = Seen()
    doomed = first.handler(failing=lambda context: context.sequence == 0 and not context.is_redrive)
    async with stage.observing(doomed, retry=once):
        await eventually(lambda: first.has("0-1"))
        await request_redrive(stage.log, TOPICS, "watch", actor="ann", at=START)
        await eventually(lambda: first.keys() == ["0-0", "0-1", "0-0"])
        with pytest.raises(ObserverRuns, match="runs, in 1 process"):
            await forget(stage.log, TOPICS, "watch")
    await forget(stage.log, TOPICS, "watch")
    assert await observer_statuses(stage.log, TOPICS) == []
    with pytest.raises(UnknownObserver):
        await forget(stage.log, TOPICS, "watch")

    await events.enqueued(1)
    second = Seen()
    doomed = second.handler(failing=lambda context: not context.is_redrive)
    async with stage.observing(doomed, retry=once, start="now") as observer:
        await events.enqueued(1)
        await eventually(lambda: observer.counters.dead_lettered == 1)
        # How far letters were redriven is kept: the one of before is not told again.
        assert await request_redrive(stage.log, TOPICS, "watch", actor="ann", at=START) == 1
        await eventually(lambda: observer.counters.delivered == 1)
    assert second.keys() == ["0-3", "0-3"]


class LateJoiner(Member):
    """A member whose group shares anew, with somebody else, at the moment of its first commit."""

    def __init__(self, member: Member, log: Log, group: str) -> None:
        self._member = member
        self._log = log
        self._group = group
        self.others: list[Member] = []

    @property
    def assignment(self) -> frozenset[int]:
        return self._member.assignment

    async def changed(self, *, timeout: float) -> bool:
        return await self._member.changed(timeout=timeout)

    async def committed(self, partition: int) -> int | None:
        return await self._member.committed(partition)

    async def commit(
        self, offsets: Mapping[int, int], *, timeout: float, notes: Mapping[int, str] = NO_NOTES
    ) -> None:
        self.others.append(await self._log.join(self._group, TOPICS.transitions))
        await eventually(lambda: len(self.assignment) == 1)
        await self._member.commit(offsets, timeout=timeout, notes=notes)

    async def close(self) -> None:
        await self._member.close()


class LogWithLateJoiner(FaultyLog):
    def __init__(self, log: Log) -> None:
        super().__init__(log, lambda _: None)

    async def join(self, group: str, topic: str) -> Member:
        return LateJoiner(await super().join(group, topic), self._log, group)


async def test_a_process_that_starts_meanwhile_is_no_success(stage: Stage) -> None:
    for events in stage.partitions:
        await events.enqueued(2)
    seen = Seen()
    async with stage.observing(seen.handler()):
        await eventually(lambda: len(seen) == 4)
    with pytest.raises(ObserverRuns, match="was started meanwhile"):
        await seek(LogWithLateJoiner(stage.log), TOPICS, "watch", "beginning")
    assert sorted((await stage.committed()).values()) == [0, 2]
