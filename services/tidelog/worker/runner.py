"""Runs handlers: async ones on the application's event loop, plain functions in threads.

The runner is told what to do from the pump's thread, and tells what happened from whatever thread it
happened in. A handler may raise anything or never return; the runner always stays whole.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tidelog.handler.context import JobContext, OutputReader
from tidelog.handler.failure import FailureText, failure_text
from tidelog.handler.jobs import AnyJobDefinition
from tidelog.handler.verdicts import next_due
from tidelog.worker import outcomes
from tidelog.worker.handover import LoopCalls
from tidelog.worker.messages import Began, Ended, LeaseKey, StopReason
from tidelog.worker.registry import JobRegistry, Unroutable, decode
from tidelog.worker.surroundings import Surroundings
from tidelog_events.commands import Outcome
from tidelog_events.instants import Instant
from tidelog_events.replies import Grant

_logger = logging.getLogger("tidelog.worker")


@dataclass(slots=True, eq=False)
class _Run:
    """One attempt. `lock` decides the race between its beginning and its stop."""

    grant: Grant
    definition: AnyJobDefinition
    context: JobContext
    lock: threading.Lock = field(default_factory=threading.Lock)
    has_begun: bool = False
    stop: StopReason | None = None
    task: asyncio.Task[Outcome | None] | None = None

    @property
    def key(self) -> LeaseKey:
        return LeaseKey(self.grant.job_id, self.grant.lease)


class Runner:
    """Runs the handlers of one worker.

    Args:
        registry: which handler runs a job.
        loop: the application's event loop, on which async handlers run.
        cancel_by_exception: whether a cancelled job's async handler is cancelled the asyncio way.
        read_output: how handlers read the outputs of other jobs; None: they cannot.
        tell: takes what happened; called from any thread.
        surroundings: what handlers run in; a worker's own when absent.
    """

    def __init__(
        self,
        registry: JobRegistry,
        *,
        loop: asyncio.AbstractEventLoop,
        cancel_by_exception: bool,
        read_output: OutputReader | None,
        tell: Callable[[Began | Ended], None],
        surroundings: Surroundings | None = None,
    ) -> None:
        self._registry = registry
        self._loop = loop
        self._calls = LoopCalls(loop)
        self._cancel_by_exception = cancel_by_exception
        self._read_output = read_output
        self._tell = tell
        self._surroundings = surroundings or Surroundings()
        self._runs: dict[LeaseKey, _Run] = {}

    def start(self, grant: Grant) -> None:
        """Run the handler of a job. `Ended` follows, whatever happens, unless its thread never ends."""
        try:
            definition = self._registry.find(grant.wire_name)
        except Unroutable as error:
            self._tell(Ended(LeaseKey(grant.job_id, grant.lease), _unroutable(grant, error)))
            return
        context = JobContext(
            grant,
            loop=self._loop,
            read_output=self._read_output,
            cancelled=self._surroundings.cancel_signal(grant),
        )
        run = _Run(grant, definition, context)
        self._runs[run.key] = run
        if not definition.signature.is_async:
            self._surroundings.submit(grant, lambda: self._run_in_thread(run))
        elif not self._calls.hand_over(lambda: self._run_on_loop(run)):
            # The loop is closed: the application has ended around its worker.
            self._end(run, outcomes.returned(grant))

    def stop(self, key: LeaseKey, reason: StopReason) -> None:
        """Ask a handler to stop; when it has not begun, it never will."""
        run = self._runs.get(key)
        if run is None:
            return
        with run.lock:
            run.stop = reason
            has_begun = run.has_begun
        run.context.cancelled.set()
        if not has_begun:
            self._end(run, _stopped_outcome(run))
        elif run.definition.signature.is_async and (
            self._cancel_by_exception or reason is not StopReason.CANCELLED
        ):
            self._calls.hand_over(lambda: _cancel(run))

    def extend(self, key: LeaseKey, lease_expiry: Instant) -> None:
        """A handler's lease was renewed."""
        run = self._runs.get(key)
        if run is not None:
            run.context.renewed_until(lease_expiry)

    def close(self) -> None:
        """Cancel what still runs on the loop, and let idle threads end. Nothing is waited for."""
        for key in list(self._runs):
            self.stop(key, StopReason.LEASE_LOST)
        self._surroundings.close()

    def _begin(self, run: _Run) -> bool:
        """Whether the handler may begin; a stop that came first has ended the run already."""
        with run.lock:
            if run.stop is not None:
                return False
            run.has_begun = True
        _logger.debug("Attempt %d of %s begins.", run.grant.attempt, run.grant.job_id)
        self._tell(Began(run.key, run.definition.timeout))
        return True

    def _end(self, run: _Run, outcome: Outcome | None) -> None:
        if self._runs.pop(run.key, None) is not None:
            what = "nothing to report" if outcome is None else outcome.outcome
            _logger.debug("Attempt %d of %s ends: %s.", run.grant.attempt, run.grant.job_id, what)
            self._tell(Ended(run.key, outcome))

    def _run_on_loop(self, run: _Run) -> None:
        if not self._begin(run):
            return
        run.task = self._surroundings.create_task(run.grant, self._loop, self._async_outcome(run))
        run.task.add_done_callback(lambda task: self._task_done(run, task))

    def _task_done(self, run: _Run, task: asyncio.Task[Outcome | None]) -> None:
        # A task that is cancelled before its first step never enters the coroutine that handles it.
        self._end(run, _stopped_outcome(run) if task.cancelled() else task.result())

    def _run_in_thread(self, run: _Run) -> None:
        if self._begin(run):
            self._end(run, self._outcome(run))

    async def _async_outcome(self, run: _Run) -> Outcome | None:
        try:
            try:
                arguments = _arguments(run)
            except Unroutable as error:
                return _unroutable(run.grant, error)
            return _finished(run, await run.definition.function(**arguments))
        except BaseException as error:  # noqa: BLE001  whatever a handler raises is the outcome of its attempt
            return self._raised(run, error)

    def _outcome(self, run: _Run) -> Outcome | None:
        try:
            try:
                arguments = _arguments(run)
            except Unroutable as error:
                return _unroutable(run.grant, error)
            value = run.definition.function(**arguments)
            if inspect.iscoroutine(value):
                value.close()
                return _failed(run, "TypeError: a handler that is no `async def` returned a coroutine")
            return _finished(run, value)
        except BaseException as error:  # noqa: BLE001  whatever a handler raises is the outcome of its attempt
            return self._raised(run, error)

    def _raised(self, run: _Run, error: BaseException) -> Outcome | None:
        if isinstance(error, asyncio.CancelledError) and run.stop is not None:
            return _stopped_outcome(run)
        self._surroundings.raised(run.grant, error)
        text = failure_text(error)
        _logger.warning("Attempt %d of %s failed: %s", run.grant.attempt, run.grant.job_id, text.error)
        due = next_due(error, self._surroundings.now())
        return outcomes.failed(run.grant, text, run.context.added_tags, due=due)


