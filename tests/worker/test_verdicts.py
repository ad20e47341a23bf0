"""What a handler says of further tries: never again, or at a time of its own (contract section 8)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tidelog import App, GiveUp, JobRecord, Retry, TryAgain
from tidelog.handler.failure import failure_text
from tidelog.handler.verdicts import BY_POLICY, next_due
from tidelog.testing import Harness
from tidelog_events.instants import SECOND, Instant

START = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOW = Instant(1_000 * SECOND)


class StolenCard(GiveUp):
    pass


class Liar(TryAgain):
    def __getattribute__(self, name: str) -> object:
        raise KeyError(name)


app = App()


@app.job("charge", retry=Retry(max_attempts=5, delays=[1]))
async def charge() -> None:
    raise StolenCard("the card was stolen")


@app.job("call", retry=Retry(max_attempts=2, delays=[1]))
def call(at: str | None) -> None:
    if at is None:
        raise TryAgain("the limit is used up", delay=600)
    raise TryAgain("closed", at=datetime.fromisoformat(at))


def job_of(harness: Harness, job_id: str) -> JobRecord:
    job = harness.job(job_id)
    assert job is not None
    return job


async def test_a_job_that_is_given_up_is_dead_lettered_at_once() -> None:
    async with Harness(app, start=START) as harness:
        job_id = await harness.enqueue(charge.job())
        await harness.run_due()
        job = job_of(harness, job_id)
        assert (job.state, job.attempt) == ("DeadLettered", 1)
        assert str(job.terminal_cause).endswith("StolenCard: the card was stolen")


async def test_a_handler_says_when_and_the_ceiling_is_not_asked() -> None:
    async with Harness(app, start=START) as harness:
        job_id = await harness.enqueue(call.job(at=None))
        await harness.run_due()
        await harness.advance(599)
        assert job_of(harness, job_id).attempt == 1
        await harness.advance(1)
        assert job_of(harness, job_id).attempt == 2
        await harness.advance(3_000)
        assert (job_of(harness, job_id).state, job_of(harness, job_id).attempt) == ("Scheduled", 7)


async def test_a_handler_may_name_the_time_itself() -> None:
    async with Harness(app, start=START) as harness:
        job_id = await harness.enqueue(call.job(at="2026-03-02T09:00:00+01:00"))
        await harness.run_due()
        (*_, last) = harness.history(job_id)
        assert last.TYPE == "retry_scheduled"
        assert job_of(harness, job_id).due_time == Instant(
            int(datetime(2026, 3, 2, 8, tzinfo=UTC).timestamp()) * SECOND
        )


@pytest.mark.parametrize(
    ("error", "due"),
    [
        (ValueError("x"), BY_POLICY),
        (GiveUp("x"), None),
        (TryAgain(delay=2.5), Instant(NOW + 2_500_000)),
        (TryAgain(delay=timedelta(minutes=1)), Instant(NOW + 60 * SECOND)),
        (TryAgain(at=datetime.fromtimestamp(5, UTC)), Instant(5 * SECOND)),
    ],
)
def test_what_exceptions_say(error: BaseException, due: object) -> None:
    assert next_due(error, NOW) == due


def test_errors_name_them_as_handlers_import_them() -> None:
    assert failure_text(GiveUp("the card was stolen")).error == "tidelog.GiveUp: the card was stolen"
    assert failure_text(TryAgain("busy", delay=1)).error == "tidelog.TryAgain: busy"


def test_an_exception_that_cannot_be_asked_leaves_it_to_the_policy() -> None:
    assert next_due(Liar(delay=1), NOW) is BY_POLICY


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"delay": 1, "at": START},
        {"delay": -1},
        {"delay": float("nan")},
        {"delay": float("inf")},
        {"delay": 2e9},
        {"at": datetime(2026, 3, 1)},  # noqa: DTZ001  what is wrong with it
    ],
)
def test_a_time_that_is_none_is_refused_where_it_is_said(fields: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"delay|at="):
        TryAgain("x", **fields)  # type: ignore[arg-type]
