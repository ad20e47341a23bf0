"""What a handler may ask and tell: tags, the stop signal, outputs of other jobs."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime

import pytest
from tests.worker.grants import granted

from tidelog.handler.context import InvalidTag, JobContext, NoOutput, OutputReader
from tidelog_events.identity import JobId
from tidelog_events.instants import from_datetime

EXPIRY = datetime(2026, 1, 1, tzinfo=UTC)


def a_context(
    loop: asyncio.AbstractEventLoop | None = None, read_output: OutputReader | None = None
) -> JobContext:
    grant = granted(JobId("q/1"), 7, attempt=2, lease_expiry=from_datetime(EXPIRY))
    return JobContext(grant, loop=loop, read_output=read_output)


async def read_output(job_id: JobId) -> bytes:
    if job_id == "q/never":
        await asyncio.Event().wait()
    return b'{"of":"%s"}' % job_id.encode()


def test_tags_are_a_set_in_order() -> None:
    context = a_context()
    for label, value in [("b", None), ("a", "1"), ("b", None), ("a", "2")]:
        context.add_tag(label, value)
    assert context.added_tags == ("b", ("a", "1"), ("a", "2"))


@pytest.mark.parametrize("texts", [("",), ("a", ""), ("x" * 201,), ("a", "x" * 201), ("\ud800",)])
def test_bad_tags_are_refused_where_they_are_made(texts: tuple[str, ...]) -> None:
    with pytest.raises(InvalidTag):
        a_context().add_tag(*texts)


def test_the_33rd_tag_is_refused() -> None:
    context = a_context()
    for number in range(32):
        context.add_tag(f"t{number}")
    context.add_tag("t0")
    with pytest.raises(InvalidTag, match="32"):
        context.add_tag("one more")


def test_the_lease_expiry_only_moves_forward() -> None:
    context = a_context()
    assert context.lease_expiry == EXPIRY
    context.renewed_until(from_datetime(EXPIRY.replace(hour=1)))
    context.renewed_until(from_datetime(EXPIRY.replace(minute=1)))
    assert context.lease_expiry == EXPIRY.replace(hour=1)


async def test_the_stop_signal_wakes_tasks_on_any_loop_and_threads() -> None:
    context = a_context()
    seen: list[str] = []

    async def wait(name: str) -> None:
        await context.cancelled.wait()
        seen.append(name)

    here = asyncio.create_task(wait("here"))
    blocked = threading.Thread(target=lambda: seen.append(f"blocking {context.cancelled.wait_blocking(20)}"))
    other = threading.Thread(target=lambda: asyncio.run(wait("another loop")))
    blocked.start()
    other.start()
    assert not context.cancelled.is_set()
    threading.Thread(target=context.cancelled.set).start()
    async with asyncio.timeout(20):
        await here
        await asyncio.to_thread(blocked.join, 20)
        await asyncio.to_thread(other.join, 20)
        await context.cancelled.wait()
    assert sorted(seen) == ["another loop", "blocking True", "here"]


async def test_a_cancelled_wait_for_the_signal_leaves_nothing_behind() -> None:
    context = a_context()
    waiting = asyncio.create_task(context.cancelled.wait())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await waiting
    context.cancelled.set()


def test_a_thread_can_end_itself_when_it_should_stop() -> None:
    context = a_context()
    context.raise_if_cancelled()
    context.cancelled.set()
    with pytest.raises(asyncio.CancelledError):
        context.raise_if_cancelled()


async def test_the_output_of_a_parent_is_read() -> None:
    assert await a_context(read_output=read_output).dependency_output("q/parent") == {"of": "q/parent"}


async def test_a_thread_reads_the_output_through_the_applications_loop() -> None:
    context = a_context(asyncio.get_running_loop(), read_output)
    assert await asyncio.to_thread(context.dependency_output_blocking, "q/parent") == {"of": "q/parent"}


async def test_a_blocking_read_is_bounded() -> None:
    context = a_context(asyncio.get_running_loop(), read_output)

    def read() -> object:
        return context.dependency_output_blocking("q/never", timeout=0.01)

    with pytest.raises(NoOutput, match="within"):
        await asyncio.to_thread(read)


async def test_without_a_way_to_read_outputs_that_is_said() -> None:
    with pytest.raises(NoOutput, match="without a way"):
        await a_context().dependency_output("q/parent")
