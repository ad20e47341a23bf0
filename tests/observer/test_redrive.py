"""Dead letters are delivered again when somebody asks, each until it is resolved."""

from __future__ import annotations

import asyncio
import threading

from tests.conformance.cluster import SECONDS
from tests.engine.house import eventually
from tests.observer.stage import START, TOPICS, Seen, Stage

from tidelog.log.port import TopicPartition
from tidelog.observer.context import ObserverContext
from tidelog.observer.dead_letters import RedriveRequest, home_of
from tidelog.observer.letters import open_letters, request_redrive


async def test_a_redriven_letter_is_delivered_once_and_done_with(stage: Stage) -> None:
    mended = threading.Event()
    seen = Seen()
    await stage.partitions[0].enqueued(3)
    handler = seen.handler(failing=lambda context: context.sequence < 2 and not mended.is_set())
    async with stage.observing(handler):
        await eventually(lambda: seen.has("0-2"))
        assert len(await open_letters(stage.log, TOPICS, "watch")) == 2
        mended.set()
        assert await request_redrive(stage.log, TOPICS, "watch", actor="ann", at=START, limit=1) == 1
        await eventually(lambda: seen.contexts[-1].is_redrive)
        assert seen.keys()[-1] == "0-0"
    # The rest, asked for while nobody runs, and asked for twice.
    for _ in range(2):
        assert await request_redrive(stage.log, TOPICS, "watch", actor="ann", at=START) == 1
    async with stage.observing(handler):
        await eventually(lambda: seen.keys()[-1] == "0-1" and seen.contexts[-1].is_redrive)
        await stage.partitions[0].enqueued(1)
        await eventually(lambda: seen.has("0-3"))
    assert await open_letters(stage.log, TOPICS, "watch") == []
    assert await request_redrive(stage.log, TOPICS, "watch", actor="ann", at=START) == 0
    assert [context.idempotency_key for context in seen.contexts if context.is_redrive] == ["0-0", "0-1"]


async def test_a_letter_that_fails_again_is_a_new_letter(stage: Stage) -> None:
    await stage.partitions[0].enqueued(1)
    seen = Seen()
    async with stage.observing(seen.handler(failing=lambda _: True)) as observer:
        await eventually(lambda: observer.counters.dead_lettered == 1)
        await request_redrive(stage.log, TOPICS, "watch", actor="ann", at=START)
        await eventually(lambda: observer.counters.dead_lettered == 2)
    assert len(seen) == 6
    assert [letter.redrives for letter in await stage.dead_letters()] == [0, 1]
    [left] = await open_letters(stage.log, TOPICS, "watch")
    assert (left.redrives, left.tries, left.identity) == (1, 3, (0, 0))


async def test_what_is_unreadable_stays_a_letter(stage: Stage) -> None:
    await stage.partitions[0].put_raw((b"q/1", b"{"))
    seen = Seen()
    async with stage.observing(seen.handler()) as observer:
        await eventually(lambda: observer.counters.dead_lettered == 1)
        await request_redrive(stage.log, TOPICS, "watch", actor="ann", at=START)
        await eventually(lambda: observer.counters.dead_lettered == 2)
    assert [letter.value for letter in await stage.dead_letters()] == [b"{", b"{"]


async def test_a_request_that_means_what_does_not_exist_is_passed_over(stage: Stage) -> None:
    topic = stage.topics.observer_dead_letters
    home = home_of(topic, "watch", await stage.log.partitions(topic))
    forged = RedriveRequest("watch", 10_000, "mallory", START)
    producer = await stage.log.producer()
    await producer.append([forged.record(home)], timeout=SECONDS)
    await producer.close()
    await stage.partitions[0].enqueued(1)
    seen = Seen()
    is_well = threading.Event()
    async with stage.observing(seen.handler(failing=lambda _: not is_well.is_set())) as observer:
        await eventually(lambda: observer.counters.dead_lettered == 1)
        is_well.set()
        assert await request_redrive(stage.log, stage.topics, "watch", actor="ann", at=START) == 1
        await eventually(lambda: observer.counters.delivered == 1)


async def test_letters_of_others_are_left_alone_and_a_letter_twice_is_delivered_once(stage: Stage) -> None:
    await stage.partitions[0].enqueued(1)
    await stage.partitions[0].enqueued(1, queue="theirs")
    for name, queue in (("watch", "q"), ("other", "theirs")):
        doomed = Seen()
        async with stage.observing(doomed.handler(failing=lambda _: True), name, queue=queue) as observer:
            await eventually(lambda observer=observer: observer.counters.dead_lettered == 1)  # type: ignore[misc]
    # As it stands when a process has died between the letter and the commit.
    home = TopicPartition(TOPICS.observer_dead_letters, 0)
    [letter, _] = await stage.dead_letters()
    producer = await stage.log.producer()
    await producer.append([letter.record(home)], timeout=SECONDS)
    await producer.close()
    assert [one.observer_id for one in await open_letters(stage.log, TOPICS, "watch")] == ["watch"]

    seen = Seen()
    async with stage.observing(seen.handler()):
        await request_redrive(stage.log, TOPICS, "watch", actor="ann", at=START)
        await eventually(lambda: len(seen) == 1)
        await stage.partitions[1].enqueued(1)
        await eventually(lambda: len(seen) == 2)
    assert seen.keys() == ["0-0", "1-0"]
    assert len(await open_letters(stage.log, TOPICS, "other")) == 1


async def test_a_redrive_that_is_stopped_goes_on_where_it_was(stage: Stage) -> None:
    doomed = Seen()
    await stage.partitions[0].enqueued(4)
    async with stage.observing(doomed.handler(failing=lambda _: True)) as observer:
        await eventually(lambda: observer.counters.dead_lettered == 4)
    await request_redrive(stage.log, TOPICS, "watch", actor="ann", at=START)

    entered, release = threading.Event(), threading.Event()
    seen = Seen()

    def slow(context: ObserverContext) -> None:
        seen.take(context)
        if len(seen) == 2:
            entered.set()
            release.wait(SECONDS)

    async with stage.observing(slow):
        await eventually(entered.is_set)
        asyncio.get_running_loop().call_later(0.05, release.set)
    async with stage.observing(slow):
        await eventually(lambda: len(seen) == 4)
    assert seen.keys() == ["0-0", "0-1", "0-2", "0-3"]
