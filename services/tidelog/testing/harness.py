"""The testing kit's `Harness`: an application on virtual time, in memory (contract section 8)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from math import inf
from typing import Final, Self, Unpack

from tidelog.app import App
from tidelog.client.checking import check_job_id
from tidelog.client.client import CancelResult, Client
from tidelog.client.minting import minted_by, push_source, remove_source
from tidelog.client.newjob import JobOptions, NewJob
from tidelog.client.schedule import Schedule
from tidelog.handler.jobs import JobRequest
from tidelog.log.topics import Topics
from tidelog.scheduling.sync import actor_of
from tidelog.testing.assertions import Assertions
from tidelog.testing.channel import CLIENT_ID, VirtualChannel
from tidelog.testing.errors import HarnessError
from tidelog.testing.failures import Raised
from tidelog.testing.observers import ObserverFailure
from tidelog.testing.world import VirtualWorld
from tidelog.worker.settings import WorkerSettings
from tidelog_events.codec import encode_command
from tidelog_events.identity import JobId, queue_name
from tidelog_events.instants import from_datetime, from_seconds, later, to_datetime
from tidelog_events.jsontext import Json
from tidelog_events.record import JobRecord
from tidelog_events.schedule_view import ScheduleView
from tidelog_events.states import JobState
from tidelog_events.transitions import JobTransition, Transition

START: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""Where the time of a harness begins unless it is said."""

PARTITIONS: Final = 12
PATIENCE: Final = 5.0


