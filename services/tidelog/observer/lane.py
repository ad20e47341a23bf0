"""One partition of an observer: its events one after another, each resolved before the next begins."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple, TypeVar

from tidelog.core.versioned import UnreadableState
from tidelog.log.port import LogUnavailable, Record
from tidelog.observer.delivery import Deliveries
from tidelog.observer.jobs import FollowedJobs, job_of
from tidelog.pausing import Backoff
from tidelog_events.codec import Undecodable, UnknownVersion, decode_transition
from tidelog_events.errors import TidelogError
from tidelog_events.transitions import Transition

_logger: Final = logging.getLogger("tidelog.observer")

MOST_WAITING: Final = 1_000
"""Records of a partition that are read and wait; with so many its reading is paused, the others go on."""
MOST_WAITING_BYTES: Final = 8 * 1024 * 1024
_BREATHER: Final = 100
"""Events that are passed over before the loop is let go of."""

_T = TypeVar("_T")


class Standing(NamedTuple):
    """Where a lane is, as its group is told.

    Attributes:
        position: the offset of the first record that is not resolved: what may be committed.
        trouble: what went wrong with that record until now; None as long as nothing has.
    """

    position: int
    trouble: str | None = None


class Lane:
    """The work on one partition, from the moment that it falls to this process until it is lost.

    Attributes:
        partition: which one.
        standing: where it is, and what keeps it there.
        committed: what was committed last; None until then.
        read_to: the offset of the next record to be read.
        stopped: why it cannot go on without a person; None as long as it can.
        is_paused: whether its reading is paused.
    """

    def __init__(self, deliveries: Deliveries, partition: int, position: int) -> None:
        self.partition = partition
        self.standing = Standing(position)
        self.committed: Standing | None = None
        self.read_to = position
        self.stopped: TidelogError | None = None
        self.is_paused = False
        self._deliveries = deliveries
        self._filter = deliveries.definition.filter
        self._jobs = FollowedJobs(deliveries.log, deliveries.topics, partition)
        self._waiting: deque[Record] = deque()
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._stop = asyncio.Event()
        self._task = asyncio.create_task(self._run(), name=f"tidelog observer partition {partition}")

    @property
    def is_full(self) -> bool:
        """Whether enough records wait."""
        return len(self._waiting) >= MOST_WAITING or self._waiting_bytes >= MOST_WAITING_BYTES

    @property
    def has_room(self) -> bool:
        """Whether more should be read."""
        return len(self._waiting) < MOST_WAITING // 2 and self._waiting_bytes < MOST_WAITING_BYTES // 2

    @property
    def is_done(self) -> bool:
        """Whether nothing of it runs any more."""
        return self._task.done()

    def put(self, records: list[Record], read_to: int) -> None:
        """The next records, and the offset behind them and the gaps that follow."""
        self._waiting.extend(records)
        self._waiting_bytes += sum(len(record.value or b"") for record in records)
        self.read_to = read_to
        if not self._waiting:
            self.standing = Standing(read_to)
        self._arrived.set()

    def ask_to_stop(self) -> None:
        """Begin nothing more. The try that runs may finish."""
        self._stop.set()
        self._arrived.set()

    def halt(self, error: TidelogError) -> None:
        """Stop here: a person has to look at it. The other partitions go on."""
        self.stopped = error
        self._keep_trouble(str(error))
        self.ask_to_stop()
        _logger.critical(
            "observer %s stops at partition %d, offset %d: %s",
            self._deliveries.definition.observer_id,
            self.partition,
            self.standing.position,
            error,
        )

    async def end(self, *, timeout: float) -> None:
        """Stop, wait for what runs, and cut it off when it takes longer."""
        self.ask_to_stop()
        await asyncio.wait([self._task], timeout=timeout)
        self._task.cancel()
        await asyncio.wait([self._task])

    def failure(self) -> BaseException | None:
        """What ended it that should not have."""
        if not self._task.done() or self._task.cancelled():
            return None
        return self._task.exception()

    async def _run(self) -> None:
        passed = 0
        while not self._stop.is_set():
            if not self._waiting:
                self._arrived.clear()
                await self._arrived.wait()
                continue
            record = self._waiting[0]
            if not await self._resolve(record):
                return
            self._waiting.popleft()
            self._waiting_bytes -= len(record.value or b"")
            self.standing = Standing(record.offset + 1 if self._waiting else self.read_to)
            passed += 1
            if passed % _BREATHER == 0:
                await asyncio.sleep(0)

    async def _resolve(self, record: Record) -> bool:
        """Whether the record is done with; False when a stop came first."""
        try:
            event = decode_transition(record.value)
        except Undecodable as error:
            return await self._deliveries.reject(record, str(error), self._stop)
        except UnknownVersion as error:
            self.halt(error)
            return False
        if event is None:
            return True
        self._jobs.pass_by(event, record.offset)
        if not self._filter.concerns(event):
            self._deliveries.counters.passed += 1
            return True
        if self._filter.tags:
            has_tags = await self._patiently(lambda: self._has_tags(event, record))
            if has_tags is None:
                return False
            if not has_tags:
                self._deliveries.counters.passed += 1
                return True
        return await self._deliveries.deliver(
            event,
            record,
            self._stop,
            find_job=lambda: self._jobs.job(event, record.offset),
            on_failure=self._keep_trouble,
        )

    def _keep_trouble(self, sentence: str) -> None:
        self.standing = self.standing._replace(trouble=sentence)

    async def _has_tags(self, event: Transition, record: Record) -> bool:
        job_id = job_of(event)
        if job_id is None:
            return False
        job = await self._jobs.job(event, record.offset)
        if job is None:
            # Nothing that may be wanted is lost: an event too many can be told, one too few cannot.
            _logger.warning(
                "observer %s: the log has forgotten how %s began; event %d-%d is delivered without a look at "
                "its tags",
                self._deliveries.definition.observer_id,
                job_id,
                event.partition,
                event.sequence,
            )
            return True
        return self._filter.tags.issubset(job.tags)

    async def _patiently(self, ask: Callable[[], Awaitable[_T]]) -> _T | None:
        """The answer of the log, whenever it comes; None when a stop comes first."""
        backoff = Backoff()
        while not self._stop.is_set():
            try:
                return await ask()
            except LogUnavailable as error:
                self._deliveries.counters.retries += 1
                _logger.warning("an observer asks the log again in %.1f s: %s", backoff.seconds, error)
                await backoff.pause(self._stop)
            except UnreadableState as error:
                self.halt(error)
        return None
