"""Runs an observer's handler apart from its connection to the log: a try that blocks stops no heartbeat.

Async handlers run on an event loop of the observer's own, plain functions in threads. What does not end when
it is asked to is left behind, and its thread with it; there is a bound to how many.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Final

from tidelog.handler.daemon_threads import DaemonThreads
from tidelog.handler.failure import FailureText, failure_text
from tidelog.observer.context import ObserverContext
from tidelog.observer.definition import ObserverDefinition

_logger: Final = logging.getLogger("tidelog.observer")

MAX_LEFT_BEHIND: Final = 16
"""Handlers that may hang at once after their timeout. With so many, the observer waits for one to end."""
_LOOK_UP_SECONDS: Final = 1.0


class _Run:
    """One call of a handler. Its future holds the failure, or None when the handler returned."""

    def __init__(self, observer_id: str) -> None:
        self.ended: Future[FailureText | None] = Future()
        self.observer_id = observer_id
        self._cancel: Callable[[], None] | None = None
        self._lock = threading.Lock()
        self._is_cancelled = False

    def begin(self, cancel: Callable[[], None]) -> bool:
        """The handler is about to begin, and can be cancelled so. False when it must not any more."""
        with self._lock:
            self._cancel = cancel
            return not self._is_cancelled

    def cancel(self) -> None:
        with self._lock:
            self._is_cancelled = True
            cancel = self._cancel
        if cancel is not None:
            cancel()

    def end(self, failure: FailureText | None) -> None:
        if not self.ended.done():
            self.ended.set_result(failure)


class _HandlerLoop:
    """An event loop on a daemon thread, which ends when it is retired and nothing runs on it any more."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.new_event_loop()
        self._running = 0
        self._is_retired = False
        threading.Thread(target=self._main, name=name, daemon=True).start()

    def start(self, run: _Run, definition: ObserverDefinition, context: ObserverContext) -> None:
        self._loop.call_soon_threadsafe(self._start, run, definition, context)

    def retire(self) -> None:
        """End as soon as nothing runs. One that is blocked never hears of it."""
        self._loop.call_soon_threadsafe(self._retire)

    def _retire(self) -> None:
        self._is_retired = True
        self._stop_if_idle()

    def _start(self, run: _Run, definition: ObserverDefinition, context: ObserverContext) -> None:
        # A context of its own: nothing that another delivery set can be seen.
        task = self._loop.create_task(_outcome(definition, context), context=contextvars.Context())
        self._running += 1
        task.add_done_callback(lambda done: self._done(run, done))
        if not run.begin(lambda: self._cancel_soon(task)):
            task.cancel()

    def _cancel_soon(self, task: asyncio.Task[FailureText | None]) -> None:
        with suppress(RuntimeError):  # it has ended just now, and its loop after it
            self._loop.call_soon_threadsafe(task.cancel)

    def _done(self, run: _Run, task: asyncio.Task[FailureText | None]) -> None:
        self._running -= 1
        cancelled = FailureText("CancelledError", "CancelledError: before its first step")
        run.end(cancelled if task.cancelled() else task.result())
        self._stop_if_idle()

    def _stop_if_idle(self) -> None:
        if self._is_retired and not self._running:
            self._loop.stop()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            # Until it is retired. A handler may stop the loop, and asyncio ends it when a task that a handler
            # started raises SystemExit or KeyboardInterrupt: that task's failure, and not the other ones'.
            while not self._is_retired or self._running:
                self._run()
        finally:
            self._loop.run_until_complete(_end_what_is_left())
            self._loop.close()

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        except (SystemExit, KeyboardInterrupt):
            _logger.exception("%s: a task that a handler started has ended so", self._name)


