"""The schedules of an application under a harness."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidelog import App, JobContext, JobState, Retry, Schedule
from tidelog.testing import Harness

app = App(name="reports")


@app.job("report", queue="reports")
async def report(kind: str) -> str:
    return kind


app.schedule("reports/nightly", "0 3 * * *", report.job(kind="night"), time_zone="Europe/Berlin")


async def test_a_year_of_a_daily_job_runs_each_day_at_its_hour() -> None:
    async with Harness(app) as h:
        assert await h.advance(timedelta(days=365)) == 365
        jobs = h.assert_enqueued("report", count=365)
        hours = [h.history(job_id)[-1].at // 1_000_000 // 3_600 % 24 for job_id in jobs]
        assert (hours[0], hours[180], set(hours)) == (2, 1, {1, 2})  # winter and summer in Berlin
        [schedule] = h.schedules()
        assert (schedule.skipped_count, schedule.put_by) == (0, "app reports")


async def test_a_handler_is_told_what_its_job_is() -> None:
    own = App(name="own")
    told: list[object] = []

    @own.job("tell", queue="reports", retry=Retry(max_attempts=3))
    async def tell(ctx: JobContext) -> None:
        told.append((ctx.wire_name, ctx.attempt, ctx.max_attempts, ctx.due_time, ctx.tags))
        told.append((ctx.schedule_id, ctx.workflow_id, ctx.trace_context))

    own.schedule("reports/noon", "0 12 * * *", tell.job(), tags=["daily", {"kind": "noon"}])
    async with Harness(own) as h:
        await h.advance(timedelta(hours=12))
        await h.enqueue(tell.job(), workflow_id="w-1", trace_context="00-1-2-01")
        await h.run_due()
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert told == [
        ("tell", 1, 3, noon, ("daily", ("kind", "noon"))),
        ("reports/noon", None, None),
        ("tell", 1, 3, noon, ()),
        (None, "w-1", "00-1-2-01"),
    ]


async def test_schedules_are_triggered_put_and_left_out() -> None:
    async with Harness(app) as h:
        job_id = await h.trigger_schedule("reports/nightly", actor="ann", command_id="again")
        assert job_id == "reports/nightly@trigger-again"
        await h.run_due()
        h.assert_output(job_id, "night")
        await h.put_schedule(Schedule("reports/hourly", "0 * * * *", report.job(kind="hour")))
        await h.advance_to(datetime(2026, 1, 1, 1, 30, tzinfo=UTC))
        h.assert_enqueued("report", payload={"kind": "hour"}, count=1)
        found = await h.client.schedule("reports/nightly")
        assert found is not None
        assert found.last_job_state is JobState.SUCCEEDED
        assert [view.schedule_id for view in await h.client.schedules()] == [
            "reports/hourly",
            "reports/nightly",
        ]
        await h.remove_schedule("reports/hourly", actor="ann")
        assert len(h.schedules("reports")) == 1
    async with Harness(app, schedules=False) as h:
        await h.advance(timedelta(days=30))
        h.assert_not_enqueued()


async def test_running_until_idle_does_not_wait_for_ticks() -> None:
    async with Harness(app) as h:
        await h.enqueue(report.job(kind="late"), delay=86_400)
        assert await h.run_until_idle(timedelta(days=2)) == 2
        assert h.now == datetime(2026, 1, 2, tzinfo=UTC)
