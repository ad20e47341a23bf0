"""Where the handlers of a harness run, and how it is found out that nothing moves any more.

Async handlers run on the test's own event loop. Plain functions run in threads, as at a worker, but one at a
time, so that the same test does the same things in the same order.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

from tidelog.handler.context import CancelSignal
from tidelog.handler.daemon_threads import DaemonThreads, Work
from tidelog.testing.attempt import Attempt, current_attempt
from tidelog.testing.failures import Raised
from tidelog.testing.timers import VirtualTimers, has_ready_callbacks
from tidelog.worker.messages import Began, Ended, LeaseKey
from tidelog.worker.surroundings import Surroundings
from tidelog_events.instants import Instant
from tidelog_events.replies import Grant

_logger = logging.getLogger("tidelog.testing")

_MOST_PASSES = 5_000
"""Of the event loop, before it is taken for one that never comes to rest."""
_LOOK_SECONDS = 0.005
"""Real time between two looks at a handler that waits for the world."""

T = TypeVar("T")


class VirtualSurroundings(Surroundings):
    """What the handlers of a harness run in.

    Args:
        loop: of the test.
        timers: virtual time.
        patience: seconds of real time that a handler may wait for the world before time goes on without it.

    Attributes:
        ended: how many attempts have ended.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, timers: VirtualTimers, *, patience: float) -> None:
        super().__init__()
        self._loop = loop
        self._timers = timers
        self._patience = patience
        self._pool = DaemonThreads("tidelog-harness")
        self._attempts: dict[LeaseKey | Attempt, Attempt] = {}
        self._count = 0
        self._to_start: deque[tuple[Attempt, Work]] = deque()
        self._in_threads: list[Attempt] = []
        self._told: deque[Began | Ended] = deque()
        self._order: dict[LeaseKey, int] = {}
        self._raised: list[tuple[int, Raised]] = []
        self._wake = asyncio.Event()
        self.ended = 0

    # What the runner asks for

    def now(self) -> Instant:
        return self._timers.after(0)

    def cancel_signal(self, grant: Grant) -> CancelSignal:
        attempt = self._new_attempt(f"{grant.job_id} ({grant.wire_name})")
        key = LeaseKey(grant.job_id, grant.lease)
        self._attempts[key] = attempt
        self._order[key] = attempt.number
        return _VirtualCancelSignal(attempt, self._loop, self._timers, self._wake.set)

    def create_task(
        self,
        grant: Grant,
        loop: asyncio.AbstractEventLoop,  # noqa: ARG002 - there is one
        handler: Coroutine[Any, Any, T],
    ) -> asyncio.Task[T]:
        return self.start_task(self._attempt(grant), handler, grant.job_id)

    def submit(self, grant: Grant, work: Work) -> None:
        self.start_thread(self._attempt(grant), work)

    def raised(self, grant: Grant, error: BaseException) -> None:
        self._raised.append((self._attempt(grant).number, Raised(grant.job_id, grant.attempt, error)))

    def close(self) -> None:
        super().close()
        self._to_start.clear()
        self._pool.close()

    # What others than the runner ask for

    def begin(self, what: str) -> Attempt:
        """Let something be run here that is no attempt of a job, until `end`."""
        attempt = self._new_attempt(what)
        self._attempts[attempt] = attempt
        return attempt

    def start_task(self, attempt: Attempt, handler: Coroutine[Any, Any, T], name: str) -> asyncio.Task[T]:
        """Run a coroutine as that attempt, on virtual time."""
        attempt.task = task = self._loop.create_task(
            handler, name=f"tidelog job {name}", context=_context_of(attempt)
        )
        return task

    def start_thread(self, attempt: Attempt, work: Work) -> None:
        """Run a plain function as that attempt, in a thread, when its turn comes."""
        self._to_start.append((attempt, work))

    def end(self, attempt: Attempt) -> None:
        """What `begin` began is over."""
        attempt.is_over = True
        self._attempts.pop(attempt, None)
        self._wake.set()

    # What the runner tells, and what the harness makes of it

    def tell(self, event: Began | Ended) -> None:
        """The runner's word about an attempt; from any thread."""
        self._told.append(event)
        attempt = self._attempts.get(event.key)
        if attempt is not None and isinstance(event, Ended):
            attempt.is_over = True
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)

    @property
    def has_news(self) -> bool:
        """Whether something was told that nobody has taken yet."""
        return bool(self._told)

    def take_told(self) -> list[Began | Ended]:
        """What was told since the last call, in the order in which the attempts began: which of two handlers
        at one instant was the faster one is no matter of virtual time.
        """
        told: list[Began | Ended] = []
        while self._told:
            told.append(self._told.popleft())
        told.sort(key=lambda event: self._order.get(event.key, 0))
        for event in told:
            if isinstance(event, Ended):
                self.ended += 1
                self._attempts.pop(event.key, None)
                self._order.pop(event.key, None)
        return told

    def take_raised(self) -> list[Raised]:
        """The exceptions that ended attempts since the last call, in the order in which these began."""
        raised, self._raised = self._raised, []
        return [found for _, found in sorted(raised, key=lambda entry: entry[0])]

    def tasks(self) -> list[asyncio.Task[Any]]:
        """Of the async handlers that run."""
        return [attempt.task for attempt in self._attempts.values() if attempt.task is not None]

    async def settle(self, *, has_fired: bool) -> None:
        """Return when every handler has ended, or waits for what virtual time or the test will bring.

        Also what handlers have left behind takes its step at its own instant, when a timer `has_fired`.

        Bounded: a handler that has waited for the world without a step for `patience` seconds of real time is
        left to it, and so is an event loop that never comes to rest.
        """
        while (self._attempts or has_fired) and await self._has_work():
            await self._wait_for_world()

    async def _has_work(self) -> bool:
        if not await self._let_run():
            _logger.warning(
                "The event loop has not come to rest in %d passes: something on it runs again and again "
                "without waiting. Virtual time goes on.",
                _MOST_PASSES,
            )
            return False
        self._start_next_thread()
        return any(not attempt.is_waiting for attempt in self._attempts.values())

    async def _wait_for_world(self) -> None:
        """Until one of the handlers at work has taken a step, or patience is over."""
        at_work = [attempt for attempt in self._attempts.values() if not attempt.is_waiting]
        places = [attempt.place() for attempt in at_work]
        give_up = time.monotonic() + self._patience
        while (left := give_up - time.monotonic()) > 0:
            self._wake.clear()
            if any(
                attempt.is_waiting or attempt.place() is not place
                for attempt, place in zip(at_work, places, strict=True)
            ):
                return
            try:
                async with asyncio.timeout(min(_LOOK_SECONDS, left)):
                    await self._wake.wait()
            except TimeoutError:
                pass
            await self._let_run()
        for attempt in at_work:
            attempt.park()
            _logger.warning(
                "The handler of %s has waited for %g s of real time for something that is neither "
                "asyncio.sleep nor ctx.cancelled; virtual time goes on without it. Give "
                "Harness(patience=...) more seconds if it needs them, or less if it is meant to wait.",
                attempt.what,
                self._patience,
            )

    async def _let_run(self) -> bool:
        """Let everything on the loop run that can, without waiting; False when it finds no end."""
        for _ in range(_MOST_PASSES):
            await asyncio.sleep(0)
            if not has_ready_callbacks(self._loop):
                return True
        return False

    def _start_next_thread(self) -> None:
        self._in_threads = [attempt for attempt in self._in_threads if not attempt.is_over]
        while self._to_start and all(attempt.is_waiting for attempt in self._in_threads):
            attempt, work = self._to_start.popleft()
            if not attempt.is_over:  # or it was stopped before it began
                self._in_threads.append(attempt)
                self._pool.submit(_in_context(attempt, work))

    def _new_attempt(self, what: str) -> Attempt:
        self._count += 1
        return Attempt(self._count, what, self._timers)

    def _attempt(self, grant: Grant) -> Attempt:
        return self._attempts[LeaseKey(grant.job_id, grant.lease)]


