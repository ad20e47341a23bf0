"""How far observers are, as `tidelog observers` and the doctor tell it."""

from __future__ import annotations

import asyncio
import re
import threading
from dataclasses import replace

from tests.conformance.cluster import SECONDS
from tests.engine.house import eventually
from tests.observer.stage import HASTY, NEVER, TOPICS, Seen, Stage

from tidelog.handler.jobs import Retry
from tidelog.observer.context import ObserverContext
from tidelog.observer.status import ObserverStatus, observer_statuses
from tidelog_events.instants import SECOND, Instant


async def status(stage: Stage) -> ObserverStatus:
    """Of the only observer."""
    [found] = await observer_statuses(stage.log, TOPICS)
    return found


async def test_what_it_has_yet_to_be_told_is_counted_and_dated(stage: Stage) -> None:
    assert await observer_statuses(stage.log, TOPICS) == []
    held, release = threading.Event(), threading.Event()

    def slow(context: ObserverContext) -> None:
        if context.idempotency_key == "0-1":
            held.set()
            release.wait(NEVER)

    first, second = stage.partitions
    await first.enqueued(5)
    await second.enqueued(3)
    try:
        settings = replace(HASTY, grace_seconds=0.0)
        async with stage.observing(slow, timeout=NEVER, settings=settings) as observer:
            await eventually(lambda: held.is_set() and observer.counters.delivered == 4)
            assert (await status(stage)).members == 1
    finally:
        release.set()
    found = await status(stage)
    assert (found.observer_id, found.members, found.dead_letters) == ("watch", 0, 0)
    assert [(one.next_offset, one.events, one.oldest) for one in found.positions] == [
        (1, 4, first.written[1].at),
        (3, 0, None),
    ]
    assert found.events == 4
    assert found.lag_seconds(Instant(first.written[1].at + 90 * SECOND)) == 90

    # While it is away more happens, and it is behind in the other partition, too.
    await second.enqueued(2)
    assert [one.events for one in (await status(stage)).positions] == [4, 2]
    async with stage.observing(Seen().handler()) as observer:
        await eventually(lambda: observer.counters.delivered == 6)
    found = await status(stage)
    assert (found.events, found.lag_seconds(Instant(10**18))) == (0, 0)


async def test_what_a_failing_event_is_tried_for_is_told_before_it_is_given_up_on(stage: Stage) -> None:
    await stage.partitions[1].enqueued(2)
    broken = threading.Event()
    broken.set()
    doomed = Seen().handler(failing=lambda context: broken.is_set() and context.sequence == 1)
    patient = Retry(max_attempts=1_000, delays=[0.05])

    async def told(*expected: str | None) -> bool:
        found = [position.failing for position in (await status(stage)).positions]
        return all(re.fullmatch(word or "", said or "") for word, said in zip(expected, found, strict=True))

    async with stage.observing(doomed, retry=patient) as observer, asyncio.timeout(SECONDS):
        await eventually(lambda: observer.counters.failed_tries > 1)
        while not await told(None, r"try \d+ of event 1-1 failed: ValueError: not 1-1"):
            tries = observer.counters.failed_tries
            await eventually(lambda tries=tries: observer.counters.failed_tries > tries)  # type: ignore[misc]
        assert (await status(stage)).dead_letters == 0
        broken.clear()
        await eventually(lambda: observer.counters.delivered == 2)
    assert await told(None, None)


async def test_an_event_of_a_newer_release_is_told_as_what_holds_its_partition(stage: Stage) -> None:
    await stage.partitions[0].put_raw((b"k", b'{"type": "enqueued", "version": 999}'))
    async with stage.observing(Seen().handler()) as observer:
        await eventually(lambda: 0 in observer.stopped)
    [held, _] = (await status(stage)).positions
    assert "version" in (held.failing or "")


async def test_dead_letters_are_counted_and_the_newest_is_quoted(stage: Stage) -> None:
    await stage.partitions[0].enqueued(3)
    seen = Seen()
    doomed = seen.handler(failing=lambda context: context.sequence < 2)
    async with stage.observing(doomed, retry=Retry(max_attempts=1)):
        await eventually(lambda: seen.has("0-2"))
    found = await status(stage)
    assert (found.events, found.dead_letters, found.last_error) == (0, 2, "ValueError: not 0-1")
