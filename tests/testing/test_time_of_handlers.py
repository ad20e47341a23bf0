"""Which clock a handler waits by: virtual time for its timers, the world's for everything else."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest

from tidelog import App, Retry
from tidelog.testing import Harness, HarnessError


async def test_timeouts_and_timers_of_a_handler_are_virtual() -> None:
    app = App()

    @app.job("timers")
    async def timers() -> list[float]:
        loop = asyncio.get_running_loop()
        begin = loop.time()
        seen: list[float] = []
        loop.call_later(40, lambda: seen.append(loop.time() - begin))
        cancelled = loop.call_later(1, seen.append, -1.0)
        cancelled.cancel()
        try:
            async with asyncio.timeout(30):
                await asyncio.sleep(100)
        except TimeoutError:
            seen.append(loop.time() - begin)
        await asyncio.gather(asyncio.sleep(50), asyncio.sleep(20))
        seen.append(loop.time() - begin)
        return seen

    async with Harness(app) as h:
        job_id = await h.enqueue(timers.job())
        await h.advance(79)
        h.assert_state(job_id, "Leased")
        await h.advance(1)
        h.assert_output(job_id, [30, 40, 80])


async def test_what_a_handler_leaves_behind_goes_on_and_is_no_work() -> None:
    app = App()
    ticks: list[float] = []
    left: list[asyncio.Task[None]] = []

    async def tick() -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(10)
            ticks.append(loop.time())

    @app.job("leaves")
    async def leaves() -> None:
        left.append(asyncio.create_task(tick()))

    async with Harness(app) as h:
        h.assert_state(await h.enqueue(leaves.job()), "Scheduled")
        await h.run_until_idle()
        assert ticks == []
        later = await h.enqueue(leaves.job(), delay=25)
        await h.run_until_idle()
        h.assert_state(later, "Succeeded")
        assert ticks == [10, 20]
        await h.advance(20)
        assert ticks == [10, 20, 30, 35, 40, 45]
    for task in left:
        task.cancel()
    await asyncio.wait(left)


async def test_the_timers_of_the_test_are_real() -> None:
    async with Harness(App()) as h:
        loop = asyncio.get_running_loop()
        await h.advance(3_600)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        assert abs(loop.time() - time.monotonic()) < 60
    assert "call_at" not in vars(loop)
    assert "time" not in vars(loop)


async def test_virtual_time_stands_still_while_a_handler_waits_for_the_world() -> None:
    app = App()
    free = threading.Event()

    @app.job("thread", timeout=1)
    def thread() -> str:
        return "came" if free.wait(10) else "late"

    @app.job("socket", timeout=1)
    async def socket() -> str:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        answer = await reader.readline()
        writer.close()
        await writer.wait_closed()
        return answer.decode()

    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        free.set()
        await asyncio.sleep(0.02)  # a slow answer; by the real clock, for it is no handler's
        writer.write(b"hello\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, Harness(app) as h:
        in_thread = await h.enqueue(thread.job())
        on_socket = await h.enqueue(socket.job())
        await h.advance(1_000)
        h.assert_output(in_thread, "came")
        h.assert_output(on_socket, "hello\n")
        assert all(step.at == h.history(in_thread)[0].at for step in h.history(on_socket))


async def test_a_handler_that_waits_for_the_test_is_left_waiting(caplog: pytest.LogCaptureFixture) -> None:
    app = App()
    gate = asyncio.Event()

    @app.job("gated", timeout=100)
    async def gated() -> str:
        await gate.wait()
        return "through"

    async with Harness(app, patience=0.01) as h:
        through = await h.enqueue(gated.job())
        await h.advance(50)
        h.assert_state(through, "Leased")
        assert [record.args for record in caplog.records] == [(f"{through} (gated)", 0.01)]
        gate.set()
        await h.run_due()
        h.assert_output(through, "through")
        gate.clear()
        stuck = await h.enqueue(gated.job(), retry=Retry(1))
        await h.advance(100)
        assert (h.assert_state(stuck, "DeadLettered").terminal_cause or "").startswith("TimedOut")


async def test_a_handler_that_spins_does_not_stop_the_test() -> None:
    app = App()
    done = False

    @app.job("spins")
    async def spins() -> str:
        while not done:  # noqa: ASYNC110 - a handler that does it wrong
            await asyncio.sleep(0)
        return "done"

    async with Harness(app, patience=0.01) as h:
        job_id = await h.enqueue(spins.job())
        await h.advance(10)
        h.assert_state(job_id, "Leased")
        done = True
        await h.run_due()
        h.assert_output(job_id, "done")


async def test_a_handler_cannot_move_time() -> None:
    app = App()
    harness: list[Harness] = []

    @app.job("mover")
    async def mover() -> None:
        await harness[0].advance(10)

    async with Harness(app, raise_failures=True) as h:
        harness.append(h)
        await h.enqueue(mover.job())
        with pytest.raises(HarnessError, match="time is the test's to move"):
            await h.run_due()


def test_a_harness_stays_on_one_event_loop() -> None:
    h = Harness(App())
    asyncio.run(_run_due(h))
    with pytest.raises(HarnessError, match="another event loop"):
        asyncio.run(_run_due(h))
    h.close()


async def _run_due(h: Harness) -> None:
    await h.run_due()


async def test_plain_functions_take_turns_in_the_order_of_their_jobs() -> None:
    app = App()
    seen: list[str] = []

    @app.job("turns")
    def turns(name: str) -> None:
        seen.append(f"{name} begins")
        time.sleep(0.001)  # longer than a thread needs to get in between
        seen.append(f"{name} ends")

    async with Harness(app) as h:
        for name in "abcd":
            await h.enqueue(turns.job(name=name))
        await h.run_due()
    assert seen == [f"{name} {what}" for name in "abcd" for what in ("begins", "ends")]
