"""The observers of an application under a harness."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tidelog import App, JobRequest, ObserverContext, Retry, Transition
from tidelog.testing import Harness


def an_app() -> tuple[App, list[tuple[str, str]]]:
    app = App()
    seen: list[tuple[str, str]] = []

    @app.job("work", queue="work", retry=Retry(max_attempts=2, delays=[60]))
    async def work(good: bool) -> None:
        if not good:
            raise ValueError("no good")

    @app.job("tell", queue="tell")
    async def tell(what: str) -> str:
        return what

    @app.observer("steps", queue="work")
    async def steps(transition: Transition) -> None:
        seen.append(("steps", transition.TYPE))

    @app.observer("alerts", states=["DeadLettered"], tags=["important"], retry=Retry(3, [30]), timeout=10)
    async def alerts(context: ObserverContext) -> None:
        job = await context.job()
        assert job is not None
        if context.try_number == 1:
            await asyncio.sleep(3_600)  # until the timeout
        if context.try_number == 2:
            raise ConnectionError("nobody answers")
        async with app.client() as client:
            await client.enqueue(tell.job(what=f"{job.job_id}: {context.error}"), key=context.idempotency_key)

    @app.observer("thread", types=["queue_paused"])
    def in_thread(context: ObserverContext) -> None:
        assert context.job_sync() is None
        seen.append((threading.current_thread().name[:15], context.transition.TYPE))

    @app.observer("dead", types=["queue_resumed"], retry=Retry(2, [5]))
    def dead(transition: Transition) -> None:
        raise LookupError(transition.TYPE)

    return app, seen


async def test_observers_are_told_in_order_and_may_enqueue() -> None:
    app, seen = an_app()
    async with Harness(app) as h:
        good = await h.enqueue(work_of(app, good=True), tags=["important"])
        bad = await h.enqueue(work_of(app, good=False), tags=["important"])
        await h.enqueue(work_of(app, good=False))
        await h.run_until_idle()
        assert [what for who, what in seen].count("dead_lettered") == 2
        assert h.history(good)[-1].TYPE == "succeeded"
        assert [step.TYPE for step in h.history(bad)][-2:] == ["leased", "dead_lettered"]
        [told] = h.assert_enqueued("tell", payload={"what": f"{bad}: ValueError: no good"})
        # Dead-lettered after 60 s; a timeout of 10 s, a pause of 30 s, a failure, and a pause once more.
        assert h.history(told)[0].at - h.history(bad)[-1].at == 70_000_000
        assert [
            (found.observer_id, found.try_number, type(found.error)) for found in h.observer_failures
        ] == [
            ("alerts", 1, TimeoutError),
            ("alerts", 2, ConnectionError),
        ]


async def test_plain_functions_and_dead_letters() -> None:
    app, seen = an_app()
    async with Harness(app) as h:
        await h.pause("work")
        await h.resume("work")
        await h.advance(60)
        assert seen == [("tidelog-harness", "queue_paused")]
        assert [(found.try_number, found.is_dead_letter) for found in h.observer_failures] == [
            (1, False),
            (2, True),
        ]
    async with Harness(app, raise_failures=True) as h:
        await h.resume("work")
        with pytest.raises(LookupError, match="queue_resumed") as caught:
            await h.run_due()
        assert caught.value.__notes__ == ["Raised by observer dead."]


async def test_a_plain_function_that_hands_out_a_coroutine_fails_as_at_a_real_observer() -> None:
    app, _ = an_app()

    async def never_run(_transition: Transition) -> None: ...

    app.observer("wrong", types=["queue_paused"], retry=Retry(1))(lambda transition: never_run(transition))
    async with Harness(app) as h:
        await h.pause("elsewhere")
        await h.run_due()
        assert [(found.observer_id, type(found.error)) for found in h.observer_failures] == [
            ("wrong", TypeError)
        ]


def work_of(app: App, *, good: bool) -> JobRequest:
    return app.registry.find("work").job(good=good)