class Harness:
    """An application on virtual time, in memory.

    Its handlers run by the rules of real engines and workers, without a log, a database or a clock.

    Nothing happens by itself. `run_due` runs the jobs that are due; `advance` lets time go on, and stops at
    everything that happens on the way, at its own instant: retries, timeouts, leases, delays. The same test
    writes the same log, with the same ids.

    While it is open, as `async with Harness(app) as h`, `app.client()` hands out `h.client`, and the keys and
    delays of every `NewJob` are of virtual time. Without `async with` these two are as ever; all else works.

    How handlers run:
        * Async handlers run on the test's own event loop. Their `asyncio.sleep`, `asyncio.timeout` and
          `loop.call_later` wait for virtual time; those of the test itself do not.
        * Virtual time stands still while a handler waits for anything else: a socket, a thread. When it has
          not moved for `patience` seconds of real time, it is left to it, with a warning in the log, and
          time goes on.
        * Plain functions run in threads, one after the other. `time.sleep` in them is real;
          `ctx.cancelled.wait_blocking` waits for virtual time.
        * Observers are told of every event at its own instant, in order per partition, and are tried again on
          virtual time; like handlers they run on the test's loop, or in threads.
        * `datetime.now` and `time.time` are real: hand a clock to code that must know the time, or use
          `harness.now`.

    Args:
        app: the application. Its settings are not read.
        start: where time begins, with a time zone; 2026-01-01T00:00:00Z when absent.
        partitions: over which queues are spread, as `TIDELOG_PARTITIONS`.
        worker: how the worker works: its queues (those of the declared jobs when absent), concurrency,
            leases.
        raise_failures: whether a call that lets time go on raises what a handler raised, with its traceback,
            after the failure is in the log; `AttemptFailed` for an attempt that failed otherwise (a timeout,
            a payload that does not decode). What is no `Exception` (`KeyboardInterrupt`, `pytest.fail`) is
            always raised.
        patience: seconds of real time that a handler may wait for the world, at one go.
        schedules: whether the schedules that the application declares are put at the start, as workers do.

    Raises:
        ValueError: a number is out of its bounds, or `start` has no time zone.
    """

    def __init__(
        self,
        app: App,
        *,
        start: datetime = START,
        partitions: int = PARTITIONS,
        worker: WorkerSettings | None = None,
        raise_failures: bool = False,
        patience: float = PATIENCE,
        schedules: bool = True,
    ) -> None:
        if partitions < 1:
            raise ValueError(f"partitions is {partitions}; it must be 1 or more")
        if not patience > 0:
            raise ValueError(f"patience is {patience}; it must be more than 0 seconds")
        self._app = app
        self._world = VirtualWorld(
            app.registry,
            app.observers,
            start=from_datetime(start),
            partitions=partitions,
            settings=worker or WorkerSettings(),
            raise_failures=raise_failures,
            patience=patience,
        )
        self._ledger = self._world.engine.ledger
        self._assertions = Assertions(self._ledger)
        self._client = Client(
            VirtualChannel(self._world.engine), self._world.jobs, Topics().commands, partitions, CLIENT_ID
        )
        if schedules:
            self._put_schedules()
        self._stood_in: Client | None = None
        self._is_open = False

    # Opening and closing

    def open(self) -> Self:
        """What `async with` does at its beginning, for fixtures that are no coroutines."""
        if not self._is_open:
            self._is_open = True
            push_source(self._world.mint)
            self._stood_in = self._app.stand_in(self._client)
        return self

    def close(self) -> None:
        """What `async with` does at its end, but that nothing is waited for. May be called again.

        Handlers that still run are cancelled; what becomes of them is not written down.
        """
        self._let_go()
        self._world.close()

    async def __aenter__(self) -> Self:
        return self.open()

    async def __aexit__(self, *_: object) -> None:
        self._let_go()
        await self._world.aclose()

    def _let_go(self) -> None:
        if self._is_open:
            self._is_open = False
            remove_source(self._world.mint)
            self._app.stand_in(self._stood_in)

    # Time

    @property
    def now(self) -> datetime:
        """Virtual time, in UTC."""
        return to_datetime(self._world.engine.now)

    async def run_due(self) -> int:
        """Run the jobs that are due now, and those that become due by that, until none is.

        Returns:
            How many attempts have ended.
        """
        before = self._world.attempts
        await self._world.run_due()
        return self._world.attempts - before

    async def advance(self, seconds: float | timedelta) -> int:
        """Let so much time pass. Everything on the way happens at its own instant, in order.

        Returns:
            How many attempts have ended.

        Raises:
            ValueError: the time is negative, or no time at all (infinity).
        """
        span = _in_seconds(seconds)
        if not span >= 0:
            raise ValueError(f"time cannot go back: advance({seconds!r})")
        before = self._world.attempts
        await self._world.advance(lambda: later(self._world.engine.now, from_seconds(span)))
        return self._world.attempts - before

    async def advance_to(self, moment: datetime) -> int:
        """Let time pass up to a moment, as `advance`.

        Raises:
            ValueError: the moment is past, or has no time zone.
        """
        until = from_datetime(moment)
        if until < self._world.engine.now:
            raise ValueError(f"time cannot go back: it is {self.now.isoformat()}, past {moment.isoformat()}")
        before = self._world.attempts
        await self._world.advance(lambda: until)
        return self._world.attempts - before

    async def run_until_idle(self, max_seconds: float | timedelta = 86_400.0) -> int:
        """Let time pass until no job is left that the worker could run, delayed ones and retries included.

        Ticks of schedules do not count, or it would never end; those on the way happen.

        Returns:
            How many attempts have ended.

        Raises:
            HarnessError: after `max_seconds` there are still jobs to run; they are named.
        """
        bound = _in_seconds(max_seconds)
        before = self._world.attempts
        await self._world.run_until_idle(bound)
        return self._world.attempts - before

    # Commands

    @property
    def client(self) -> Client:
        """A client as `app.client()` gives it, for code that takes one.

        Every command is decided before its call returns. `wait` lets virtual time go on until the job has
        ended, at most for its `timeout`; in a handler it waits.
        """
        return self._client

    async def enqueue(
        self, job: JobRequest | NewJob | str, payload: object = None, **options: Unpack[JobOptions]
    ) -> JobId:
        """Enqueue a job, as `Client.enqueue`. It runs when time goes on, or by `run_due`."""
        with minted_by(self._world.mint):
            return await self._client.enqueue(job, payload, **options)

    async def enqueue_many(self, jobs: Iterable[JobRequest | NewJob], *, atomic: bool = False) -> list[JobId]:
        """Enqueue many jobs, as `Client.enqueue_many`."""
        with minted_by(self._world.mint):
            return await self._client.enqueue_many(jobs, atomic=atomic)

    async def send(
        self, job: JobRequest | NewJob | str, payload: object = None, **options: Unpack[JobOptions]
    ) -> JobId:
        """Send a job, as `Client.send`: a refusal of the engine is not heard of."""
        with minted_by(self._world.mint):
            return await self._client.send(job, payload, **options)

    async def cancel(self, job_id: str, *, actor: str | None = None) -> CancelResult:
        """Cancel a job, as `Client.cancel`. Its handler, if it runs, hears of it by the next `run_due`."""
        with minted_by(self._world.mint):
            return await self._client.cancel(job_id, actor=actor)

    async def requeue(self, job_id: str, *, actor: str | None = None) -> None:
        """Start a dead-lettered or quarantined job again, as `Client.requeue`."""
        with minted_by(self._world.mint):
            await self._client.requeue(job_id, actor=actor)

    async def pause(self, queue: str, *, actor: str | None = None) -> None:
        """Let no job of a queue start from now on."""
        with minted_by(self._world.mint):
            await self._client.pause_queue(queue, actor=actor)

    async def resume(self, queue: str, *, actor: str | None = None) -> None:
        """Let the jobs of a queue start again."""
        with minted_by(self._world.mint):
            await self._client.resume_queue(queue, actor=actor)

    async def limit(self, queue: str, limit: int | None, *, actor: str | None = None) -> None:
        """Bound how many jobs of a queue run at once; None for no bound."""
        with minted_by(self._world.mint):
            await self._client.set_concurrency_limit(queue, limit, actor=actor)

    async def put_schedule(self, schedule: Schedule, *, actor: str | None = None) -> None:
        """Put a schedule that the application does not declare, as `Client.put_schedule`."""
        with minted_by(self._world.mint):
            await self._client.put_schedule(schedule, actor=actor)

    async def remove_schedule(self, schedule_id: str, *, actor: str | None = None) -> None:
        """Let a schedule enqueue no more jobs, as `Client.remove_schedule`."""
        with minted_by(self._world.mint):
            await self._client.remove_schedule(schedule_id, actor=actor)

    async def trigger_schedule(
        self, schedule_id: str, *, actor: str | None = None, command_id: str | None = None
    ) -> JobId:
        """Enqueue a job of a schedule now, as `Client.trigger_schedule`: its id."""
        with minted_by(self._world.mint):
            return await self._client.trigger_schedule(schedule_id, actor=actor, command_id=command_id)

    def _put_schedules(self) -> None:
        for schedule in self._app.schedules:
            command = schedule.command(actor=actor_of(self._app.name), command_id=self._world.mint.mint())
            self._world.engine.decide(encode_command(command))
            if self._ledger.schedule(schedule.schedule_id) is None:
                raise HarnessError(f"{schedule!r} cannot be put: the rules refuse it.")

    # What is there

    def job(self, job_id: str) -> JobRecord | None:
        """A job as it is now; None when there is none, or it was purged."""
        return self._ledger.job(check_job_id(job_id))

    def jobs(
        self,
        *,
        state: JobState | str | None = None,
        wire_name: str | None = None,
        queue: str | None = None,
    ) -> list[JobRecord]:
        """The jobs that are not purged, in the order in which they were enqueued."""
        wanted = None if state is None else JobState(state)
        return [
            job
            for job in self._ledger.jobs()
            if wanted in (None, job.state)
            and wire_name in (None, job.wire_name)
            and queue in (None, job.queue)
        ]

    def schedules(self, queue: str | None = None) -> list[ScheduleView]:
        """The schedules, or those of a queue, by id: next tick, last job, how many ticks were skipped."""
        return self._ledger.schedules(None if queue is None else queue_name(queue))

    def history(self, job_id: str) -> list[JobTransition]:
        """The steps of a job's life, the purged ones too: `[step.TYPE for step in h.history(job_id)]`."""
        return self._ledger.steps(check_job_id(job_id))

    def transitions(self) -> list[Transition]:
        """Everything that was written to the log, in order; also what is no step of a job's life."""
        return list(self._ledger.events)

    def script(self) -> list[bytes]:
        """What was decided here, as lines for `tidelog replay --partitions N`, which leads to the same
        transitions: to keep, to look at, or to hand in with a bug report.
        """
        return self._world.engine.script()

    @property
    def failures(self) -> list[Raised]:
        """Every attempt that failed so far: its job, which attempt, and the exception that ended it."""
        return list(self._world.raised)

    @property
    def observer_failures(self) -> list[ObserverFailure]:
        """Every try of an observer that failed so far; the last ones are those of dead letters."""
        return list(self._world.observer_failures)

    # Assertions

    def assert_enqueued(
        self,
        wire_name: str,
        *,
        queue: str | None = None,
        payload: Mapping[str, Json] | None = None,
        count: int | None = None,
    ) -> list[JobId]:
        """Assert that such jobs were enqueued, whatever has become of them.

        Args:
            wire_name: of the jobs.
            queue: where they were enqueued.
            payload: what must be in their payload; other keys may be there too, also in objects within.
            count: how many there must be; at least one when absent.

        Returns:
            Their ids, in the order in which they were enqueued.

        Raises:
            AssertionError: there are not; it lists what was enqueued.
        """
        __tracebackhide__ = True  # pytest shows the test's line, not this one
        return self._assertions.enqueued(wire_name, queue=queue, payload=payload, count=count)

    def assert_not_enqueued(
        self,
        wire_name: str | None = None,
        *,
        queue: str | None = None,
        payload: Mapping[str, Json] | None = None,
    ) -> None:
        """Assert that no such job was enqueued; without arguments, that none was at all."""
        __tracebackhide__ = True
        self._assertions.not_enqueued(wire_name, queue=queue, payload=payload)

    def assert_state(self, job_id: str, state: JobState | str) -> JobRecord:
        """Assert a job's state; that of a purged job is the last it had.

        Returns:
            The job.

        Raises:
            AssertionError: it is in another one; it tells what happened to the job.
        """
        __tracebackhide__ = True
        return self._assertions.state(job_id, state)

    def assert_output(self, job_id: str, output: Json) -> JobRecord:
        """Assert that a job has succeeded, and what its handler returned, as JSON has it."""
        __tracebackhide__ = True
        return self._assertions.output(job_id, output)


def _in_seconds(span: float | timedelta) -> float:
    seconds = span.total_seconds() if isinstance(span, timedelta) else span
    if seconds == inf:
        raise ValueError("a test has no time without an end; say how many seconds may pass")
    return seconds
