"""The observers of a harness: told of each event at its own instant, tried again on virtual time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

from tidelog.observer.context import ObserverContext
from tidelog.observer.definition import ObserverDefinition
from tidelog.testing.attempt import Attempt
from tidelog.testing.handlers import VirtualSurroundings
from tidelog.testing.ledger import Ledger
from tidelog.testing.timers import VirtualTimers
from tidelog_events.identity import Partition
from tidelog_events.instants import SECOND, from_datetime
from tidelog_events.record import JobRecord
from tidelog_events.transitions import Transition


@dataclass(frozen=True, slots=True)
class ObserverFailure:
    """A try of an observer that failed.

    Attributes:
        observer_id: which observer.
        transition: what it was told of.
        try_number: which try it was, from 1.
        error: the exception, with the handler's own traceback.
        is_dead_letter: whether it was the last try, so that the event became a dead letter.
    """

    observer_id: str
    transition: Transition
    try_number: int
    error: BaseException
    is_dead_letter: bool


@dataclass(slots=True, eq=False)
class _Lane:
    """What an observer is still to be told of a partition, in order: a failed delivery holds up the rest."""

    definition: ObserverDefinition
    events: deque[Transition] = field(default_factory=deque)
    tries: int = 0
    is_busy: bool = False


class VirtualObservers:
    """All observers of an application."""

    def __init__(
        self,
        definitions: Iterable[ObserverDefinition],
        ledger: Ledger,
        timers: VirtualTimers,
        surroundings: VirtualSurroundings,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._definitions = list(definitions)
        self._ledger = ledger
        self._timers = timers
        self._surroundings = surroundings
        self._loop = loop
        self._seen = 0
        self._lanes: dict[tuple[str, Partition], _Lane] = {}
        self._failures: list[ObserverFailure] = []

    def work(self) -> bool:
        """Begin the deliveries that can begin now; False when there was none."""
        self._take_events()
        ready = [lane for lane in self._lanes.values() if lane.events and not lane.is_busy]
        for lane in ready:
            self._try(lane)
        return bool(ready)

    def take_failures(self) -> list[ObserverFailure]:
        """The tries that failed since the last call."""
        failures, self._failures = self._failures, []
        return failures

    def _take_events(self) -> None:
        for event in self._ledger.events[self._seen :]:
            for definition in self._definitions:
                if self._concerns(definition, event):
                    key = (definition.observer_id, event.partition)
                    self._lanes.setdefault(key, _Lane(definition)).events.append(event)
        self._seen = len(self._ledger.events)

    def _concerns(self, definition: ObserverDefinition, event: Transition) -> bool:
        if isinstance(definition.start, datetime) and event.at < from_datetime(definition.start):
            return False
        if not definition.filter.concerns(event):
            return False
        if not definition.filter.tags:
            return True
        job = self._ledger.job_after(event)
        return job is not None and definition.filter.tags.issubset(job.tags)

    def _try(self, lane: _Lane) -> None:
        lane.is_busy = True
        lane.tries += 1
        event, definition = lane.events[0], lane.definition

        async def find_job() -> JobRecord | None:
            return self._ledger.job_after(event)

        context = ObserverContext(
            event,
            observer_id=definition.observer_id,
            try_number=lane.tries,
            find_job=find_job,
            loop=self._loop,
        )
        attempt = self._surroundings.begin(
            f"observer {definition.observer_id!r}, told of event {context.idempotency_key},"
        )
        ended = _Ended(lambda error: self._ended(lane, attempt, error))
        self._timers.add(
            self._timers.after(definition.timeout),
            lambda: self._time_out(definition, attempt, ended),
            lambda: attempt.is_over,
        )
        if definition.is_async:
            task = self._surroundings.start_task(
                attempt, _awaited(definition, context), definition.observer_id
            )
            task.add_done_callback(lambda done: ended.by(_error_of(done)))
        else:
            self._surroundings.start_thread(attempt, lambda: self._in_thread(definition, context, ended))

    def _in_thread(self, definition: ObserverDefinition, context: ObserverContext, ended: _Ended) -> None:
        error: BaseException | None = None
        try:
            definition.call_in_thread(context)
        except BaseException as raised:  # noqa: BLE001  whatever a handler raises is the outcome of its try
            error = raised
        self._loop.call_soon_threadsafe(ended.by, error)

    def _time_out(self, definition: ObserverDefinition, attempt: Attempt, ended: _Ended) -> None:
        ended.by(TimeoutError(f"the handler took longer than {definition.timeout:g} s"))
        if attempt.task is not None:
            attempt.task.cancel()

    def _ended(self, lane: _Lane, attempt: Attempt, error: BaseException | None) -> None:
        self._surroundings.end(attempt)
        if error is None:
            self._next(lane)
            return
        definition = lane.definition
        is_last = definition.retry.is_exhausted(lane.tries)
        self._failures.append(
            ObserverFailure(definition.observer_id, lane.events[0], lane.tries, error, is_last)
        )
        if is_last:
            self._next(lane)
        else:
            delay = definition.retry.delay_after(lane.tries) / SECOND
            self._timers.add(self._timers.after(delay), lambda: self._again(lane), lambda: False)

    def _again(self, lane: _Lane) -> None:
        lane.is_busy = False

    def _next(self, lane: _Lane) -> None:
        lane.events.popleft()
        lane.tries = 0
        lane.is_busy = False


class _Ended:
    """Tells once how a try ended: by its handler, or by its timeout."""

    def __init__(self, tell: Callable[[BaseException | None], None]) -> None:
        self._tell = tell
        self._is_told = False

    def by(self, error: BaseException | None) -> None:
        if not self._is_told:
            self._is_told = True
            self._tell(error)


async def _awaited(definition: ObserverDefinition, context: ObserverContext) -> BaseException | None:
    try:
        await definition.call(context)
    except BaseException as error:  # noqa: BLE001  whatever a handler raises is the outcome of its try
        return error
    return None


def _error_of(task: asyncio.Task[BaseException | None]) -> BaseException | None:
    return asyncio.CancelledError("before its first step") if task.cancelled() else task.result()
