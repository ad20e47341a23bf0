"""What a handler may ask and tell while it runs: its `JobContext`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import TypeAlias

from tidelog_events.bounds import MAX_TAG_CHARS, MAX_TAGS
from tidelog_events.errors import TidelogError
from tidelog_events.identity import JobId, QueueName, ScheduleId
from tidelog_events.instants import Instant, to_datetime
from tidelog_events.jsontext import Json, JsonBytes, loads
from tidelog_events.replies import Grant
from tidelog_events.wire import Tag

OutputReader: TypeAlias = Callable[[JobId], Awaitable[JsonBytes]]
"""Reads the Job Output of a job that has ended; it runs on the application's event loop."""


class InvalidTag(TidelogError):
    """A tag is empty or too long, or there are too many."""


class NoOutput(TidelogError):
    """The output of another job cannot be read here."""


class CancelSignal:
    """An event that is set once, by any thread, and may be awaited on any event loop."""

    def __init__(self) -> None:
        self._is_set = False
        self._lock = threading.Lock()
        self._event: threading.Event | None = None  # made when it is waited for: most handlers never do
        self._waiters: set[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = set()

    def is_set(self) -> bool:
        """Whether the handler is asked to stop."""
        return self._is_set

    async def wait(self) -> None:
        """Return once the handler is asked to stop. A cancellation leaves nothing behind."""
        loop = asyncio.get_running_loop()
        waiter = (loop, loop.create_future())
        with self._lock:
            if self._is_set:
                return
            self._waiters.add(waiter)
        try:
            await waiter[1]
        finally:
            with self._lock:
                self._waiters.discard(waiter)

    def wait_blocking(self, timeout: float | None = None) -> bool:
        """For handlers that run in a thread: block until set (True) or `timeout` seconds pass (False)."""
        with self._lock:
            if self._is_set:
                return True
            event = self._event = self._event or threading.Event()
        return event.wait(timeout)

    def set(self) -> None:
        """Ask the handler to stop. From any thread."""
        with self._lock:
            self._is_set = True
            waiters, self._waiters = self._waiters, set()
        if self._event is not None:
            self._event.set()
        for loop, future in waiters:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits there any more
                loop.call_soon_threadsafe(_resolve, future)


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class JobContext:
    """The job that a handler runs for; passed when the first parameter is annotated with this class.

    What is said of the job is as it was when it was claimed.

    Attributes:
        cancelled: set when the handler should stop: somebody cancelled the job, its timeout passed, its lease
            was lost, or the worker's grace time is over. Async handlers are also cancelled the asyncio way.
    """

    def __init__(
        self,
        grant: Grant,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        read_output: OutputReader | None = None,
        cancelled: CancelSignal | None = None,
    ) -> None:
        self.cancelled = cancelled or CancelSignal()
        self._grant = grant
        self._lease_expiry = grant.lease_expiry
        self._loop = loop
        self._read_output = read_output
        self._tags: dict[Tag, None] = {}

    @property
    def job_id(self) -> JobId:
        """The job's id."""
        return self._grant.job_id

    @property
    def queue(self) -> QueueName:
        """The queue that it was claimed from."""
        return self._grant.queue

    @property
    def wire_name(self) -> str:
        """The name by which the handler was found."""
        return self._grant.wire_name

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1; it starts again after a requeue."""
        return self._grant.attempt

    @property
    def max_attempts(self) -> int:
        """How many attempts the job's retry policy allows."""
        return self._grant.retry.max_attempts

    @property
    def due_time(self) -> datetime:
        """When this attempt was due, in UTC: at the first attempt of a schedule's job, its tick."""
        return to_datetime(self._grant.due_time)

    @property
    def tags(self) -> tuple[Tag, ...]:
        """The job's tags: labels, and keys with values."""
        return self._grant.tags

    @property
    def workflow_id(self) -> str | None:
        """What its producer said that it belongs to."""
        return self._grant.workflow_id

    @property
    def schedule_id(self) -> ScheduleId | None:
        """The schedule that enqueued it."""
        return self._grant.schedule_id

    @property
    def trace_context(self) -> str | None:
        """The W3C trace context that its producer handed over."""
        return self._grant.trace_context

    @property
    def lease_expiry(self) -> datetime:
        """Until when the lease holds at least, by the engine's clock, in UTC. Heartbeats move it forward."""
        return to_datetime(self._lease_expiry)

    @property
    def added_tags(self) -> tuple[Tag, ...]:
        """What `add_tag` was given so far, in order of first appearance."""
        return tuple(self._tags)

    def add_tag(self, label: str, value: str | None = None) -> None:
        """Tag the job, with a label or with a key and its value; it is stored with the attempt's outcome.

        Raises:
            InvalidTag: a text is empty, longer than 200 characters or not storable, or it is the 33rd tag.
        """
        for text in (label,) if value is None else (label, value):
            if not text or len(text) > MAX_TAG_CHARS:
                raise InvalidTag(
                    f"A tag's text has {len(text)} characters; it must have 1 to {MAX_TAG_CHARS}."
                )
            if not _is_storable(text):
                raise InvalidTag("A tag's text holds a lone surrogate, which no UTF-8 text can hold.")
        tag: Tag = label if value is None else (label, value)
        if tag not in self._tags and len(self._tags) >= MAX_TAGS:
            raise InvalidTag(f"The attempt has {MAX_TAGS} tags already; no more are kept.")
        self._tags[tag] = None

    def raise_if_cancelled(self) -> None:
        """End the handler here if it should stop: for handlers in threads, which cannot be interrupted.

        Raises:
            asyncio.CancelledError: it should. Let it pass; the worker knows why.
        """
        if self.cancelled.is_set():
            raise asyncio.CancelledError(f"{self.job_id} should stop")

    async def dependency_output(self, job_id: JobId | str) -> Json:
        """The output of a parent, or of any job that has ended and is still kept.

        Parents are kept until their dependents have ended (contract section 3, Retention).

        Raises:
            NoOutput: this worker was not given a way to read outputs.
            TidelogError: as the reader says, for instance when there is no such job.
        """
        return loads(await self._reader()(JobId(job_id)))

    def dependency_output_blocking(self, job_id: JobId | str, *, timeout: float = 30.0) -> Json:
        """`dependency_output` for handlers that run in a thread.

        Raises:
            NoOutput: also when nothing came within `timeout` seconds.
        """
        reader = self._reader()
        if self._loop is None or self._loop.is_closed():
            raise NoOutput(f"The output of {job_id} cannot be read: the application's event loop is closed.")

        async def read() -> JsonBytes:
            return await reader(JobId(job_id))

        pending = asyncio.run_coroutine_threadsafe(read(), self._loop)
        try:
            return loads(pending.result(timeout))
        except TimeoutError:
            pending.cancel()
            raise NoOutput(
                f"The output of {job_id} did not come within {timeout:g} s. Is the event loop blocked?"
            ) from None

    def renewed_until(self, lease_expiry: Instant) -> None:
        """The worker's: the lease was renewed."""
        self._lease_expiry = max(self._lease_expiry, lease_expiry)

    def _reader(self) -> OutputReader:
        if self._read_output is None:
            raise NoOutput("This worker was started without a way to read the outputs of other jobs.")
        return self._read_output


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
