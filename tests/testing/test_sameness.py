"""The same script leads to the same log: in every run, and in `tidelog replay`."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog import App, CommandRefused, JobContext, NewJob, Retry
from tidelog.core.replay import Replay
from tidelog.testing import Harness, WorkerSettings
from tidelog_events.codec import encode_transition

QUEUES = ("a", "b", "c", "not-served")


def an_app() -> App:
    app = App()

    @app.job("work", queue="a", retry=Retry(max_attempts=3, delays=[0, 7]), timeout=40)
    async def work(ctx: JobContext, nap: float, good_at: int) -> int:
        await asyncio.sleep(nap)
        if ctx.attempt < good_at:
            raise ValueError(f"attempt {ctx.attempt}")
        ctx.add_tag("attempt", str(ctx.attempt))
        return ctx.attempt

    @app.job("poll", queue="b")
    def poll(ctx: JobContext, nap: float, good_at: int) -> bool:
        return good_at > 1 and ctx.cancelled.wait_blocking(nap)

    @app.job("spread", queue="c")
    async def spread(nap: float, good_at: int) -> list[str]:
        async with app.client() as client:
            return [*await client.enqueue_many([NewJob(work.job(nap, n), delay=n) for n in range(good_at)])]

    app.schedule("a/often", "*/5 * * * *", work.job(nap=100, good_at=1), no_overlap=True)
    return app


async def play(steps: list[tuple[str, int, int]], concurrency: int) -> tuple[list[bytes], list[bytes]]:
    """The log that a script leads to, and the script as lines for a replay."""
    jobs: list[str] = []
    worker = WorkerSettings(concurrency=concurrency, lease_seconds=9)
    async with Harness(an_app(), partitions=5, worker=worker) as h:
        for what, number, seconds in steps:
            queue = QUEUES[number % len(QUEUES)]
            some = jobs[number % len(jobs)] if jobs else "a/none"
            try:
                match what:
                    case "enqueue":
                        wire_name = ("work", "poll", "spread", "unknown")[(number // 4) % 4]
                        payload = {"nap": seconds / 3, "good_at": number % 4}
                        jobs.append(await h.enqueue(wire_name, payload, queue=queue, delay=number % 3))
                    case "child":
                        jobs.append(
                            await h.enqueue("work", {"nap": 0, "good_at": 1}, queue=queue, parents=[some])
                        )
                    case "advance":
                        await h.advance(seconds * 1.7)
                    case "run":
                        await h.run_due()
                    case "cancel":
                        await h.cancel(some, actor="ann")
                    case "requeue":
                        await h.requeue(some)
                    case "pause":
                        await h.pause(queue)
                    case "resume":
                        await h.resume(queue)
                    case "limit":
                        await h.limit(queue, number % 3 or None)
                    case "trigger":
                        await h.trigger_schedule("a/often")
            except CommandRefused:
                continue
        await h.advance(timedelta(minutes=6))
        return [encode_transition(event) for event in h.transitions()], h.script()


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["enqueue"] * 4
            + ["advance"] * 3
            + ["child", "run", "cancel", "requeue", "pause", "resume", "limit", "trigger"]
        ),
        st.integers(0, 15),
        st.integers(0, 60),
    ),
    max_size=20,
)


@settings(max_examples=10, deadline=None)
@given(steps=STEPS, concurrency=st.integers(1, 4))
def test_the_same_script_twice_gives_the_same_log_and_replay_gives_it_too(
    steps: list[tuple[str, int, int]], concurrency: int
) -> None:
    log, script = asyncio.run(play(steps, concurrency))
    assert asyncio.run(play(steps, concurrency)) == (log, script)
    printed = [orjson.loads(line) for line in Replay(partitions=5).run(script)]
    assert [line["transition"] for line in printed if "transition" in line] == [
        orjson.loads(raw) for raw in log
    ]
