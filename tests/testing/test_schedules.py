"""The schedules of an application under a harness."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tidelog import App, JobState, Schedule
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
