"""Virtual time for handlers: their `asyncio.sleep` and `asyncio.timeout` wait for the harness's clock.

The timers that a handler sets, in its own task or in one that it started, are told from all others by a
context variable; so a handler shares the test's event loop with database pools and other things whose timers
are real.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any
from weakref import WeakKeyDictionary

from tidelog.testing.attempt import Attempt, current_attempt
from tidelog.testing.errors import HarnessError
from tidelog_events.instants import LAST_INSTANT, MAX_SECONDS, SECOND, Instant, from_seconds, later

_SLEEP = "_set_result_unless_cancelled"
"""The callback behind `asyncio.sleep`. Who sleeps waits for time alone; a timeout guards another wait."""


@dataclass(order=True, slots=True)
class _Timer:
    at: Instant
    number: int
    call: Callable[[], None] = field(compare=False)
    is_cancelled: Callable[[], bool] = field(compare=False)
    is_left: Callable[[], bool] = field(compare=False)


class VirtualTimers:
    """What is to happen at an instant of virtual time.

    Args:
        now: tells the instant.
        start: what an event loop's clock is counted from.
    """

    def __init__(self, now: Callable[[], Instant], start: Instant) -> None:
        self._now = now
        self._start = start
        self._heap: list[_Timer] = []
        self._count = 0

    def time(self) -> float:
        """What `loop.time()` says to a handler: seconds since the start."""
        return (self._now() - self._start) / SECOND

    def add(
        self,
        at: Instant,
        call: Callable[[], None],
        is_cancelled: Callable[[], bool],
        is_left: Callable[[], bool] = lambda: False,
    ) -> None:
        """Call at an instant, unless it is cancelled by then. What is past is due now.

        Args:
            is_left: whether it is of a task that a handler started and left behind when it ended.
        """
        self._count += 1
        heappush(self._heap, _Timer(at, self._count, call, is_cancelled, is_left))

    def instant_of(self, when: float) -> Instant:
        """The instant of a time of `time`."""
        return Instant(min(round(self._start + when * SECOND), LAST_INSTANT))

    def after(self, seconds: float) -> Instant:
        """The instant so many seconds from now."""
        return later(self._now(), from_seconds(min(seconds, MAX_SECONDS)))

    def next(self) -> Instant | None:
        """The instant of the first one; None when there is none."""
        while self._heap and self._heap[0].is_cancelled():
            heappop(self._heap)
        return self._heap[0].at if self._heap else None

    def next_of_running(self) -> Instant | None:
        """The instant of the first one that a handler may wait for; what one left behind may never end."""
        first = self.next()
        if first is None or not self._heap[0].is_left():
            return first
        wanted = (timer.at for timer in self._heap if not timer.is_cancelled() and not timer.is_left())
        return min(wanted, default=None)

    def fire_due(self) -> bool:
        """Let happen what is due, in order; False when nothing was."""
        fired = False
        while (at := self.next()) is not None and at <= self._now():
            heappop(self._heap).call()
            fired = True
        return fired

    def call_at(
        self,
        attempt: Attempt,
        loop: asyncio.AbstractEventLoop,
        when: float,
        callback: Callable[..., Any],
        args: tuple[Any, ...],
        context: Context | None,
    ) -> asyncio.TimerHandle:
        """`loop.call_at` for a handler."""
        within = copy_context() if context is None else context
        handle = asyncio.TimerHandle(when, callback, args, loop, within)
        is_sleep = getattr(callback, "__name__", "") == _SLEEP

        def run() -> None:
            if not handle.cancelled():
                callback(*args)

        def fire() -> None:
            attempt.sleeps.discard(handle)
            loop.call_soon(run, context=within)

        if is_sleep:
            attempt.sleeps.add(handle)
        self.add(self.instant_of(when), fire, handle.cancelled, lambda: attempt.is_over)
        return handle


_users: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


def install(loop: asyncio.AbstractEventLoop) -> None:
    """Let the timers of handlers on that loop run on virtual time, and all others as before.

    Raises:
        HarnessError: it is no loop of asyncio's own, and does not let its clock be told.
    """
    if not isinstance(loop, asyncio.BaseEventLoop):
        raise HarnessError(
            "A harness runs on asyncio's own event loop, not on a "
            f"{type(loop).__module__}.{type(loop).__name__}: run the test on the default loop."
        )
    _users[loop] = _users.get(loop, 0) + 1
    if _users[loop] > 1:
        return
    real_time, real_call_at = loop.time, loop.call_at

    def time() -> float:
        attempt = current_attempt.get()
        return real_time() if attempt is None else attempt.timers.time()

    def call_at(
        when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        attempt = current_attempt.get()
        if attempt is None:
            return real_call_at(when, callback, *args, context=context)
        return attempt.timers.call_at(attempt, loop, when, callback, args, context)

    vars(loop).update(time=time, call_at=call_at)


def uninstall(loop: asyncio.AbstractEventLoop) -> None:
    """Undo one `install`."""
    left = _users.pop(loop, 0) - 1
    if left > 0:
        _users[loop] = left
    elif left == 0:
        vars(loop).pop("time", None)
        vars(loop).pop("call_at", None)


def has_ready_callbacks(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether anything but the caller could run on the loop now. asyncio tells it nowhere else."""
    return bool(vars(loop)["_ready"])
