"""A parent in another partition, over the log: links, answers and ends go in the engines' transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from tests.conformance.cluster import SECONDS, Cluster
from tests.core.playing import cancel, enqueue
from tests.engine.faults import FaultyLog
from tests.engine.house import TOPICS, House

from tidelog.log.port import Isolation, Log, Reader, TopicPartition
from tidelog_events.identity import partition_of

PARENT, CHILD = "a/parent", "billing/child"
PARENT_HOME, CHILD_HOME = partition_of("a", 4), partition_of("billing", 4)


async def test_a_child_is_born_below_its_parent_and_falls_with_it_over_a_restart(wide_house: House) -> None:
    assert PARENT_HOME != CHILD_HOME
    async with wide_house.running():
        # Both at once: the link may come before the parent's own command is handled.
        await wide_house.send(enqueue(PARENT, command_id="parent"))
        await wide_house.send(enqueue(CHILD, parents=[PARENT], command_id="child"))
        assert (await wide_house.reply("child"))["result"] == "Ok"
    async with wide_house.running():
        await wide_house.send(cancel(PARENT, command_id="cancel"))
        assert (await wide_house.reply("cancel"))["result"] == "CancelledImmediately"
        await wide_house.until_step(f"cancelled {CHILD}", CHILD_HOME)
    assert await wide_house.steps(CHILD_HOME) == [f"enqueued {CHILD}", f"cancelled {CHILD}"]


async def test_an_unknown_parent_elsewhere_is_refused(wide_house: House) -> None:
    async with wide_house.running():
        await wide_house.send(enqueue(CHILD, parents=["a/nobody"], command_id="child"))
        assert (await wide_house.reply("child"))["result"] == "UnknownParent"
    assert await wide_house.steps(CHILD_HOME) == []


class OpenTransaction(FaultyLog):
    """A log in which a transaction is open over all of one partition until it is ended."""

    def __init__(self, log: Log, over: TopicPartition) -> None:
        super().__init__(log, lambda records: None)  # noqa: ARG005  no append fails
        self._over = over
        self._is_open = True
        self._readers: list[Reader] = []

    async def reader(
        self, offsets: Mapping[TopicPartition, int], isolation: Isolation = Isolation.COMMITTED
    ) -> Reader:
        reader = await super().reader(offsets, isolation)
        if self._is_open and self._over in offsets:
            reader.pause(self._over)
            self._readers.append(reader)
        return reader

    async def end_offset(self, tp: TopicPartition, isolation: Isolation = Isolation.COMMITTED) -> int:
        if self._is_open and tp == self._over and isolation is Isolation.COMMITTED:
            return await self.start_offset(tp)
        return await super().end_offset(tp, isolation)

    def commit(self) -> None:
        self._is_open = False
        for reader in self._readers:
            reader.resume(self._over)


async def test_a_parent_whose_transaction_shows_later_is_known(wide_house: House, cluster: Cluster) -> None:
    """An atomic batch holds parent and child, and the child's partition shows it first."""
    log = OpenTransaction(await cluster.connect(), TopicPartition(TOPICS.commands, PARENT_HOME))
    changelog = TopicPartition(TOPICS.state, PARENT_HOME)
    reader = await wide_house.log.reader({changelog: 0})
    async with wide_house.running(log):
        await wide_house.send(enqueue(PARENT, command_id="parent"))
        await wide_house.send(enqueue(CHILD, parents=[PARENT], command_id="child"))
        async with asyncio.timeout(SECONDS):
            while not any(key.startswith(">") for key in await wide_house.state(PARENT_HOME)):
                await reader.read(max_records=100, timeout=0.05)
        log.commit()
        assert (await wide_house.reply("child"))["result"] == "Ok"
    await reader.close()
