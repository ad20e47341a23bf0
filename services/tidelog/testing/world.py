"""An installation and a worker on virtual time, and how time goes on: from one activity to the next."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tidelog.client.minting import minted_by
from tidelog.observer.definition import ObserverRegistry
from tidelog.testing.attempt import current_attempt
from tidelog.testing.channel import VirtualJobs, VirtualMint
from tidelog.testing.engine import VirtualEngine
from tidelog.testing.errors import HarnessError
from tidelog.testing.failures import Failures, Raised
from tidelog.testing.handlers import VirtualSurroundings
from tidelog.testing.observers import ObserverFailure, VirtualObservers
from tidelog.testing.timers import VirtualTimers, install, uninstall
from tidelog.testing.worker import VirtualWorker
from tidelog.worker.registry import JobRegistry
from tidelog.worker.settings import WorkerSettings
from tidelog_events.instants import Instant, from_seconds, later
from tidelog_events.states import JobState

_LISTED = 10
_CLOSE_SECONDS = 5.0


class VirtualWorld:
    """Everything of a harness but its public face.

    Attributes:
        raised: every attempt that failed, and by which exception.
        observer_failures: every try of an observer that failed.
        attempts: how many attempts have ended.
    """

    def __init__(
        self,
        registry: JobRegistry,
        observers: ObserverRegistry,
        *,
        start: Instant,
        partitions: int,
        settings: WorkerSettings,
        raise_failures: bool,
        patience: float,
    ) -> None:
        self._registry = registry
        self._definitions = observers
        self._settings = settings
        self._raise_failures = raise_failures
        self._patience = patience
        self.engine = VirtualEngine(partitions, start)
        self.jobs = VirtualJobs(self.engine, self.pass_time_until)
        self.mint = VirtualMint(lambda: self.engine.now)
        self.raised: list[Raised] = []
        self.observer_failures: list[ObserverFailure] = []
        self.attempts = 0
        self._failures = Failures(self.engine.ledger)
        self._timers = VirtualTimers(lambda: self.engine.now, start)
        self._turn = asyncio.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._surroundings: VirtualSurroundings | None = None
        self._worker: VirtualWorker | None = None
        self._observers: VirtualObservers | None = None

    async def run_due(self) -> None:
        """Run what is due now, and what that makes due now."""
        await self.advance(lambda: self.engine.now)

    async def advance(
        self, until: Callable[[], Instant], *, stop: Callable[[], bool] = lambda: False
    ) -> None:
        """Let time go on to an instant, from one activity to the next; or until `stop` holds after one.

        Raises:
            HarnessError: it was called in a handler, or on another event loop than before.
            BaseException: what a handler raised, if that is to be raised.
        """
        self._refuse_handlers()
        async with self._turn:
            self._bind()
            with minted_by(self.mint):
                await self._advance(until(), stop)

    async def _advance_to(self, instant: Instant) -> None:
        await self.advance(lambda: instant)

    async def pass_time_until(self, holds: Callable[[], bool], seconds: float) -> None:
        """Let time go on until something holds, at most so many seconds."""
        await self.advance(lambda: later(self.engine.now, from_seconds(seconds)), stop=holds)

    async def run_until_idle(self, max_seconds: float) -> None:
        """Let time go on until no job could be run any more.

        Raises:
            HarnessError: there is still something to run after `max_seconds`.
        """
        end = later(self.engine.now, from_seconds(max_seconds))
        await self.run_due()
        while (instant := self._next_work()) is not None:
            if instant > end:
                await self._advance_to(end)
                raise HarnessError(
                    f"Jobs are still to be run after {max_seconds:g} s: {self._unfinished()}. Give "
                    "run_until_idle(max_seconds=...) more, or look at what keeps them alive."
                )
            await self._advance_to(instant)

    def close(self) -> None:
        """Stop the handlers that still run, and give the event loop its clock back. Nothing is waited for."""
        if self._loop is not None and not self._loop.is_closed():
            if self._worker is not None:
                self._worker.close()
            uninstall(self._loop)
        self._loop, self._worker = None, None

    async def aclose(self) -> None:
        """`close`, and wait until the handlers have ended: a few seconds of real time at most."""
        tasks = [] if self._surroundings is None else self._surroundings.tasks()
        self.close()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSE_SECONDS)

    def _refuse_handlers(self) -> None:
        attempt = current_attempt.get()
        if attempt is not None:
            raise HarnessError(
                f"The handler of {attempt.what} asks its own harness to let time go on. A handler "
                "waits with asyncio.sleep; time is the test's to move."
            )

    def _bind(self) -> None:
        """Stay on one event loop: handlers run on it."""
        loop = asyncio.get_running_loop()
        if self._loop is loop:
            return
        if self._loop is not None:
            raise HarnessError(
                "The harness was used on another event loop before. Give each test a harness of its own, or "
                "run fixture and test on the same loop."
            )
        install(loop)
        self._loop = loop
        self._surroundings = VirtualSurroundings(loop, self._timers, patience=self._patience)
        self._observers = VirtualObservers(
            self._definitions, self.engine.ledger, self._timers, self._surroundings, loop
        )
        if self._registry.queues or self._settings.queues or self._settings.weights:
            self._worker = VirtualWorker(
                self.engine,
                self._registry,
                self._settings,
                self._surroundings,
                loop=loop,
                read_output=self.jobs.output,
            )

    async def _advance(self, until: Instant, stop: Callable[[], bool]) -> None:
        await self._settle()
        while not stop():
            instant = self._next_instant()
            if instant is None or instant > until:
                self._move_to(until)
                return
            self._move_to(instant)
            await self._settle()

    def _move_to(self, instant: Instant) -> None:
        if self._worker is not None:
            self._worker.pass_time(instant)
        self.engine.pass_time(instant)

    async def _settle(self) -> None:
        """Let everything happen that happens at this instant."""
        if self._surroundings is None or self._observers is None:
            return
        while True:
            decisions = self.engine.decisions
            moved = self._worker is not None and self._worker.work()
            has_fired = self._timers.fire_due()
            moved = self._observers.work() or has_fired or moved
            await self._surroundings.settle(has_fired=has_fired)
            if not moved and self.engine.decisions == decisions and not self._surroundings.has_news:
                break
        self.attempts = self._surroundings.ended
        self._raise(self._failures.take(self._surroundings.take_raised()), self._observers.take_failures())

    def _raise(self, raised: list[Raised], observers: list[ObserverFailure]) -> None:
        """Raise the first, if the test wants that; and always what is no `Exception`: it is an end of the
        process, or of the test (`pytest.fail`, a timeout).
        """
        self.raised += raised
        self.observer_failures += observers
        errors = [(found.error, f"attempt {found.attempt} of {found.job_id}") for found in raised]
        errors += [(found.error, f"observer {found.observer_id}") for found in observers]
        for error, who in errors:
            if self._raise_failures or not isinstance(error, Exception | asyncio.CancelledError):
                error.add_note(f"Raised by {who}.")
                raise error

    def _next_instant(self) -> Instant | None:
        instants = [self._next_work(), self._timers.next(), self.engine.next_timer()]
        return min((instant for instant in instants if instant is not None), default=None)

    def _next_work(self) -> Instant | None:
        """When a handler has something to do next; what it left behind when it ended is no work."""
        worker = None if self._worker is None else self._worker.next_instant()
        instants = [worker, self._timers.next_of_running()]
        return min((instant for instant in instants if instant is not None), default=None)

    def _unfinished(self) -> str:
        live = [
            f"{job.job_id} ({job.wire_name}, {job.state}, attempt {job.attempt})"
            for job in self.engine.ledger.jobs()
            if job.state in (JobState.SCHEDULED, JobState.LEASED)
        ]
        more = f" and {len(live) - _LISTED} more" if len(live) > _LISTED else ""
        return ", ".join(live[:_LISTED]) + more
