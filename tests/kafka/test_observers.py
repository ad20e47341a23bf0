"""Observers on real brokers: killed between a delivery and its commit, and rebalanced while they deliver."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from tests.conformance.cluster import KafkaCluster
from tests.engine.house import eventually
from tests.observer.stage import HASTY, PARTITIONS, START, Seen, Stage

from tidelog.log.topics import Topics
from tidelog.observer.letters import open_letters, request_redrive

ROOT = Path(__file__).parents[2]
BOUND = 60.0


@pytest.fixture
async def stage(cluster: KafkaCluster, topics: Topics) -> Stage:
    return await Stage.build(cluster, topics)


async def child(stage: Stage, address: str, journal: Path, *more: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.observer.child",
        f"kafka://{address}",
        stage.topics.prefix,
        str(journal),
        *more,
        cwd=ROOT,
    )


def noted(journal: Path) -> list[str]:
    return journal.read_text(encoding="utf-8").split() if journal.exists() else []


async def test_a_process_killed_between_delivery_and_commit_loses_nothing(
    stage: Stage, kafka_address: str, tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    for events in stage.partitions:
        await events.enqueued(100)
    async with asyncio.timeout(BOUND):
        first = await child(stage, kafka_address, journal, "40")
        try:
            await eventually(lambda: {"0-40", "1-40"} <= set(noted(journal)))
        finally:
            first.kill()
            await first.wait()
        before = len(noted(journal))
        second = await child(stage, kafka_address, journal)
        try:
            await eventually(lambda: len(set(noted(journal))) == PARTITIONS * 100)
            second.terminate()
            assert await second.wait() == 0
        finally:
            if second.returncode is None:
                second.kill()
    after = noted(journal)[before:]
    for partition in range(PARTITIONS):
        again = [int(key.partition("-")[2]) for key in after if key.startswith(f"{partition}-")]
        # What was under way comes again; from there on everything once and in order.
        assert again == list(range(again[0], 100))
        assert again[0] <= 40
    assert await stage.committed() == {p: await stage.end(p) for p in range(PARTITIONS)}


async def test_a_second_process_joins_while_events_are_delivered(stage: Stage) -> None:
    one, two = Seen(), Seen()
    for events in stage.partitions:
        await events.enqueued(300)
    async with stage.observing(one.handler(), settings=HASTY) as first:
        async with stage.observing(two.handler(), settings=HASTY, share=1):
            for events in stage.partitions:
                await events.enqueued(300)
            await eventually(lambda: len({*one.keys(), *two.keys()}) == PARTITIONS * 600)
            await eventually(lambda: len(first.assignment) == 1)
            assert two.keys()
        await eventually(lambda: len(first.assignment) == PARTITIONS)
        await stage.partitions[0].enqueued(1)
        await stage.partitions[1].enqueued(1)
        await eventually(lambda: len({*one.keys(), *two.keys()}) == PARTITIONS * 601)
    assert await stage.committed() == {p: await stage.end(p) for p in range(PARTITIONS)}


async def test_a_poison_becomes_a_dead_letter_and_is_redriven(stage: Stage) -> None:
    seen = Seen()
    await stage.partitions[0].enqueued(3)
    poison = seen.handler(failing=lambda context: context.sequence == 1 and not context.is_redrive)
    async with stage.observing(poison) as observer:
        await eventually(lambda: seen.has("0-2") and observer.counters.dead_lettered == 1)
        assert [letter.sequence for letter in await open_letters(stage.log, stage.topics, "watch")] == [1]
        assert await request_redrive(stage.log, stage.topics, "watch", actor="ann", at=START) == 1
        await eventually(lambda: seen.contexts[-1].is_redrive)
    assert await open_letters(stage.log, stage.topics, "watch") == []
