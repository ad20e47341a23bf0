"""Events are delivered at least once and in order, and committed only when they are resolved."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace

import pytest
from tests.engine.faults import Fault, FaultyLog, once
from tests.engine.house import eventually
from tests.observer.stage import HASTY, NEVER, PARTITIONS, Seen, Stage

from tidelog.app import App
from tidelog.handler.jobs import Retry
from tidelog.log.port import MAX_RECORD_BYTES
from tidelog.log.topics import Topics
from tidelog.observer import handlers
from tidelog.observer.context import ObserverContext
from tidelog.observer.keeping import keep_observing
from tidelog.observer.lane import MOST_WAITING
from tidelog.observer.observer import Observer
from tidelog_events.transitions import Transition


def numbered(partition: int, count: int, first: int = 0) -> list[str]:
    return [f"{partition}-{sequence}" for sequence in range(first, first + count)]


async def test_a_backlog_is_worked_off_in_order_and_committed(stage: Stage) -> None:
    count = MOST_WAITING + 200  # more than a lane takes at once
    await stage.partitions[0].enqueued(count)
    await stage.partitions[1].enqueued(5)
    seen = Seen()
    async with stage.observing(seen.handler()) as observer:
        await eventually(lambda: len(seen) == count + 5)
        await stage.partitions[1].enqueued(2)
        await eventually(lambda: len(seen) == count + 7)
    assert seen.keys(0) == numbered(0, count)
    assert seen.keys(1) == numbered(1, 7)
    assert observer.counters.delivered == len(seen)
    assert await stage.committed() == {p: await stage.end(p) for p in range(PARTITIONS)}


async def test_what_was_delivered_is_not_delivered_again_after_a_restart(stage: Stage) -> None:
    await stage.partitions[0].enqueued(3)
    seen = Seen()
    for round_ in range(1, 3):
        async with stage.observing(seen.handler()):
            await eventually(lambda round_=round_: len(seen) == 3 * round_)  # type: ignore[misc]
        await stage.partitions[0].enqueued(3)
    assert seen.keys() == numbered(0, 6)


async def test_a_plain_function_runs_in_a_thread_and_takes_the_transition(stage: Stage) -> None:
    await stage.partitions[0].enqueued(3)
    told: list[tuple[Transition, str]] = []

    def handle(transition: Transition) -> None:
        told.append((transition, threading.current_thread().name))

    async with stage.observing(handle):
        await eventually(lambda: len(told) == 3)
    assert [event for event, _ in told] == stage.partitions[0].written
    assert all(name.startswith("tidelog-observer-watch") for _, name in told)


async def test_a_failure_is_tried_again_and_holds_back_its_partition_alone(stage: Stage) -> None:
    release = threading.Event()
    seen = Seen()
    for events in stage.partitions:
        await events.enqueued(3)
    handler = seen.handler(failing=lambda context: context.idempotency_key == "0-1" and not release.is_set())
    async with stage.observing(handler, retry=Retry(max_attempts=1_000, delays=[0])):
        await eventually(lambda: len(seen.keys(1)) == 3 and seen.keys(0).count("0-1") >= 3)
        assert not seen.has("0-2")
        release.set()
        await eventually(lambda: seen.has("0-2"))
    tries = [context.try_number for context in seen.contexts if context.idempotency_key == "0-1"]
    assert tries == list(range(1, len(tries) + 1))
    assert await stage.dead_letters() == []


async def test_after_the_last_try_the_event_is_a_dead_letter_and_the_rest_goes_on(stage: Stage) -> None:
    await stage.partitions[0].enqueued(3)
    seen = Seen()
    async with stage.observing(seen.handler(failing=lambda context: context.sequence == 1)) as observer:
        await eventually(lambda: seen.has("0-2"))
    assert seen.keys() == ["0-0", *3 * ["0-1"], "0-2"]
    assert (observer.counters.failed_tries, observer.counters.dead_lettered) == (3, 1)
    [letter] = await stage.dead_letters()
    assert (letter.observer_id, letter.partition, letter.sequence, letter.tries) == ("watch", 0, 1, 3)
    assert letter.error == "ValueError: not 0-1"
    assert "stage.py" in letter.detail
    [record] = await stage.dead_letter_records()
    assert record.key == b"watch"
    headers = dict(record.headers)
    assert {"kind", "observer", "error", "partition", "sequence", "tries", "at"} <= headers.keys()


async def test_the_default_back_off_is_that_of_jobs(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    await stage.partitions[0].enqueued(1)
    seen = Seen()
    async with stage.observing(seen.handler(failing=lambda _: True), retry=Retry()):
        await eventually(lambda: "the next is in 2 s" in caplog.text)
    # A stop does not wait for the next try, and nothing is committed past it.
    assert (await stage.committed())[0] == 0
    assert await stage.dead_letters() == []


@pytest.mark.parametrize("kind", ["hanging", "blocking", "thread"])
async def test_a_handler_that_does_not_end_is_left_behind(stage: Stage, kind: str) -> None:
    release = threading.Event()
    seen = Seen()

    async def hanging(context: ObserverContext) -> None:
        seen.take(context)
        while context.sequence == 1 and not release.is_set():
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue  # it does not let itself be cancelled

    async def blocking(context: ObserverContext) -> None:
        seen.take(context)
        if context.sequence == 1:
            release.wait(NEVER)

    def thread(context: ObserverContext) -> None:
        seen.take(context)
        if context.sequence == 1:
            release.wait(NEVER)

    handler = {"hanging": hanging, "blocking": blocking, "thread": thread}[kind]
    other = Seen()
    await stage.partitions[0].enqueued(3)
    try:
        async with (
            stage.observing(handler, timeout=0.05, retry=Retry(max_attempts=2, delays=[0])),
            stage.observing(other.handler(), "other"),
        ):
            # Another observer of the same process is not held up.
            await eventually(lambda: other.keys() == numbered(0, 3))
            await eventually(lambda: seen.keys() == ["0-0", "0-1", "0-1", "0-2"])
        [letter] = await stage.dead_letters()
        assert letter.error == "TimeoutError: the handler did not end within 0.05 s"
    finally:
        release.set()


async def test_with_too_many_left_behind_it_waits_for_one_to_end(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(handlers, "MAX_LEFT_BEHIND", 2)
    release = threading.Event()
    seen = Seen()

    def handle(context: ObserverContext) -> None:
        seen.take(context)
        if context.sequence < 2:
            release.wait(NEVER)

    await stage.partitions[0].enqueued(3)
    try:
        async with stage.observing(handle, timeout=0.02, retry=Retry(max_attempts=1)):
            await eventually(lambda: "2 handlers hang after their timeout" in caplog.text)
            assert seen.keys() == ["0-0", "0-1"]
            release.set()
            await eventually(lambda: seen.has("0-2"))
    finally:
        release.set()


async def test_a_fault_in_an_observer_starts_a_new_one_and_loses_nothing(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen()
    app = App()
    app.observer("watch", start="beginning")(seen.handler())
    [definition] = app.observers
    await stage.partitions[0].enqueued(2)
    log = await stage.cluster.connect()
    wrong = Observer(log, Topics("not-there"), definition, settings=HASTY)
    right = Observer(log, stage.topics, definition, settings=HASTY)
    lives = iter([wrong, right])
    stop = asyncio.Event()
    keeping = asyncio.create_task(keep_observing("watch", lambda: next(lives), stop, pause_seconds=0.0))
    await eventually(lambda: seen.keys() == ["0-0", "0-1"])
    stop.set()
    await keeping
    assert "observer watch has failed" in caplog.text


async def test_a_cancelled_handler_that_ends_is_not_left_behind(stage: Stage) -> None:
    cancelled = threading.Event()

    async def handle(_transition: Transition) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    await stage.partitions[0].enqueued(1)
    async with stage.observing(handle, timeout=0.3, retry=Retry(max_attempts=1)) as observer:
        await eventually(lambda: observer.counters.dead_lettered == 1)
    assert cancelled.is_set()


@pytest.mark.parametrize("how", ["SystemExit", "KeyboardInterrupt", "stop"])
async def test_what_ends_an_event_loop_ends_no_observer(stage: Stage, how: str) -> None:
    await stage.partitions[0].enqueued(2)
    await stage.partitions[1].enqueued(1)
    errors = {"SystemExit": SystemExit, "KeyboardInterrupt": KeyboardInterrupt}

    async def child() -> None:
        raise errors[how]

    async def handle(context: ObserverContext) -> None:
        if context.try_number == 1 and context.partition == 0:
            if how == "stop":
                asyncio.get_running_loop().stop()
                raise ValueError(how)
            await asyncio.gather(asyncio.create_task(child()))

    async with stage.observing(handle) as observer:
        await eventually(lambda: observer.counters.delivered == 3)
    assert observer.counters.failed_tries == 2


async def test_a_stop_lets_the_running_delivery_finish(stage: Stage) -> None:
    begun, release = threading.Event(), threading.Event()
    seen = Seen()

    def handle(context: ObserverContext) -> None:
        seen.take(context)
        begun.set()
        release.wait(NEVER)

    await stage.partitions[0].enqueued(3)
    async with stage.observing(handle):
        await eventually(begun.is_set)
        asyncio.get_running_loop().call_later(0.05, release.set)
    assert seen.keys() == ["0-0"]
    assert (await stage.committed())[0] == 1


async def test_a_stop_does_not_wait_beyond_the_grace_time(stage: Stage) -> None:
    begun, release = threading.Event(), threading.Event()
    hung, again = Seen(), Seen()

    def handle(context: ObserverContext) -> None:
        hung.take(context)
        begun.set()
        release.wait(NEVER)

    await stage.partitions[0].enqueued(1)
    try:
        async with stage.observing(handle, settings=replace(HASTY, grace_seconds=0.0), timeout=NEVER):
            await eventually(begun.is_set)
        assert (await stage.committed())[0] == 0
        async with stage.observing(again.handler()):
            await eventually(lambda: again.keys() == ["0-0"])
    finally:
        release.set()


async def test_what_cannot_be_read_is_a_dead_letter(stage: Stage) -> None:
    events = stage.partitions[0]
    await events.put_raw((b"q/1", b"{"), (b"q/1", b'{"type": "unheard of"}'))
    await events.enqueued(1)
    seen = Seen()
    async with stage.observing(seen.handler()):
        await eventually(lambda: len(seen) == 1)
    [letter] = await stage.dead_letters()
    assert (letter.value, letter.sequence, letter.tries) == (b"{", None, 0)


@pytest.mark.parametrize("fault", [Fault.REFUSED, Fault.LOST, Fault.UNACKNOWLEDGED])
async def test_nothing_goes_on_before_the_dead_letter_is_written(stage: Stage, fault: Fault) -> None:
    await stage.partitions[0].enqueued(2)
    seen = Seen()
    log = FaultyLog(await stage.cluster.connect(), once(fault, stage.topics.observer_dead_letters))
    handler = seen.handler(failing=lambda context: context.sequence == 0)
    async with stage.observing(handler, log=log) as observer:
        await eventually(lambda: observer.counters.delivered == 1)
    written = [letter.identity for letter in await stage.dead_letters()]
    assert written == [(0, 0)] * (2 if fault is Fault.UNACKNOWLEDGED else 1)


async def test_a_poison_as_large_as_a_record_may_be_is_in_nobodys_way(stage: Stage) -> None:
    await stage.partitions[0].put_raw((b"q/1", b"x" * (MAX_RECORD_BYTES - 10)))
    await stage.partitions[0].enqueued(1)
    seen = Seen()
    async with stage.observing(seen.handler()):
        await eventually(lambda: len(seen) == 1)
    [record] = await stage.dead_letter_records()
    assert dict(record.headers)["truncated-from"] == b"999990"
    assert set(record.value or b"") == {ord("x")}
    [letter] = await stage.dead_letters()
    assert (letter.identity, letter.sequence) == ((0, 0), None)


async def test_an_unknown_version_stops_its_partition_and_names_it(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.partitions[0].put_raw((b"q/1", b'{"type": "enqueued", "version": 2}'))
    await stage.partitions[1].enqueued(1)
    seen = Seen()
    async with stage.observing(seen.handler()) as observer:
        await eventually(lambda: len(seen) == 1 and bool(observer.stopped))
        assert "version 2" in str(observer.stopped[0])
        await stage.partitions[1].enqueued(1)
        await eventually(lambda: len(seen) == 2)
    assert (await stage.committed())[0] == 0
    assert "stops at partition 0, offset 0" in caplog.text


async def test_a_second_process_takes_over_its_share_and_nothing_is_lost(stage: Stage) -> None:
    one, two = Seen(), Seen()
    async with stage.observing(one.handler()) as first:
        await stage.partitions[0].enqueued(50)
        await stage.partitions[1].enqueued(50)
        async with stage.observing(two.handler(), share=1):
            await eventually(lambda: len(first.assignment) == 1)
            for events in stage.partitions:
                await events.enqueued(20)
            await eventually(lambda: len({*one.keys(), *two.keys()}) == 140)
        assert two.keys()
        await eventually(lambda: len(first.assignment) == PARTITIONS)
        await stage.partitions[0].enqueued(1)
        await stage.partitions[1].enqueued(1)
        await eventually(lambda: len({*one.keys(), *two.keys()}) == 142)
    for seen in (one, two):
        for partition in range(PARTITIONS):
            keys = [int(key.partition("-")[2]) for key in seen.keys(partition)]
            assert keys == sorted(keys)


async def test_a_lost_partition_is_not_committed_and_a_running_try_may_finish(stage: Stage) -> None:
    begun, release = threading.Event(), threading.Event()
    one, two = Seen(), Seen()

    def slow(context: ObserverContext) -> None:
        one.take(context)
        begun.set()
        release.wait(NEVER)

    for events in stage.partitions:
        await events.enqueued(2)
    try:
        async with stage.observing(slow, timeout=NEVER) as first:
            await eventually(begun.is_set)
            await eventually(lambda: len(one) == 2)
            async with stage.observing(two.handler(), share=1) as second:
                [moved] = second.assignment
                await eventually(lambda: two.keys() == numbered(moved, 2))
                await eventually(lambda: moved not in first.assignment)
                release.set()
                await eventually(lambda: len(one) == 3)
    finally:
        release.set()
    assert one.keys(moved) == [f"{moved}-0"]  # begun before it was lost, and no more of it
    assert await stage.committed() == {0: 2, 1: 2}


async def test_a_partition_that_comes_back_waits_for_the_try_that_still_runs(stage: Stage) -> None:
    begun: list[str] = []
    ended: list[str] = []
    release = {partition: threading.Event() for partition in range(PARTITIONS)}
    two = Seen()

    def slow(context: ObserverContext) -> None:
        begun.append(context.idempotency_key)
        if context.sequence == 0:
            release[context.partition].wait(NEVER)
        ended.append(context.idempotency_key)

    for events in stage.partitions:
        await events.enqueued(1)
    try:
        async with stage.observing(slow, timeout=NEVER) as first:
            await eventually(lambda: len(begun) == 2)
            async with stage.observing(two.handler(), share=1) as second:
                [moved] = second.assignment
                await eventually(lambda: two.keys() == numbered(moved, 1))
                await eventually(lambda: moved not in first.assignment)
            other = 1 - moved
            await stage.partitions[moved].enqueued(1)
            release[other].set()
            for number in range(1, 5):  # each is a round of the observer, which has the partition again
                await stage.partitions[other].enqueued(1)
                await eventually(lambda number=number: f"{other}-{number}" in ended)  # type: ignore[misc]
            assert f"{moved}-1" not in begun
            release[moved].set()
            await eventually(lambda: f"{moved}-1" in ended)
    finally:
        for each in release.values():
            each.set()
