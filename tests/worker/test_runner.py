"""The runner: whatever a handler does is the outcome of its attempt, and nothing leaks into the next."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.worker.grants import granted

from tidelog.handler.context import JobContext
from tidelog.handler.jobs import declare
from tidelog.worker.messages import Began, Ended, LeaseKey, StopReason
from tidelog.worker.registry import JobRegistry
from tidelog.worker.runner import Runner
from tidelog_events.commands import CancelledOutcome, Failure, Outcome, ReturnedOutcome, Success, Unroutable
from tidelog_events.identity import JobId
from tidelog_events.instants import Instant

BOUND = 20.0
tenant: ContextVar[str] = ContextVar("tenant", default="none")


@dataclass
class Bench:
    """A runner alone: jobs are started and stopped by hand."""

    cancel_by_exception: bool = True
    registry: JobRegistry = field(default_factory=JobRegistry)
    began: dict[LeaseKey, float | None] = field(default_factory=dict)
    ended: dict[LeaseKey, Outcome | None] = field(default_factory=dict)
    count: int = 0

    def __post_init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.changed = asyncio.Condition()
        self.runner = Runner(
            self.registry,
            loop=self.loop,
            cancel_by_exception=self.cancel_by_exception,
            read_output=None,
            tell=self.tell,
        )

    def tell(self, event: Began | Ended) -> None:
        self.loop.call_soon_threadsafe(lambda: self.loop.create_task(self._note(event)))

    async def _note(self, event: Began | Ended) -> None:
        async with self.changed:
            if isinstance(event, Began):
                self.began[event.key] = event.timeout
            else:
                assert event.key not in self.ended, "an attempt ends once"
                self.ended[event.key] = event.outcome
            self.changed.notify_all()

    def job(self, function: Callable[..., Any], **options: Any) -> None:
        declare(function.__name__, register=self.registry.add, **options)(function)

    def start(self, wire_name: str, payload: bytes = b"null") -> LeaseKey:
        self.count += 1
        grant = granted(JobId(f"q/{self.count}"), self.count, wire_name=wire_name, payload=payload)
        self.runner.start(grant)
        return LeaseKey(grant.job_id, grant.lease)

    async def until_begun(self, key: LeaseKey) -> None:
        async with asyncio.timeout(BOUND), self.changed:
            await self.changed.wait_for(lambda: key in self.began)

    async def outcome(self, key: LeaseKey) -> Outcome | None:
        async with asyncio.timeout(BOUND), self.changed:
            await self.changed.wait_for(lambda: key in self.ended)
        return self.ended[key]

    async def run(self, wire_name: str, payload: bytes = b"null") -> Outcome | None:
        return await self.outcome(self.start(wire_name, payload))


@pytest.fixture
async def bench() -> Bench:
    return Bench()


class NeverTwice(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a}{b}")


async def test_async_and_plain_handlers_return_their_output(bench: Bench) -> None:
    async def double(number: int) -> int:
        return number * 2

    def tagged(ctx: JobContext, text: str) -> dict[str, object]:
        ctx.add_tag("kind", "x")
        return {"text": text, "thread": threading.current_thread() is threading.main_thread()}

    bench.job(double)
    bench.job(tagged)
    first = await bench.run("double", b'{"number":4}')
    second = await bench.run("tagged", '{"text":"ä"}'.encode())
    assert isinstance(first, Success)
    assert first.output == b"8"
    assert isinstance(second, Success)
    assert second.output == '{"text":"ä","thread":false}'.encode()
    assert second.add_tags == (("kind", "x"),)


async def test_a_wire_name_without_handler_is_unroutable(bench: Bench) -> None:
    outcome = await bench.run("nobody")
    assert isinstance(outcome, Unroutable)
    assert outcome.reason == "no handler registered for wire name 'nobody'"


@pytest.mark.parametrize("kind", ["async", "plain"])
async def test_a_payload_that_does_not_decode_is_unroutable(bench: Bench, kind: str) -> None:
    async def as_async(number: int) -> None: ...
    def as_plain(number: int) -> None: ...

    bench.job(as_async)
    bench.job(as_plain)
    outcome = await bench.run(f"as_{kind}", b'{"number":"x"}')
    assert isinstance(outcome, Unroutable)
    assert outcome.reason.startswith(f"payload for wire name 'as_{kind}' no longer decodes: number: ")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("usual"),
        NeverTwice(1, 2),
        ExceptionGroup("three", [ValueError("1"), ValueError("2"), ValueError("3")]),
        SystemExit(1),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError("of my own"),
        BaseExceptionGroup("base", [KeyboardInterrupt()]),
        StopIteration(),
        TimeoutError(),
        MemoryError(),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_whatever_is_raised_is_a_failed_attempt(bench: Bench, error: BaseException) -> None:
    async def in_async() -> None:
        raise error

    def in_plain() -> None:
        raise error

    bench.job(in_async)
    bench.job(in_plain)
    for wire_name in ("in_async", "in_plain", "in_async"):
        outcome = await bench.run(wire_name)
        assert isinstance(outcome, Failure)
        assert outcome.failure_detail is not None
        assert "in_async" in outcome.failure_detail or "in_plain" in outcome.failure_detail


async def test_awaiting_a_task_that_somebody_cancelled_is_a_failed_attempt(bench: Bench) -> None:
    async def awaits_cancelled() -> None:
        task = asyncio.create_task(asyncio.Event().wait())
        task.cancel()
        await task

    bench.job(awaits_cancelled)
    assert isinstance(await bench.run("awaits_cancelled"), Failure)


@pytest.mark.parametrize(
    "value", [float("nan"), float("inf"), "\ud800", object(), {"x": float("nan")}, b"\xff"]
)
async def test_an_output_that_is_no_json_is_a_failed_attempt(bench: Bench, value: object) -> None:
    def bad() -> Any:
        return value

    bench.job(bad)
    outcome = await bench.run("bad")
    assert isinstance(outcome, Failure)
    assert "no valid JSON" in outcome.error


async def test_an_oversized_output_is_a_failed_attempt(bench: Bench) -> None:
    def large() -> str:
        return "x" * 5_000_000

    bench.job(large)
    outcome = await bench.run("large")
    assert isinstance(outcome, Failure)
    assert outcome.error.startswith("OutputTooLarge: the handler returned 5000002 bytes")


async def test_a_plain_function_that_returns_a_coroutine_is_told_apart(bench: Bench) -> None:
    async def inner() -> None: ...

    def disguised() -> Any:
        return inner()

    bench.job(disguised)
    outcome = await bench.run("disguised")
    assert isinstance(outcome, Failure)
    assert "async def" in outcome.error


async def test_context_variables_are_each_jobs_own(bench: Bench) -> None:
    async def set_async() -> None:
        tenant.set("acme")

    def set_plain() -> None:
        tenant.set("acme")

    async def get_async() -> str:
        return tenant.get()

    def get_plain() -> str:
        return tenant.get()

    for function in (set_async, set_plain, get_async, get_plain):
        bench.job(function)
    tenant.set("of the application")
    for setter in ("set_async", "set_plain"):
        for _ in range(3):
            await bench.run(setter)
        outcomes = [await bench.run("get_async"), await bench.run("get_plain")]
        together = [bench.start(name) for name in (setter, "get_async", "get_plain") * 4]
        outcomes += [await bench.outcome(key) for key in together]
        outputs = {outcome.output for outcome in outcomes if isinstance(outcome, Success)}
        assert outputs == {b'"none"', b"null"}
    assert tenant.get() == "of the application"


@pytest.mark.parametrize(
    ("reason", "kind"),
    [
        (StopReason.CANCELLED, CancelledOutcome),
        (StopReason.SHUT_DOWN, ReturnedOutcome),
        (StopReason.TIMED_OUT, Failure),
        (StopReason.LEASE_LOST, type(None)),
    ],
)
async def test_a_handler_that_is_stopped_ends_as_the_reason_says(
    bench: Bench, reason: StopReason, kind: type
) -> None:
    cleaned: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("async")

    def plain(ctx: JobContext) -> None:
        ctx.cancelled.wait_blocking(BOUND)
        cleaned.append("plain")
        ctx.raise_if_cancelled()

    bench.job(endless, timeout=3)
    bench.job(plain, timeout=3)
    for wire_name in ("endless", "plain"):
        key = bench.start(wire_name)
        await bench.until_begun(key)
        assert bench.began[key] == 3
        bench.runner.stop(key, reason)
        assert isinstance(await bench.outcome(key), kind)
    assert cleaned == ["async", "plain"]


async def test_a_handler_that_finishes_although_it_was_cancelled_has_succeeded(bench: Bench) -> None:
    async def stubborn(ctx: JobContext) -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return f"done {ctx.cancelled.is_set()}"
        return "never"

    bench.job(stubborn)
    key = bench.start("stubborn")
    await bench.until_begun(key)
    bench.runner.stop(key, StopReason.CANCELLED)
    outcome = await bench.outcome(key)
    assert isinstance(outcome, Success)
    assert outcome.output == b'"done True"'


async def test_an_exception_of_its_own_while_stopping_is_a_failure(bench: Bench) -> None:
    async def breaks() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            raise RuntimeError("while cleaning up")

    bench.job(breaks)
    key = bench.start("breaks")
    await bench.until_begun(key)
    bench.runner.stop(key, StopReason.SHUT_DOWN)
    outcome = await bench.outcome(key)
    assert isinstance(outcome, Failure)
    assert "while cleaning up" in outcome.error


async def test_cancelling_by_event_alone_leaves_the_task_alone() -> None:
    bench = Bench(cancel_by_exception=False)

    async def looks(ctx: JobContext) -> str:
        await ctx.cancelled.wait()
        return "ended by itself"

    bench.job(looks)
    key = bench.start("looks")
    await bench.until_begun(key)
    bench.runner.stop(key, StopReason.CANCELLED)
    assert isinstance(await bench.outcome(key), Success)


async def test_a_stop_before_the_beginning_means_that_the_handler_never_begins(bench: Bench) -> None:
    ran: list[bool] = []

    async def unwanted() -> None:
        ran.append(True)

    bench.job(unwanted)
    key = bench.start("unwanted")  # waits for the loop, which this test holds
    bench.runner.stop(key, StopReason.SHUT_DOWN)
    assert isinstance(await bench.outcome(key), ReturnedOutcome)
    bench.job(_later)
    await bench.run("_later")
    assert not ran
    assert key not in bench.began


async def _later() -> None: ...


async def test_many_plain_handlers_run_side_by_side(bench: Bench) -> None:
    together = threading.Barrier(12)

    def meets() -> int:
        return together.wait(BOUND) * 0

    bench.job(meets)
    for _ in range(2):
        keys = [bench.start("meets") for _ in range(12)]
        assert all([isinstance(await bench.outcome(key), Success) for key in keys])
    names = {thread.name for thread in threading.enumerate() if thread.name.startswith("tidelog-job")}
    assert len(names) <= 24
    bench.runner.close()


async def test_the_lease_that_a_handler_sees_is_extended() -> None:
    bench = Bench(cancel_by_exception=False)

    async def sees(ctx: JobContext) -> str:
        await ctx.cancelled.wait()
        return ctx.lease_expiry.isoformat()

    bench.job(sees)
    key = bench.start("sees")
    await bench.until_begun(key)
    bench.runner.extend(key, Instant(60_000_000))
    bench.runner.stop(key, StopReason.CANCELLED)
    outcome = await bench.outcome(key)
    assert isinstance(outcome, Success)
    assert outcome.output == b'"1970-01-01T00:01:00+00:00"'
