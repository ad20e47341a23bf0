"""What handlers raise, and how a test gets to see it."""

from __future__ import annotations

import asyncio
import traceback

import pytest

from tidelog import App, JobContext, Retry
from tidelog.testing import AttemptFailed, Harness

app = App()


@app.job("fails", retry=Retry(max_attempts=2, delays=[10]))
async def fails(ctx: JobContext, name: str) -> None:
    _deeper(f"{name}, attempt {ctx.attempt}")


@app.job("fails-in-thread", retry=Retry(max_attempts=1))
def fails_in_thread() -> object:
    return object()


@app.job("ends-the-test", retry=Retry(max_attempts=1))
async def ends_the_test(how: str) -> None:
    if how == "interrupt":
        raise KeyboardInterrupt
    pytest.fail("the handler says so")


@app.job("hangs", retry=Retry(max_attempts=1), timeout=30)
async def hangs(how: str) -> None:
    try:
        await asyncio.sleep(3_600)
    except asyncio.CancelledError:
        if how == "for good":
            await asyncio.sleep(3_600)
        raise


@app.job("returns-much", retry=Retry(max_attempts=1))
async def returns_much() -> str:
    return "x" * 70_000


def _deeper(text: str) -> None:
    raise ValueError(text)


async def test_failures_are_kept_with_their_exceptions() -> None:
    async with Harness(app) as h:
        first = await h.enqueue(fails.job(name="a"))
        second = await h.enqueue(fails.job(name="b"))
        odd = await h.enqueue(fails_in_thread.job())
        await h.run_until_idle()
        assert [
            (found.job_id, found.attempt, str(found.error)) for found in h.failures if found.job_id != odd
        ] == [
            (first, 1, "a, attempt 1"),
            (second, 1, "b, attempt 1"),
            (first, 2, "a, attempt 2"),
            (second, 2, "b, attempt 2"),
        ]
        assert "no valid JSON" in (h.assert_state(odd, "DeadLettered").terminal_cause or "")
        assert h.assert_state(second, "DeadLettered").terminal_cause == "ValueError: b, attempt 2"


async def test_a_failure_is_raised_with_its_traceback_after_it_is_written_down() -> None:
    async with Harness(app, raise_failures=True) as h:
        job_id = await h.enqueue(fails.job(name="a"))
        with pytest.raises(ValueError, match="a, attempt 1") as caught:
            await h.advance(60)
        assert "_deeper" in [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
        assert caught.value.__notes__ == [f"Raised by attempt 1 of {job_id}."]
        h.assert_state(job_id, "Scheduled")
        with pytest.raises(ValueError, match="a, attempt 2"):
            await h.advance(60)
        h.assert_state(job_id, "DeadLettered")
        assert await h.run_due() == 0


@pytest.mark.parametrize(
    ("how", "error"), [("interrupt", KeyboardInterrupt), ("fail", pytest.fail.Exception)]
)
async def test_the_end_of_a_test_is_no_failure_to_be_swallowed(how: str, error: type[BaseException]) -> None:
    async with Harness(app) as h:
        job_id = await h.enqueue(ends_the_test.job(how=how))
        with pytest.raises(error):
            await h.run_due()
        h.assert_state(job_id, "DeadLettered")


@pytest.mark.parametrize(
    ("wire_name", "payload", "why"),
    [
        ("hangs", {"how": "once"}, "TimedOut: the attempt took longer than 30 s."),
        ("hangs", {"how": "for good"}, "TimedOut: the attempt took longer than 30 s."),
        ("returns-much", {}, "OutputTooLarge"),
        ("fails", {"nobody": 1}, "no longer decodes"),
        ("nobody-has-it", {}, "no handler registered"),
    ],
)
async def test_a_failure_without_an_exception_is_no_success(
    wire_name: str, payload: dict[str, object], why: str
) -> None:
    async with Harness(app, raise_failures=True) as h:
        job_id = await h.enqueue(wire_name, payload, retry=Retry(max_attempts=1))
        with pytest.raises(AttemptFailed, match=why):
            await h.advance(600)
        [failure] = h.failures
        assert (failure.job_id, failure.attempt, type(failure.error)) == (job_id, 1, AttemptFailed)


async def test_an_exception_counts_once_also_after_a_requeue() -> None:
    async with Harness(app) as h:
        job_id = await h.enqueue(fails.job(name="a"), retry=Retry(max_attempts=1))
        await h.run_due()
        await h.requeue(job_id)
        await h.run_due()
        assert [(type(found.error), found.attempt) for found in h.failures] == [
            (ValueError, 1),
            (ValueError, 1),
        ]