async def _end_what_is_left() -> None:
    """Cancel what handlers started and did not wait for."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    if left:
        await asyncio.wait(left, timeout=_LOOK_UP_SECONDS)
    await asyncio.get_running_loop().shutdown_asyncgens()


class Handlers:
    """The handler of one observer, run as often as there are partitions at once.

    Args:
        definition: of the observer.
        farewell_seconds: for which a cancelled handler may go on before it is left behind.
    """

    def __init__(self, definition: ObserverDefinition, *, farewell_seconds: float) -> None:
        self._definition = definition
        self._farewell_seconds = farewell_seconds
        self._threads = DaemonThreads(f"tidelog-observer-{definition.observer_id}")
        self._loop: _HandlerLoop | None = None
        self._left_behind: set[_Run] = set()

    @property
    def left_behind(self) -> int:
        """How many handlers went on after their timeout and have not ended yet."""
        self._left_behind = {run for run in self._left_behind if not run.ended.done()}
        return len(self._left_behind)

    async def run(self, context: ObserverContext) -> FailureText | None:
        """Call the handler once; None when it returned, else how it failed.

        A timeout is a failure: the handler is cancelled, or (a plain function, one that blocks its loop or
        swallows the cancellation) left behind. A cancellation of this call does the same to the handler.
        """
        await self._wait_for_room()
        run = _Run(self._definition.observer_id)
        loop: _HandlerLoop | None = None
        if self._definition.is_async:
            loop = self._loop = self._loop or _HandlerLoop(f"tidelog-observer-{run.observer_id}")
            loop.start(run, self._definition, context)
        else:
            self._threads.submit(lambda: _run_in_thread(run, self._definition, context))
        ended = asyncio.wrap_future(run.ended)
        try:
            await asyncio.wait([ended], timeout=self._definition.timeout)
            if ended.done():
                return ended.result()
            run.cancel()
            if self._definition.is_async:  # a thread hears of nothing
                await asyncio.wait([ended], timeout=self._farewell_seconds)
        finally:
            if not run.ended.done():
                run.cancel()
                self._leave_behind(run, loop)
        message = f"TimeoutError: the handler did not end within {self._definition.timeout:g} s"
        return FailureText(message, message)

    def close(self) -> None:
        """Let idle threads end. Nothing is waited for."""
        if self._loop is not None:
            self._loop.retire()
            self._loop = None
        self._threads.close()

    def _leave_behind(self, run: _Run, loop: _HandlerLoop | None) -> None:
        self._left_behind.add(run)
        if loop is not None and loop is self._loop:
            # It may be blocked for good; what else runs on it may finish there.
            loop.retire()
            self._loop = None

    async def _wait_for_room(self) -> None:
        if self.left_behind < MAX_LEFT_BEHIND:
            return
        _logger.critical(
            "observer %s: %d handlers hang after their timeout; it goes on when one of them ends. Give what "
            "they wait for a bound, and restart the process",
            self._definition.observer_id,
            MAX_LEFT_BEHIND,
        )
        while self.left_behind >= MAX_LEFT_BEHIND:
            waiting = [asyncio.wrap_future(run.ended) for run in self._left_behind]
            await asyncio.wait(waiting, timeout=_LOOK_UP_SECONDS, return_when=asyncio.FIRST_COMPLETED)


async def _outcome(definition: ObserverDefinition, context: ObserverContext) -> FailureText | None:
    try:
        await definition.call(context)
    except BaseException as error:  # noqa: BLE001  whatever a handler raises is the outcome of its try
        return failure_text(error)
    return None


def _run_in_thread(run: _Run, definition: ObserverDefinition, context: ObserverContext) -> None:
    if run.begin(_cannot_be_stopped):
        run.end(contextvars.Context().run(_call, definition, context))
    else:
        run.end(None)


def _cannot_be_stopped() -> None:
    """A thread goes on until its function returns."""


def _call(definition: ObserverDefinition, context: ObserverContext) -> FailureText | None:
    try:
        definition.call_in_thread(context)
    except BaseException as error:  # noqa: BLE001  whatever a handler raises is the outcome of its try
        return failure_text(error)
    return None