def _cancel(run: _Run) -> None:
    if run.task is not None:
        run.task.cancel()


def _arguments(run: _Run) -> dict[str, object]:
    arguments = decode(run.definition, run.grant)
    context_name = run.definition.signature.context_name
    if context_name is not None:
        arguments[context_name] = run.context
    return arguments


def _finished(run: _Run, value: object) -> Outcome:
    """The handler returned: that counts, also when it was asked to stop (contract section 3, Cancel)."""
    output = run.definition.signature.encode_output(value)
    return outcomes.succeeded(run.grant, output, run.context.added_tags)


def _unroutable(grant: Grant, error: Unroutable) -> Outcome:
    reason = str(error).encode(errors="backslashreplace").decode()
    _logger.warning("%s is quarantined: %s", grant.job_id, reason)
    return outcomes.unroutable(grant, reason)


def _failed(run: _Run, error: str) -> Outcome:
    return outcomes.failed(run.grant, FailureText(error, error), run.context.added_tags)


def _stopped_outcome(run: _Run) -> Outcome | None:
    """What is reported of a handler that stopped because it was asked to."""
    match run.stop:
        case StopReason.CANCELLED:
            return outcomes.cancelled(run.grant)
        case StopReason.TIMED_OUT:
            return outcomes.timed_out(run.grant, run.definition.timeout or 0.0, run.context.added_tags)
        case StopReason.LEASE_LOST:
            return None
        case StopReason.SHUT_DOWN | None:
            return outcomes.returned(run.grant)
