"""The application: its jobs, schedules and observers, and the way to a client (contract section 8)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager

from tidelog.client.client import Client
from tidelog.client.errors import InvalidCommand, shown
from tidelog.client.newjob import TagLike
from tidelog.client.schedule import Schedule
from tidelog.handler.jobs import JobDecorator, JobRequest, Retry, declare, policy_of
from tidelog.handler.signature import DefinitionError
from tidelog.log.address import open_log
from tidelog.observer.definition import (
    DEFAULT_TIMEOUT,
    HandlerT,
    ObserverRegistry,
    declare_observer,
)
from tidelog.observer.errors import BadObserver
from tidelog.observer.filters import TagFilter, TransitionFilter
from tidelog.observer.start import Start
from tidelog.scheduling.registry import ScheduleRegistry, check_owner
from tidelog.settings import Settings
from tidelog.worker.registry import JobRegistry
from tidelog_events.identity import DEFAULT_QUEUE
from tidelog_events.retry import DEFAULT_RETRY
from tidelog_events.states import CatchUp
from tidelog_projections.projection import Projection


class App:
    """Where the jobs of an application are declared, and where its clients come from.

    Args:
        settings: where log and Postgres are. When absent they are read from the environment and
            `tidelog.toml` at the first need, so that to import an application's module needs neither.
        name: tells the schedules of this application from those of others in the same installation; needed
            for `--prune-schedules` only. Keep it for ever.

    Attributes:
        name: as said.
        registry: the declared jobs, for workers.
        observers: the declared observers.
        schedules: the declared schedules, which workers put at their start.

    Raises:
        DefinitionError: the name is empty, too long, or not printable.
    """

    def __init__(self, settings: Settings | None = None, *, name: str | None = None) -> None:
        self._settings = settings
        self._stand_in: Client | None = None
        self.name = None if name is None else check_owner(name)
        self.registry = JobRegistry()
        self.observers = ObserverRegistry()
        self.schedules = ScheduleRegistry()

    @property
    def settings(self) -> Settings:
        """The settings. Raises `SettingsError` when they are read now and one of them is wrong."""
        if self._settings is None:
            self._settings = Settings()
        return self._settings

    def job(
        self,
        wire_name: str,
        *,
        queue: str = DEFAULT_QUEUE,
        retry: Retry | None = None,
        timeout: float | None = None,
    ) -> JobDecorator:
        """Declare the decorated function as the handler of a job.

        The function can still be called as it is; `.job(...)` on it describes a job to enqueue.

        Args:
            wire_name: what commands call the job by, 1 to 128 characters, once per application. Keep it when
                the function is renamed.
            queue: where the job is enqueued unless a call says otherwise.
            retry: how a failed attempt is tried again; ten attempts with growing delays when absent.
            timeout: seconds that one attempt may take; no bound when absent.

        Raises:
            DefinitionError: one of these is wrong, the wire name has a handler already, or an argument of
                the function has no form in JSON.
        """
        return declare(wire_name, queue=queue, retry=retry, timeout=timeout, register=self.registry.add)

    def observer(
        self,
        observer_id: str,
        *,
        states: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        wire_names: Iterable[str] | None = None,
        queue: str | None = None,
        queues: Iterable[str] | None = None,
        tags: Iterable[TagFilter] = (),
        start: Start = "now",
        timeout: float = DEFAULT_TIMEOUT,
        retry: Retry | None = None,
    ) -> Callable[[HandlerT], HandlerT]:
        """Declare the decorated function as an observer of what happens to jobs.

        It is called with the transition, with an `ObserverContext` if it declares a parameter of that type,
        or with both; an `async def` runs on an event loop of the observer's own, a plain function in a
        thread. Each event is delivered at least once, in order within a partition, so of each job.

        Args:
            observer_id: names the consumer group; 1 to 100 characters of `A-Z a-z 0-9 . _ -`, once per
                application. Another id is another observer, which begins at its `start`.
            states: the states, after the transition, that it wants to hear of; all when absent.
            types: types of transitions, facts such as `queue_paused` or `purged` included; when absent all
                that change a job's state.
            wire_names: of the job; all when absent.
            queue: of the job; all when absent.
            queues: several of them, instead.
            tags: the job must have each of them: `"label"` or `{"key": "value"}`.
            start: where it begins when it has never run: `"now"`, `"beginning"`, or a time.
            timeout: seconds that one try may take.
            retry: how often a delivery is tried, and the delays; ten tries with growing delays when absent.
                Then the event becomes a dead letter.

        Raises:
            BadObserver: one of these is wrong, or there is an observer of that id.
        """
        if queue is not None and queues is not None:
            raise BadObserver(f"observer {observer_id!r} has both queue and queues; say one of them.")
        try:
            policy = policy_of(retry, DEFAULT_RETRY)
        except TypeError as error:
            raise BadObserver(f"The retry policy of observer {observer_id!r}: {error}.") from None
        return declare_observer(
            observer_id,
            filter=TransitionFilter.of(
                f"observer {observer_id!r}",
                types=types,
                states=states,
                wire_names=wire_names,
                queues=queues if queue is None else [queue],
                tags=tags,
            ),
            start=start,
            timeout=timeout,
            retry=policy,
            register=self.observers.add,
        )

    def schedule(
        self,
        schedule_id: str,
        cron: str,
        job: JobRequest | str,
        payload: object = None,
        *,
        time_zone: str = "UTC",
        catch_up: CatchUp | str = CatchUp.SKIP,
        no_overlap: bool = False,
        tags: Sequence[TagLike] = (),
        retry: Retry | None = None,
    ) -> Schedule:
        """Declare that jobs are enqueued by themselves, at the times of a cron expression.

        Workers of the application put it there when they start (`tidelog worker`, `tidelog up`); one that is
        there with the same definition is left alone. One that is declared no more stays until it is removed.

        Args:
            schedule_id: `<queue>/<name>`; its jobs run on that queue, which must be the job's own.
            cron: five fields, or six with leading seconds, or what `every`, `daily`, `weekly` or `monthly`
                return.
            job: what `handler.job(...)` returned; its arguments and its retry policy are those of each job.
                A wire name when the handler lives elsewhere.
            payload: any JSON value, for a wire name only.
            time_zone: an IANA zone, such as `Europe/Berlin`, in which the expression is meant.
            catch_up: what becomes of ticks that no engine was there for, or only more than a minute late:
                `Skip` records them, `Coalesce` enqueues one job for the latest of them.
            no_overlap: skip a tick while a job of the schedule has not ended.
            tags: labels and key-value pairs of its jobs, at most 32.
            retry: instead of the description's policy.

        Raises:
            DefinitionError: one of these is wrong, or the id is declared already.
            ValueError: a payload beside a description.
        """
        try:
            schedule = Schedule(
                schedule_id,
                cron,
                job,
                payload,
                time_zone=time_zone,
                catch_up=catch_up,
                no_overlap=no_overlap,
                tags=tags,
                retry=retry,
            )
        except InvalidCommand as error:
            raise DefinitionError(
                f"The schedule {shown(schedule_id)} cannot be declared: {error.message}."
            ) from None
        self.schedules.add(schedule)
        return schedule

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        """A client on connections of its own, which end with the block.

        Postgres is connected to by the first `get` or `wait`; to enqueue needs the log alone.

        Raises:
            SettingsError: a setting is wrong.
            LogError: the log cannot be opened or reached; the message names it.
            UnknownTopic: the log has no topics yet; `tidelog init` creates them.
        """
        if self._stand_in is not None:
            yield self._stand_in
            return
        settings = self.settings
        async with (
            await open_log(settings.log, kafka=settings.kafka) as log,
            Client.open(
                log, settings.topics, projection=lambda: Projection.connect(settings.postgres)
            ) as client,
        ):
            yield client

    def stand_in(self, client: Client | None) -> Client | None:
        """Let `client()` hand out this client, which its maker closes; None for connections again.

        For tests: `tidelog.testing.Harness` uses it, so that code which opens a client of its own is tested
        as it is. Returns what stood in before.
        """
        before, self._stand_in = self._stand_in, client
        return before