class _VirtualCancelSignal(CancelSignal):
    """`ctx.cancelled`; who waits for it waits for the test or for virtual time."""

    def __init__(
        self,
        attempt: Attempt,
        loop: asyncio.AbstractEventLoop,
        timers: VirtualTimers,
        blocked: Callable[[], None],
    ) -> None:
        super().__init__()
        self._blocked = blocked
        self._attempt = attempt
        self._of_test = loop
        self._timers = timers
        self._woken: threading.Event | None = None

    async def wait(self) -> None:
        with self._attempt.waiting():
            await super().wait()

    def wait_blocking(self, timeout: float | None = None) -> bool:
        if not self.is_set() and (timeout is None or timeout > 0):
            woken = threading.Event()
            self._of_test.call_soon_threadsafe(self._block, woken, timeout)
            woken.wait()
        return self.is_set()

    def set(self) -> None:
        super().set()
        if self._woken is not None:
            self._woken.set()

    def _block(self, woken: threading.Event, timeout: float | None) -> None:
        self._woken = woken
        if self.is_set():  # meanwhile
            woken.set()
            return
        if timeout is not None:
            self._timers.add(self._timers.after(timeout), woken.set, woken.is_set)
        self._attempt.block(woken)
        self._blocked()


def _context_of(attempt: Attempt) -> Context:
    context = Context()
    context.run(current_attempt.set, attempt)
    return context


def _in_context(attempt: Attempt, work: Work) -> Work:
    return lambda: _context_of(attempt).run(work)
