"""Processes of an observer come and die anywhere: what is committed is resolved, and all is told."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest
from tests.conformance.cluster import SECONDS, MemoryCluster
from tests.engine.house import eventually
from tests.observer.stage import AT_ONCE, HASTY, PARTITIONS, Seen, Stage

from tidelog.app import App
from tidelog.observer.context import ObserverContext
from tidelog.observer.observer import Observer

EVENTS = 60
POISONS = (7, 40)
DEATHS = 10
DYING = replace(HASTY, farewell_seconds=0.0)


class Crowd:
    """Processes of one observer, each with what its handler was told."""

    def __init__(self, stage: Stage, seed: int) -> None:
        self._stage = stage
        self._chance = random.Random(seed)  # noqa: S311  one seed is one run, as far as threads let it be
        self._living: list[asyncio.Task[None]] = []
        self.told: list[Seen] = []

    @property
    def size(self) -> int:
        return len(self._living)

    def everything(self) -> set[str]:
        return {key for seen in self.told for key in seen.keys()}  # noqa: SIM118  not those of a dict

    async def join(self) -> None:
        seen = Seen()

        async def handle(context: ObserverContext) -> None:
            seen.take(context)
            await asyncio.sleep(0)
            if context.sequence in POISONS or self._chance.random() < 0.1:
                raise ValueError

        app = App()
        app.observer("watch", start="beginning", retry=AT_ONCE)(handle)
        [definition] = app.observers
        log = await self._stage.cluster.connect()
        observer = Observer(log, self._stage.topics, definition, settings=DYING)
        self.told.append(seen)
        self._living.append(asyncio.create_task(observer.run(asyncio.Event())))

    async def die(self) -> None:
        """One is cut off in the middle of whatever it does."""
        victim = self._living.pop(self._chance.randrange(self.size))
        victim.cancel()
        async with asyncio.timeout(SECONDS):
            await asyncio.wait([victim])

    async def go_on(self) -> None:
        """Something more is told, by whomever."""
        before = sum(map(len, self.told))
        more = self._chance.randrange(1, 12)
        await eventually(lambda: sum(map(len, self.told)) >= before + more or self.is_done())

    async def breathe(self) -> None:
        """Let them work for a moment."""
        await asyncio.wait(self._living, timeout=0.005)

    def is_done(self) -> bool:
        return len(self.everything()) == PARTITIONS * EVENTS


async def resolved_before(stage: Stage, crowd: Crowd) -> None:
    """Whatever is committed was told, and a poison stands among the dead letters before it is passed."""
    letters = {(letter.partition, letter.sequence) for letter in await stage.dead_letters()}
    told = crowd.everything()
    for partition, offset in (await stage.committed()).items():
        for sequence in range(offset):
            assert f"{partition}-{sequence}" in told
            assert sequence not in POISONS or (partition, sequence) in letters


@pytest.mark.parametrize("seed", range(4))
async def test_what_is_committed_is_resolved_whoever_dies(seed: int) -> None:
    cluster = MemoryCluster()
    stage = await Stage.build(cluster)
    crowd = Crowd(stage, seed)
    for events in stage.partitions:
        await events.enqueued(EVENTS)
    await crowd.join()
    for _ in range(DEATHS):
        await crowd.join()
        await crowd.go_on()
        await crowd.die()
        await resolved_before(stage, crowd)
    ends = {partition: await stage.end(partition) for partition in range(PARTITIONS)}
    async with asyncio.timeout(SECONDS):
        while await stage.committed() != ends:
            await crowd.breathe()
    await resolved_before(stage, crowd)
    assert crowd.is_done()
    while crowd.size:
        await crowd.die()
    await cluster.close()
