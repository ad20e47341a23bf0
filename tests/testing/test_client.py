"""Code that takes a client, or opens one, under a harness."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import pytest

from tidelog import App, JobState, NewJob, WaitTimeout
from tidelog.testing import Harness

app = App()


@app.job("slow", queue="slow")
async def slow(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


@app.job("spread", queue="spread")
async def spread(seconds: float) -> str:
    async with app.client() as client:
        await client.enqueue_many([NewJob(slow.job(seconds=1), delay=60, key="first")])
        waited_for = await client.enqueue(slow.job(seconds=seconds))
        try:
            return (await client.wait(waited_for, timeout=30)).state
        except WaitTimeout:
            return "too slow"


@app.job("spread-in-thread", queue="spread")
def spread_in_thread(seconds: float) -> str:
    return asyncio.run(spread(seconds))


async def test_the_application_s_own_clients_are_the_harness_s() -> None:
    async with Harness(app) as h:
        async with app.client() as client:
            assert client is h.client
            job_id = await client.enqueue(slow.job(seconds=5))
        assert [job.job_id for job in h.jobs()] == [job_id]
        async with Harness(app) as inner, app.client() as client:
            assert client is inner.client
        async with app.client() as client:
            assert client is h.client


async def test_waiting_for_a_job_lets_virtual_time_go_on() -> None:
    async with Harness(app) as h:
        job_id = await h.enqueue(slow.job(seconds=20))
        record = await h.client.wait(job_id, timeout=30)
        assert (record.state, record.output_value) == (JobState.SUCCEEDED, "done")
        assert h.now == datetime(2026, 1, 1, 0, 0, 20, tzinfo=UTC)
        late = await h.enqueue(slow.job(seconds=20))
        with pytest.raises(WaitTimeout, match="Leased"):
            await h.client.wait(late, timeout=10)
        assert h.now == datetime(2026, 1, 1, 0, 0, 30, tzinfo=UTC)
        assert (await h.client.get(late)) == h.job(late)
        assert (await h.client.wait(late, timeout=10)).state is JobState.SUCCEEDED


@pytest.mark.parametrize(("seconds", "came"), [(10, "Succeeded"), (40, "too slow")])
async def test_a_handler_uses_a_client_and_waits_for_another_job(seconds: float, came: str) -> None:
    async with Harness(app) as h:
        job_id = await h.enqueue(spread.job(seconds=seconds))
        await h.advance(30)
        h.assert_output(job_id, came)
        assert h.history(job_id)[-1].at - h.history(job_id)[0].at == min(seconds, 30) * 1_000_000
        delayed = h.job("slow/first")
        assert delayed is not None
        assert delayed.due_time - delayed.enqueued_at == 60_000_000


async def test_a_plain_handler_waits_for_another_job_on_a_loop_of_its_own() -> None:
    async with Harness(app) as h:
        job_id = await h.enqueue(spread_in_thread.job(seconds=10))
        await h.advance(30)
        h.assert_output(job_id, "Succeeded")
        assert h.history(job_id)[-1].at - h.history(job_id)[0].at == 10_000_000


async def test_delays_and_keys_of_a_described_job_are_of_virtual_time() -> None:
    start = datetime(2031, 1, 1, tzinfo=UTC)
    async with Harness(app, start=start) as h:
        await h.advance(10)
        parent = NewJob(slow.job(seconds=0), delay=5)
        child = NewJob("slow", {"seconds": 0}, queue="slow", parents=[parent.job_id])
        assert await h.client.enqueue_many([child, parent], atomic=True) == [child.job_id, parent.job_id]
        await h.advance(4)
        h.assert_state(parent.job_id, "Scheduled")
        await h.advance(1)
        h.assert_state(child.job_id, "Succeeded")
        assert parent.job_id.startswith(f"slow/{(int(start.timestamp()) + 10) * 1_000:012x}7")


async def test_without_opening_it_a_harness_leaves_the_process_as_it_is() -> None:
    h = Harness(app)
    job_id = await h.enqueue(slow.job(seconds=1), delay=9)
    await h.advance(10)
    h.assert_output(job_id, "done")
    h.close()
    h.close()
