"""A worker from end to end: a real engine over a log in memory, real threads, real time with bounds."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest
from tests.worker.house import BOUND, PARTITIONS, TOPICS, History, House, RunningEngine

from tidelog.handler.context import JobContext
from tidelog.log.port import Log, LogUnavailable, TopicPartition
from tidelog.worker.dispatch import BadDispatch
from tidelog.worker.registry import JobRegistry
from tidelog.worker.settings import BadWorkerSettings, WorkerSettings
from tidelog.worker.worker import Worker, new_worker_id
from tidelog_events.identity import partition_of
from tidelog_events.transitions import DeadLettered, Leased, LeaseRenewed, RetryScheduled, Succeeded


async def test_jobs_are_run_and_their_outcomes_reported(house: House) -> None:
    async def double(number: int) -> int:
        return number * 2

    def shout(ctx: JobContext, text: str) -> str:
        ctx.add_tag("loud")
        return text.upper()

    house.job(double)
    house.job(shout)
    async with house.worker(concurrency=5) as worker:
        ids = [await house.enqueue("double", f"d{n}", payload={"number": n}) for n in range(40)]
        loud = await house.enqueue("shout", "s", payload={"text": "hé"})
        assert set(await house.until_ends(*ids, loud)) == {"succeeded"}
    last = house.history.of(loud)[-1]
    assert isinstance(last, Succeeded)
    assert (last.output, last.add_tags, last.worker_id) == ('"HÉ"'.encode(), ("loud",), worker.worker_id)
    for number, job_id in enumerate(ids):
        assert house.history.types(job_id) == ["enqueued", "leased", "succeeded"]
        succeeded = house.history.of(job_id)[-1]
        assert isinstance(succeeded, Succeeded)
        assert succeeded.output == str(number * 2).encode()


async def test_unroutable_and_failing_jobs_end_with_their_causes(house: House) -> None:
    async def fails() -> None:
        raise ValueError("by design")

    async def strict(number: int) -> None: ...

    house.job(fails)
    house.job(strict)
    async with house.worker():
        unknown = await house.enqueue("unknown", "u")
        wrong = await house.enqueue("strict", "w", payload={"number": "x"})
        failing = await house.enqueue("fails", "f", retry={"max_attempts": 2, "delays": [0]})
        assert await house.until_ends(unknown, wrong, failing) == [
            "quarantined",
            "quarantined",
            "dead_lettered",
        ]
    causes = [getattr(house.history.of(job_id)[-1], "terminal_cause", None) for job_id in (unknown, wrong)]
    assert causes[0] == "no handler registered for wire name 'unknown'"
    assert str(causes[1]).startswith("payload for wire name 'strict' no longer decodes: number: ")
    assert house.history.types(failing)[1:] == ["leased", "retry_scheduled", "leased", "dead_lettered"]
    retried, dead = house.history.of(failing)[2], house.history.of(failing)[-1]
    assert isinstance(retried, RetryScheduled)
    assert isinstance(dead, DeadLettered)
    assert dead.terminal_cause == "ValueError: by design"
    assert "raise ValueError" in str(retried.failure_detail)


async def test_a_handler_that_blocks_its_loop_for_three_leases_loses_nothing(house: House) -> None:
    released = threading.Event()
    lease = 0.6

    async def blocks() -> str:
        return str(released.wait(BOUND))  # the event loop stands still

    def goes_on(number: int) -> int:
        return number

    house.job(blocks)
    house.job(goes_on)
    job_id = await house.enqueue("blocks", "b")
    others = [await house.enqueue("goes_on", f"o{n}", payload={"number": n}) for n in range(5)]

    async def release() -> None:
        async with await house.open_log() as log:
            history = History(log)
            await history.start()

            def expiries() -> list[int]:
                facts = history.of(job_id)
                return [fact.lease_expiry for fact in facts if isinstance(fact, Leased | LeaseRenewed)]

            await history.until(
                lambda: (
                    bool(expiries())
                    and expiries()[-1] - expiries()[0] >= 3 * lease * 1_000_000
                    and all("succeeded" in history.types(other) for other in others)
                )
            )
        released.set()

    watcher = threading.Thread(target=lambda: asyncio.run(release()), daemon=True)
    watcher.start()
    async with house.worker(lease_seconds=lease, concurrency=4):
        assert set(await house.until_ends(job_id, *others)) == {"succeeded"}
    watcher.join(BOUND)
    for ended in (job_id, *others):
        assert house.history.types(ended) == ["enqueued", "leased", "succeeded"]


async def test_a_running_job_is_told_at_once_that_it_is_cancelled(house: House) -> None:
    async def endless() -> None:
        await asyncio.Event().wait()

    house.job(endless)
    async with house.worker(lease_seconds=600.0):
        job_id = await house.enqueue("endless", "e")
        await house.until_type(job_id, "leased")
        await house.cancel(job_id)
        assert await house.until_ends(job_id) == ["cancelled"]
    assert house.history.types(job_id) == ["enqueued", "leased", "cancel_requested", "cancelled"]


async def test_an_attempt_that_takes_too_long_fails(house: House) -> None:
    async def slow() -> None:
        await asyncio.Event().wait()

    house.job(slow, timeout=0.05)
    async with house.worker():
        job_id = await house.enqueue("slow", "s", retry={"max_attempts": 1})
        assert await house.until_ends(job_id) == ["dead_lettered"]
    dead = house.history.of(job_id)[-1]
    assert isinstance(dead, DeadLettered)
    assert dead.terminal_cause == "TimedOut: the attempt took longer than 0.05 s."


async def test_a_stop_lets_running_jobs_finish_and_renews_their_leases(house: House) -> None:
    begun, finish = asyncio.Event(), asyncio.Event()

    async def finishes() -> str:
        begun.set()
        await finish.wait()
        return "finished"

    house.job(finishes)
    async with house.worker(lease_seconds=0.6, concurrency=1):
        job_id = await house.enqueue("finishes", "f")
        waiting = await house.enqueue("finishes", "w")
        async with asyncio.timeout(BOUND):
            await begun.wait()

        async def finish_after_renewals() -> None:
            await house.until_type(job_id, "lease_renewed", 4)
            finish.set()

        finishing = asyncio.create_task(finish_after_renewals())
    await finishing
    assert await house.until_ends(job_id) == ["succeeded"]
    assert house.history.types(job_id) == ["enqueued", "leased", "succeeded"]
    assert house.history.types(waiting) == ["enqueued"]


async def test_what_does_not_finish_within_the_grace_is_given_back_and_runs_elsewhere(house: House) -> None:
    begun = asyncio.Event()
    stopping = True

    async def waits() -> str:
        begun.set()
        if stopping:
            await asyncio.Event().wait()
        return "elsewhere"

    house.job(waits)
    async with house.worker(grace_seconds=0.05) as first:
        job_id = await house.enqueue("waits", "w", retry={"max_attempts": 1})
        async with asyncio.timeout(BOUND):
            await begun.wait()
    await house.until_type(job_id, "returned")
    stopping = False
    async with house.worker() as second:
        assert await house.until_ends(job_id) == ["succeeded"]
    leases = [event for event in house.history.of(job_id) if isinstance(event, Leased)]
    assert [lease.worker_id for lease in leases] == [first.worker_id, second.worker_id]
    assert [lease.attempt for lease in leases] == [1, 2]


async def test_a_thread_that_cannot_be_stopped_does_not_keep_the_worker(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    begun, release = threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        release.wait(BOUND)

    house.job(stuck)
    with caplog.at_level(logging.WARNING, "tidelog.worker"):
        async with house.worker(grace_seconds=0.05):
            job_id = await house.enqueue("stuck", "s")
            assert await asyncio.to_thread(begun.wait, BOUND)
    release.set()
    assert "left behind" in caplog.text
    await house.until_type(job_id, "returned")


async def test_an_idle_worker_takes_its_claims_with_it(house: House) -> None:
    async def never() -> None: ...

    house.job(never)
    async with house.worker(wait_seconds=600.0, lease_seconds=2_400.0):
        probe = await house.enqueue("never", "probe")
        await house.until_ends(probe)
    job_id = await house.enqueue("never", "later")
    async with house.worker():
        assert await house.until_ends(job_id) == ["succeeded"]
    assert house.history.types(job_id) == ["enqueued", "leased", "succeeded"]


async def test_a_lost_engine_costs_a_worker_nothing_but_time(house: House) -> None:
    async def quick() -> None: ...

    house.job(quick)
    async with house.worker(wait_seconds=600.0, lease_seconds=2_400.0):
        first = await house.enqueue("quick", "1")
        await house.until_ends(first)
        second_engine = RunningEngine(house.open_log)  # its takeovers forget the claims that are parked
        ids = [await house.enqueue("quick", str(number)) for number in range(2, 30)]
        assert set(await house.until_ends(*ids)) == {"succeeded"}
    await second_engine.stop()


async def test_several_queues_share_the_slots(house: House) -> None:
    async def quick() -> None: ...

    house.job(quick)
    async with house.worker(queues=(), weights={"a": 2, "b": 1, "c": 1}, concurrency=2):
        ids = [await house.enqueue("quick", str(n), queue=queue) for n in range(20) for queue in "abc"]
        assert set(await house.until_ends(*ids)) == {"succeeded"}


async def test_a_cancelled_worker_gives_its_jobs_back(house: House) -> None:
    begun = asyncio.Event()

    async def endless() -> None:
        begun.set()
        await asyncio.Event().wait()

    house.job(endless)
    worker = Worker(
        registry=house.registry, open_log=house.open_log, topics=TOPICS, settings=WorkerSettings()
    )
    running = asyncio.create_task(worker.run(asyncio.Event()))
    job_id = await house.enqueue("endless", "e")
    async with asyncio.timeout(BOUND):
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    await house.until_type(job_id, "returned")


async def test_a_log_that_is_not_there_stops_the_start() -> None:
    async def nowhere() -> Log:
        raise LogUnavailable("nobody at memory:")

    worker = Worker(
        registry=JobRegistry(),
        open_log=nowhere,
        topics=TOPICS,
        settings=WorkerSettings(queues=("q",)),
    )
    with pytest.raises(LogUnavailable, match="nobody"):
        await worker.run(asyncio.Event())


async def test_claims_and_reports_travel_together(house: House) -> None:
    async def quick() -> None: ...

    house.job(quick)
    ids = [await house.enqueue("quick", str(number)) for number in range(300)]
    async with house.worker(concurrency=100):
        await house.until_ends(*ids)
    home = TopicPartition(TOPICS.commands, partition_of("default", PARTITIONS))
    commands = await house.log.end_offset(home)
    assert commands - len(ids) < 100, "a busy worker costs a few records per batch, not per job"


def test_worker_ids_are_new_for_every_start() -> None:
    ids = {new_worker_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(worker_id.isprintable() and len(worker_id) <= 200 for worker_id in ids)


@pytest.mark.parametrize(
    "settings",
    [
        {"concurrency": 0},
        {"concurrency": 10_001},
        {"lease_seconds": 0.1},
        {"lease_seconds": float("nan")},
        {"wait_seconds": -1},
        {"grace_seconds": float("inf")},
        {"queues": ("a",), "weights": {"a": 1}},
    ],
)
def test_settings_outside_their_bounds_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(BadWorkerSettings):
        WorkerSettings(**settings)  # type: ignore[arg-type]


def test_a_worker_without_any_queue_is_refused() -> None:
    with pytest.raises(BadDispatch):
        WorkerSettings().policy(())
