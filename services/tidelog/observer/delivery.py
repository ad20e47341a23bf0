"""One delivery: tried until it succeeds, or until it is given up on and stands on the dead-letter topic."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tidelog.clock import Clock, wall_clock
from tidelog.handler.failure import FailureText
from tidelog.log.port import Log, LogUnavailable, OutcomeUnknown, Producer, Record
from tidelog.log.topics import Topics
from tidelog.observer.context import FindJob, ObserverContext
from tidelog.observer.dead_letters import DeadLetter, home_of, letter_of
from tidelog.observer.definition import ObserverDefinition
from tidelog.observer.handlers import Handlers
from tidelog.pausing import Backoff, pause
from tidelog_events.instants import SECOND
from tidelog_events.transitions import Transition

_logger: Final = logging.getLogger("tidelog.observer")

_APPEND_SECONDS: Final = 10.0


def _tell_nobody(_: str) -> None:
    """For deliveries that nobody looks at before they are resolved."""


@dataclass(slots=True)
class ObserverCounters:
    """What an observer has done since it started in this process.

    Attributes:
        passed: events that its filter did not want.
        delivered: deliveries whose handler returned.
        failed_tries: tries that failed, timeouts included.
        dead_lettered: deliveries that were given up on.
        retries: times that the log had to be waited for.
    """

    passed: int = 0
    delivered: int = 0
    failed_tries: int = 0
    dead_lettered: int = 0
    retries: int = 0


@dataclass(slots=True)
class Deliveries:
    """Makes the deliveries of one observer, for whichever partition and for redrives.

    Its methods return False, and nothing else, when `stop` was set before the delivery was resolved: the
    offset of an event must not be committed then.
    """

    log: Log
    topics: Topics
    definition: ObserverDefinition
    handlers: Handlers
    clock: Clock = wall_clock
    counters: ObserverCounters = field(default_factory=ObserverCounters)
    _producer: Producer | None = None
    _appending: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def deliver(
        self,
        event: Transition,
        record: Record,
        stop: asyncio.Event,
        *,
        find_job: FindJob,
        redrives: int = 0,
        is_redrive: bool = False,
        on_failure: Callable[[str], None] = _tell_nobody,
    ) -> bool:
        """Tell the handler until it returns, or give up. A try that has begun is let finish.

        `on_failure` gets a sentence about each try that failed, the last one's not.
        """
        definition = self.definition
        loop = asyncio.get_running_loop()
        tries = 0
        while not stop.is_set():
            tries += 1
            context = ObserverContext(
                event,
                observer_id=definition.observer_id,
                try_number=tries,
                is_redrive=is_redrive,
                find_job=find_job,
                loop=loop,
            )
            failure = await self.handlers.run(context)
            if failure is None:
                self.counters.delivered += 1
                return True
            self.counters.failed_tries += 1
            failed = f"try {tries} of event {context.idempotency_key} failed"
            what = f"observer {definition.observer_id}: {failed}"
            if definition.retry.is_exhausted(tries):
                _logger.error("%s, the last one: %s", what, failure.error)
                return await self._give_up(record, event.sequence, failure, tries, stop, redrives)
            on_failure(f"{failed}: {failure.error}")
            delay = definition.retry.delay_after(tries) / SECOND
            _logger.warning("%s, the next is in %g s: %s", what, delay, failure.error)
            await pause(stop, delay)
        return False

    async def reject(self, record: Record, error: str, stop: asyncio.Event, *, redrives: int = 0) -> bool:
        """Give up on a record that is no event, so that no filter can tell whether it was wanted."""
        _logger.error(
            "observer %s: %s[%d], offset %d cannot be read and becomes a dead letter: %s",
            self.definition.observer_id,
            record.topic,
            record.partition,
            record.offset,
            error,
        )
        return await self._give_up(record, None, FailureText(error, error), 0, stop, redrives)

    async def close(self) -> None:
        """Let go of the producer."""
        if self._producer is not None:
            await self._producer.close()
            self._producer = None

    async def _give_up(
        self,
        record: Record,
        sequence: int | None,
        failure: FailureText,
        tries: int,
        stop: asyncio.Event,
        redrives: int,
    ) -> bool:
        letter = letter_of(
            self.definition.observer_id,
            record,
            sequence=sequence,
            failure=failure,
            tries=tries,
            at=self.clock(),
            redrives=redrives,
        )
        if not await self._append(letter, stop):
            return False
        self.counters.dead_lettered += 1
        return True

    async def _append(self, letter: DeadLetter, stop: asyncio.Event) -> bool:
        """Until it stands there; twice when an answer was lost, which its identity tells."""
        backoff = Backoff()
        while True:
            try:
                async with self._appending:
                    await self._append_once(letter)
            except (LogUnavailable, OutcomeUnknown) as error:
                self.counters.retries += 1
                _logger.warning(
                    "observer %s: a dead letter is not written yet, next try in %.1f s: %s",
                    letter.observer_id,
                    backoff.seconds,
                    error,
                )
                async with self._appending:
                    await self.close()
                await backoff.pause(stop)
                if stop.is_set():
                    return False
            else:
                return True

    async def _append_once(self, letter: DeadLetter) -> None:
        topic = self.topics.observer_dead_letters
        home = home_of(topic, letter.observer_id, await self.log.partitions(topic))
        if self._producer is None:
            self._producer = await self.log.producer()
        await self._producer.append([letter.record(home)], timeout=_APPEND_SECONDS)
