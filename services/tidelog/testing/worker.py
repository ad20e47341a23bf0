"""The worker of a harness: the driver and the runner of every worker, without a log and without a clock.

It claims only while the harness lets time pass or runs what is due. A claim that would wait at an engine is
kept here until there is due work for it, or its wait is over. The driver's own clock stands still while the
worker only waits for work: nothing could happen to it, and a year of waiting costs nothing.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from math import inf
from typing import assert_never

from tidelog.handler.context import OutputReader
from tidelog.testing.engine import VirtualEngine
from tidelog.testing.handlers import VirtualSurroundings
from tidelog.worker.driver import Driver, DriverConfig
from tidelog.worker.messages import Action, Answered, Event, Extend, Start, Stop
from tidelog.worker.registry import JobRegistry
from tidelog.worker.runner import Runner
from tidelog.worker.settings import WorkerSettings
from tidelog_events.codec import encode_command
from tidelog_events.commands import Claim
from tidelog_events.identity import ClientId, QueueName, WorkerId
from tidelog_events.instants import LAST_INSTANT, SECOND, Instant, Micros, from_seconds
from tidelog_events.replies import Answer

WORKER_ID = WorkerId("harness")
_WAIT_SECONDS = 5.0
"""Of the claims of a worker that is not to let them wait: here none waits at an engine, and one that is kept
says for which work time may go on."""


@dataclass(frozen=True, slots=True)
class _HeldClaim:
    claim: Claim
    until: float


class VirtualWorker:
    """One worker that serves the queues of an application.

    Raises:
        BadDispatch: the settings name queues that cannot be.
    """

    def __init__(
        self,
        engine: VirtualEngine,
        registry: JobRegistry,
        settings: WorkerSettings,
        surroundings: VirtualSurroundings,
        *,
        loop: asyncio.AbstractEventLoop,
        read_output: OutputReader,
    ) -> None:
        self._engine = engine
        self._surroundings = surroundings
        self._start = engine.now
        self._stood_still = Micros(0)
        self._events: deque[Event] = deque()
        self._held: dict[QueueName, _HeldClaim] = {}
        policy = settings.policy(registry.queues)
        self._queues = policy.queues
        config = DriverConfig(
            worker_id=WORKER_ID,
            reply_to=ClientId(WORKER_ID),
            session=WORKER_ID,
            concurrency=settings.concurrency,
            lease_seconds=settings.lease_seconds,
            wait_seconds=settings.wait_seconds or _WAIT_SECONDS,
        )
        self._driver = Driver(config, policy, engine.partitions)
        self._runner = Runner(
            registry,
            loop=loop,
            cancel_by_exception=settings.cancel_by_exception,
            read_output=read_output,
            tell=surroundings.tell,
            surroundings=surroundings,
        )
        engine.open_inbox(config.reply_to, self._answered)

    @property
    def queues(self) -> tuple[QueueName, ...]:
        """What it serves."""
        return self._queues

    @property
    def is_idle(self) -> bool:
        """Whether it only waits for work."""
        return self._driver.is_idle and not self._events

    def work(self) -> bool:
        """Say to the engines all that there is to say now, and start and stop handlers. False when there was
        nothing.
        """
        worked = False
        self._events.extend(self._surroundings.take_told())
        while True:
            events = list(self._events)
            self._events.clear()
            for action in self._driver.step(events, self._clock()):
                self._perform(action)
            said = self._say()
            served = self._serve()
            # Only when all answers are taken: what they say may be that the driver asks for that work itself.
            if not (events or said or served or self._turn_to_due_work()):
                return worked
            worked = True

    def next_instant(self) -> Instant | None:
        """When it has something to do although nothing happened; None when never."""
        due = [due for queue in self._held if (due := self._engine.next_due(queue)) is not None]
        if not self._driver.is_idle:
            wake = min([self._driver.next_wake(), *(held.until for held in self._held.values())])
            if wake < inf:
                due.append(self._instant_of(wake))
        return min((instant for instant in due if instant > self._engine.now), default=None)

    def pass_time(self, until: Instant) -> None:
        """Called before virtual time goes on to that instant: the driver's clock goes on only while it has
        something to do.
        """
        if self._driver.is_idle:
            self._stood_still = Micros(self._stood_still + until - self._engine.now)

    def close(self) -> None:
        """Stop the handlers that still run. Nothing is waited for."""
        self._runner.close()

    def _answered(self, answer: Answer) -> None:
        self._events.append(Answered(answer))

    def _clock(self) -> float:
        return (self._engine.now - self._start - self._stood_still) / SECOND

    def _instant_of(self, clock: float) -> Instant:
        """The first instant at which the driver's clock is not before that."""
        instant = round(self._start + self._stood_still + clock * SECOND)
        if (instant - self._start - self._stood_still) / SECOND < clock:
            instant += 1
        return Instant(min(max(instant, self._engine.now + 1), LAST_INSTANT))

    def _perform(self, action: Action) -> None:
        match action:
            case Start(grant):
                self._runner.start(grant)
            case Stop(key, reason):
                self._runner.stop(key, reason)
            case Extend(key, lease_expiry):
                self._runner.extend(key, lease_expiry)
            case _:
                assert_never(action)

    def _say(self) -> bool:
        now = self._clock()
        outgoing = self._driver.take_commands()
        for each in outgoing:
            if isinstance(each.command, Claim) and each.command.wait_seconds:
                self._held[each.queue] = _HeldClaim(each.command, now + each.command.wait_seconds / SECOND)
            else:
                self._engine.decide(encode_command(each.command))
        return bool(outgoing)

    def _serve(self) -> bool:
        """Send the claims for which there is work, and those that have waited long enough."""
        now = self._clock()
        ripe = [
            queue
            for queue, held in self._held.items()
            if self._engine.has_due_work(queue) or held.until <= now
        ]
        for queue in ripe:
            claim = self._held.pop(queue).claim
            self._engine.decide(encode_command(claim.model_copy(update={"wait_seconds": 0})))
        return bool(ripe)

    def _turn_to_due_work(self) -> bool:
        """With fewer slots than queues some queues are not listened to, until those that are have had their
        turn. While the worker is idle turns take no virtual time: its clock is set forward.
        """
        if not self._driver.is_idle or not any(
            self._engine.has_due_work(queue) for queue in self._queues if queue not in self._held
        ):
            return False
        now = self._clock()
        turn = min([self._driver.next_wake(), *(held.until for held in self._held.values())])
        if not now < turn < inf:
            return False
        self._stood_still = Micros(self._stood_still - from_seconds(turn - now) - 1)
        return True
