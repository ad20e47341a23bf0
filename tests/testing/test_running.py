"""Jobs under a harness: when they run, what becomes of them, and at which instant."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tidelog import App, JobContext, NewJob, NotCancellable, Result, Retry, UnknownParent
from tidelog.testing import Harness, HarnessError, WorkerSettings


def seconds_of(h: Harness, job_id: str) -> list[tuple[str, float]]:
    """The steps of a job, each with its second since the start."""
    start = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
    return [(step.TYPE, step.at / 1_000_000 - start) for step in h.history(job_id)]


def an_app() -> App:
    app = App()

    @app.job("add", queue="sums", timeout=30)
    async def add(a: int, b: int, nap: float = 0.0) -> int:
        if nap:
            await asyncio.sleep(nap)
        return a + b

    @app.job("flaky", queue="flaky", retry=Retry(max_attempts=3, delays=[5, 20]))
    async def flaky(ctx: JobContext, good_at: int) -> int:
        if ctx.attempt < good_at:
            raise ValueError(f"attempt {ctx.attempt} is no good")
        return ctx.attempt

    @app.job("total", queue="totals")
    async def total(ctx: JobContext, of: list[str]) -> int:
        outputs = [await ctx.dependency_output(job_id) for job_id in of]
        return sum(output for output in outputs if isinstance(output, int))

    @app.job("polling", queue="threads")
    def polling(ctx: JobContext, seconds: float) -> str:
        for second in range(1_000):
            if ctx.cancelled.wait_blocking(1.0):
                ctx.raise_if_cancelled()
            if second + 1 >= seconds:
                return f"{second + 1} polls"
        return "never"

    @app.job("stubborn", queue="stubborn")
    async def stubborn(ctx: JobContext) -> str:
        ctx.add_tag("seen", ctx.job_id)
        try:
            await ctx.cancelled.wait()
        except asyncio.CancelledError:
            return "cancelled, and finished all the same"
        return "told"

    return app


async def test_nothing_runs_before_it_is_asked_for() -> None:
    async with Harness(an_app()) as h:
        job_id = await h.enqueue("add", {"a": 1, "b": 2}, queue="sums")
        h.assert_state(job_id, "Scheduled")
        await asyncio.sleep(0)
        h.assert_state(job_id, "Scheduled")
        assert await h.run_due() == 1
        h.assert_output(job_id, 3)
        assert await h.run_due() == 0


async def test_a_delayed_job_runs_at_its_own_instant() -> None:
    async with Harness(an_app()) as h:
        job_id = await h.enqueue("add", {"a": 1, "b": 2}, queue="sums", delay=90)
        assert await h.advance(89) == 0
        h.assert_state(job_id, "Scheduled")
        assert await h.advance(timedelta(minutes=5)) == 1
        assert seconds_of(h, job_id) == [("enqueued", 0), ("leased", 90), ("succeeded", 90)]
        assert h.now == datetime(2026, 1, 1, 0, 6, 29, tzinfo=UTC)


async def test_a_handler_that_sleeps_takes_virtual_time_and_its_lease_is_renewed() -> None:
    async with Harness(an_app()) as h:
        job_id = await h.enqueue("add", {"a": 1, "b": 2, "nap": 25}, queue="sums")
        await h.run_due()
        leased = h.assert_state(job_id, "Leased")
        await h.advance(24)
        renewed = h.assert_state(job_id, "Leased")
        assert leased.lease_expiry is not None
        assert renewed.lease_expiry == leased.lease_expiry + 20_000_000
        await h.advance(1)
        h.assert_output(job_id, 3)
        assert seconds_of(h, job_id)[-1] == ("succeeded", 25)


async def test_retries_come_after_their_delays_and_end_in_the_dead_letters() -> None:
    async with Harness(an_app()) as h:
        good = await h.enqueue("flaky", {"good_at": 3}, queue="flaky", retry=Retry(3, [5, 20]))
        bad = await h.enqueue("flaky", {"good_at": 9}, queue="flaky", retry=Retry(2, [7]))
        assert await h.run_until_idle() == 5
        h.assert_output(good, 3)
        assert [at for step, at in seconds_of(h, good) if step == "leased"] == [0, 5, 25]
        record = h.assert_state(bad, "DeadLettered")
        assert record.terminal_cause == "ValueError: attempt 2 is no good"
        await h.requeue(bad)
        await h.run_until_idle()
        assert h.assert_state(bad, "DeadLettered").attempt == 2


async def test_a_timeout_stops_the_attempt_at_its_instant() -> None:
    async with Harness(an_app()) as h:
        job_id = await h.enqueue("add", {"a": 1, "b": 2, "nap": 60}, queue="sums", retry=Retry(1))
        await h.advance(60)
        record = h.assert_state(job_id, "DeadLettered")
        assert record.terminal_cause == "TimedOut: the attempt took longer than 30 s."
        assert seconds_of(h, job_id)[-1] == ("dead_lettered", 30)


async def test_a_job_waits_for_parents_on_other_partitions_and_reads_their_outputs() -> None:
    async with Harness(an_app(), partitions=64) as h:
        first = await h.enqueue("add", {"a": 1, "b": 2}, queue="sums")
        second = await h.enqueue("add", {"a": 3, "b": 4}, queue="sums", delay=10)
        child = await h.enqueue("total", {"of": [first, second]}, queue="totals", parents=[first, second])
        await h.run_due()
        assert h.assert_state(child, "AwaitingParent").parents_remaining == 1
        await h.advance(10)
        h.assert_output(child, 10)
        with pytest.raises(UnknownParent):
            await h.enqueue("add", {"a": 1, "b": 2}, parents=["sums/none"])


async def test_plain_functions_run_in_threads_and_wait_on_virtual_time() -> None:
    async with Harness(an_app()) as h:
        job_id = await h.enqueue("polling", {"seconds": 500}, queue="threads")
        other = await h.enqueue("polling", {"seconds": 2}, queue="threads")
        await h.advance(499)
        h.assert_output(other, "2 polls")
        h.assert_state(job_id, "Leased")
        await h.advance(1)
        h.assert_output(job_id, "500 polls")


async def test_a_running_job_is_cancelled_in_a_thread_and_on_the_loop() -> None:
    async with Harness(an_app()) as h:
        thread = await h.enqueue("polling", {"seconds": 500}, queue="threads")
        task = await h.enqueue("add", {"a": 1, "b": 1, "nap": 20}, queue="sums")
        stubborn = await h.enqueue("stubborn", {}, queue="stubborn")
        await h.advance(3)
        for job_id in (thread, task, stubborn):
            assert await h.cancel(job_id, actor="ann") is Result.CANCELLATION_REQUESTED
            h.assert_state(job_id, "Leased")
        assert await h.run_due() == 3
        for job_id in (thread, task):
            h.assert_state(job_id, "Cancelled")
            assert seconds_of(h, job_id)[-1] == ("cancelled", 3)
        assert h.assert_output(stubborn, "cancelled, and finished all the same").tags == (("seen", stubborn),)
        with pytest.raises(NotCancellable):
            await h.cancel(task)


async def test_without_cancellation_by_exception_a_handler_is_told_by_its_context_alone() -> None:
    async with Harness(an_app(), worker=WorkerSettings(cancel_by_exception=False)) as h:
        job_id = await h.enqueue("stubborn", {}, queue="stubborn")
        await h.run_due()
        await h.cancel(job_id)
        await h.run_due()
        h.assert_output(job_id, "told")


async def test_pauses_and_limits_hold() -> None:
    async with Harness(an_app()) as h:
        await h.pause("sums")
        jobs = await h.enqueue_many(
            [NewJob("add", {"a": 1, "b": 1, "nap": 10}, queue="sums") for _ in range(3)]
        )
        await h.advance(60)
        assert [job.job_id for job in h.jobs(state="Scheduled", queue="sums")] == jobs
        await h.limit("sums", 1)
        await h.resume("sums")
        await h.run_due()
        assert len(h.jobs(state="Leased")) == 1
        await h.advance(30)
        assert [seconds_of(h, job_id)[-1][1] for job_id in jobs] == [70, 80, 90]


@pytest.mark.parametrize("concurrency", [1, 2, 10])
async def test_the_pool_is_never_exceeded_and_few_slots_serve_many_queues(concurrency: int) -> None:
    async with Harness(an_app(), worker=WorkerSettings(concurrency=concurrency)) as h:
        jobs = [await h.enqueue("add", {"a": 1, "b": n, "nap": 10}, queue="sums") for n in range(4)]
        await h.advance(1)
        assert len(h.jobs(state="Leased")) == min(concurrency, 4)
        await h.run_until_idle()
        for job_id in jobs:
            h.assert_state(job_id, "Succeeded")
        late = await h.enqueue("flaky", {"good_at": 1}, queue="flaky", delay=86_400)
        await h.advance(86_400)
        assert seconds_of(h, late)[-1][1] - seconds_of(h, late)[0][1] == 86_400


async def test_a_worker_whose_claims_do_not_wait_runs_what_is_due_later_too() -> None:
    app = App()

    @app.job("only")
    async def only() -> int:
        return 1

    async with Harness(app, worker=WorkerSettings(wait_seconds=0)) as h:
        first = await h.enqueue(only.job())
        await h.run_due()
        h.assert_output(first, 1)
        late = await h.enqueue(only.job(), delay=10)
        await h.advance(20)
        h.assert_output(late, 1)


async def test_a_job_that_no_handler_knows_is_quarantined() -> None:
    async with Harness(an_app()) as h:
        unknown = await h.enqueue("nobody", queue="sums")
        misfit = await h.enqueue("add", {"a": "one"}, queue="sums")
        elsewhere = await h.enqueue("nobody", queue="not-served-here")
        await h.run_until_idle()
        assert h.assert_state(unknown, "Quarantined").terminal_cause == (
            "no handler registered for wire name 'nobody'"
        )
        assert "no longer decodes" in (h.assert_state(misfit, "Quarantined").terminal_cause or "")
        h.assert_state(elsewhere, "Scheduled")


async def test_ended_jobs_are_purged_and_still_known_to_assertions() -> None:
    async with Harness(an_app()) as h:
        job_id = await h.enqueue("add", {"a": 1, "b": 2}, queue="sums")
        await h.advance(timedelta(days=2))
        assert h.job(job_id) is None
        assert h.jobs() == []
        h.assert_output(job_id, 3)
        assert [step.TYPE for step in h.history(job_id)] == ["enqueued", "leased", "succeeded"]
        assert [event.TYPE for event in h.transitions()][-1] == "purged"


async def test_an_application_without_jobs_can_be_looked_at() -> None:
    async with Harness(App()) as h:
        await h.send("resize", {"w": 80}, queue="images")
        assert await h.run_until_idle() == 0
        assert h.assert_enqueued("resize", queue="images", payload={"w": 80}, count=1)


async def test_what_never_ends_is_named() -> None:
    app = App()

    @app.job("again", retry=Retry(max_attempts=1_000, delays=[60]))
    async def again() -> None:
        raise ValueError("never")

    async with Harness(app) as h:
        job_id = await h.enqueue(again.job())
        with pytest.raises(HarnessError, match=f"after 600 s: {job_id} "):
            await h.run_until_idle(timedelta(minutes=10))
        assert h.now == datetime(2026, 1, 1, 0, 10, tzinfo=UTC)


async def test_time_begins_where_it_is_said_and_never_goes_back() -> None:
    start = datetime(2030, 5, 17, 12, tzinfo=UTC)
    async with Harness(an_app(), start=start) as h:
        assert h.now == start
        await h.advance_to(start + timedelta(hours=3))
        assert h.now == start + timedelta(hours=3)
        with pytest.raises(ValueError, match="cannot go back"):
            await h.advance_to(start)
        with pytest.raises(ValueError, match="cannot go back"):
            await h.advance(-1)
    with pytest.raises(ValueError, match="no time zone"):
        Harness(an_app(), start=datetime(2030, 5, 17))  # noqa: DTZ001 - that is the point
    with pytest.raises(ValueError, match="partitions"):
        Harness(an_app(), partitions=0)


async def test_of_two_outcomes_at_one_instant_that_of_the_earlier_attempt_comes_first() -> None:
    app = App()

    @app.job("steps")
    async def steps(count: int) -> None:
        for _ in range(count):
            await asyncio.sleep(0)

    async with Harness(app) as h:
        ids = [await h.enqueue(steps.job(count=count)) for count in (9, 0, 5)]
        await h.run_due()
        ended = [h.history(job_id)[-1] for job_id in ids]
        assert [step.TYPE for step in ended] == ["succeeded"] * 3
        assert ended == sorted(ended, key=lambda step: step.sequence)


@pytest.mark.parametrize("call", ["advance", "run_until_idle"])
async def test_no_test_lasts_for_ever(call: str) -> None:
    async with Harness(App()) as h:
        with pytest.raises(ValueError, match="without an end"):
            await getattr(h, call)(float("inf"))


async def test_handlers_that_still_run_end_with_the_harness() -> None:
    ended: list[str] = []
    app = App()

    @app.job("long")
    async def long() -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.append("long")

    async with Harness(app) as h:
        await h.enqueue(long.job())
        await h.run_due()
        assert not ended
    assert ended == ["long"]
