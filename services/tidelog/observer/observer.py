"""An observer in this process: its share of the partitions, read, handed to lanes, and committed.

The consumer group shares the partitions out and keeps the offsets. An offset is committed only when all
before it is resolved, and only by whoever the partition belongs to then; so every event is delivered at least
once, wherever a process dies.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from tidelog.clock import Clock, wall_clock
from tidelog.log.port import Log, LogUnavailable, Member, OffsetOutOfRange, Reader, Record, TopicPartition
from tidelog.log.topics import Topics
from tidelog.observer.definition import ObserverDefinition
from tidelog.observer.delivery import Deliveries, ObserverCounters
from tidelog.observer.errors import OffsetNotInLog
from tidelog.observer.handlers import Handlers
from tidelog.observer.lane import Lane
from tidelog.observer.redrive import Redriver
from tidelog.observer.start import first_offset
from tidelog.pausing import Backoff
from tidelog.words import listed
from tidelog_events.errors import TidelogError

_logger: Final = logging.getLogger("tidelog.observer")

_COMMIT_TIMEOUT: Final = 10.0
_REJOIN_SECONDS: Final = 30.0


@dataclass(frozen=True, slots=True)
class ObserverSettings:
    """How an observer works, in seconds and numbers.

    Attributes:
        grace_seconds: how long a delivery under way may go on after a stop.
        commit_seconds: between two commits; at most so much is delivered twice after a crash.
        read_records: the most records that are read at once.
        read_seconds, hasty_read_seconds: the longest wait for records; the second while a partition is
            paused, which may have room again at any time.
        farewell_seconds: for which a handler that was cancelled may go on before it is left behind.
        redrive_seconds: between two looks at the dead letters while there is nothing to redrive.
        alarm_seconds: between two reminders of a partition that has stopped.
    """

    grace_seconds: float = 30.0
    commit_seconds: float = 1.0
    read_records: int = 500
    read_seconds: float = 0.25
    hasty_read_seconds: float = 0.02
    farewell_seconds: float = 1.0
    redrive_seconds: float = 0.5
    alarm_seconds: float = 60.0


class Observer:
    """Runs one observer on this event loop; its handlers run elsewhere.

    Args:
        log: a connection of its own.
        topics: the names of the installation's topics.
        definition: what the application declares.
        beginnings: the offsets of the declared start, noted earlier (`beginnings_of`); without one of a
            partition it is looked up when the partition is taken.

    Attributes:
        counters: what was done so far.
    """

    def __init__(
        self,
        log: Log,
        topics: Topics,
        definition: ObserverDefinition,
        *,
        settings: ObserverSettings | None = None,
        clock: Clock = wall_clock,
        beginnings: Mapping[int, int] = MappingProxyType({}),
    ) -> None:
        self._log = log
        self._beginnings = beginnings
        self._begun: dict[int, list[int]] = {}
        self._topics = topics
        self._definition = definition
        self._settings = settings or ObserverSettings()
        self._handlers = Handlers(definition, farewell_seconds=self._settings.farewell_seconds)
        self._deliveries = Deliveries(log, topics, definition, self._handlers, clock)
        self._lanes: dict[int, Lane] = {}
        self._leaving: dict[int, Lane] = {}
        self._redriving: asyncio.Task[None] | None = None
        self._reader: Reader | None = None
        self._reading: frozenset[int] = frozenset()
        self._backoff = Backoff()
        self._commit_due = 0.0
        self._alarm_due = 0.0

    @property
    def counters(self) -> ObserverCounters:
        """What was done since it was made."""
        return self._deliveries.counters

    @property
    def stopped(self) -> Mapping[int, TidelogError]:
        """The partitions that cannot go on without a person, and why. The others go on."""
        return {lane.partition: lane.stopped for lane in self._lanes.values() if lane.stopped is not None}

    @property
    def assignment(self) -> frozenset[int]:
        """The partitions that it works on."""
        return frozenset(self._lanes)

    async def run(self, stop: asyncio.Event) -> None:
        """Observe until `stop` is set; then deliveries under way may finish within the grace time.

        What was not resolved by then is delivered again after the next start. While the log is away it
        waits, with a warning at each try, and goes on by itself. A cancellation is a stop without grace time.
        """
        redriver = Redriver(
            self._log,
            self._topics,
            self._definition,
            self._deliveries,
            idle_seconds=self._settings.redrive_seconds,
        )
        redriving = self._redriving = asyncio.create_task(redriver.run(stop), name="tidelog redrive")
        try:
            await self._run(stop)
        finally:
            redriving.cancel()
            await asyncio.wait([redriving])
            self._handlers.close()
            await self._deliveries.close()

    async def _run(self, stop: asyncio.Event) -> None:
        group = self._topics.observer_group(self._definition.observer_id)
        while not stop.is_set():
            try:
                member = await self._log.join(group, self._topics.transitions)
                try:
                    await self._stay(member, stop)
                finally:
                    await self._leave(member, grace=stop.is_set())
            except LogUnavailable as error:
                await self._wait(stop, error)

    async def _stay(self, member: Member, stop: asyncio.Event) -> None:
        _logger.info(
            "Observer %s is in the group %s.",
            self._definition.observer_id,
            self._topics.observer_group(self._definition.observer_id),
        )
        well_at = time.monotonic()
        while not stop.is_set():
            try:
                await self._follow_share(member)
                await self._step(member)
                self._backoff.reset()
                well_at = time.monotonic()
            except OffsetOutOfRange as error:
                await self._close_reader()
                if not await self._halt_what_is_out_of_range():
                    await self._wait(stop, error)
            except LogUnavailable as error:
                await self._close_reader()
                # A short absence costs nothing: lanes go on with what they have. A membership that does not
                # recover is given up for a new one.
                if time.monotonic() - well_at > _REJOIN_SECONDS:
                    raise
                await self._wait(stop, error)

    async def _wait(self, stop: asyncio.Event, error: TidelogError) -> None:
        self.counters.retries += 1
        _logger.warning(
            "observer %s tries again in %.1f s: %s",
            self._definition.observer_id,
            self._backoff.seconds,
            error,
        )
        await self._backoff.pause(stop)

    async def _follow_share(self, member: Member) -> None:
        """Let go of partitions that were lost, and begin with those that came."""
        await member.changed(timeout=0)
        share = member.assignment
        for partition in sorted(self._lanes.keys() - share):
            lane = self._lanes.pop(partition)
            # It is another process's now. A try that runs may finish; it is not committed from here.
            lane.ask_to_stop()
            self._leaving[partition] = lane
            await self._close_reader()
        for partition, lane in list(self._leaving.items()):
            if lane.is_done:
                del self._leaving[partition]
        # What comes back while its last try still runs has to wait for it: the order of events is kept.
        for partition in sorted(share - self._lanes.keys() - self._leaving.keys()):
            position = await self._position(member, partition)
            await self._close_reader()
            lane = self._lanes[partition] = Lane(self._deliveries, partition, position)
            # At once, so that "now" is a place and does not move on with every start.
            self._commit_due = 0.0
            await self._check_range(lane)
        self._tell_begun()

    async def _position(self, member: Member, partition: int) -> int:
        """Where to begin: what was committed. The start of the declaration counts only without that."""
        committed = await member.committed(partition)
        if committed is not None:
            return committed
        position = self._beginnings.get(partition)
        if position is None:
            position = await first_offset(self._log, self._source(partition), self._definition.start)
        self._begun.setdefault(position, []).append(partition)
        return position

    def _tell_begun(self) -> None:
        """Where it begins, in one line: one for every partition would hide what matters."""
        if self._begun:
            places = "; ".join(f"{listed(there)} at offset {at}" for at, there in self._begun.items())
            _logger.info("Observer %s begins %s.", self._definition.observer_id, places)
            self._begun.clear()

    async def _check_range(self, lane: Lane) -> None:
        tp = TopicPartition(self._topics.transitions, lane.partition)
        start, end = await self._log.start_offset(tp), await self._log.end_offset(tp)
        if not start <= lane.read_to <= end:
            lane.halt(
                OffsetNotInLog(
                    f"it is to go on at offset {lane.read_to} of {tp.topic}[{tp.partition}], and the log "
                    f"holds {start} to {end}: events were lost to retention before they were delivered, or "
                    "it is another log. Nothing is skipped silently: stop it and say where it is to go on, "
                    f"with `tidelog observers seek {self._definition.observer_id} beginning|now|TIME`"
                )
            )

    async def _halt_what_is_out_of_range(self) -> bool:
        """Stop the partitions that it is; whether there was one."""
        before = len(self.stopped)
        for lane in self._lanes.values():
            if lane.stopped is None:
                await self._check_range(lane)
        return len(self.stopped) > before

    async def _step(self, member: Member) -> None:
        """Read once, hand over, and commit what is resolved."""
        self._remind()
        lanes = {partition: lane for partition, lane in self._lanes.items() if lane.stopped is None}
        self._raise_what_failed()
        if time.monotonic() >= self._commit_due:
            await self._commit(member)
        if lanes.keys() != self._reading:
            await self._close_reader()
        if not lanes:
            await member.changed(timeout=self._settings.read_seconds)
            return
        reader = self._reader = self._reader or await self._open(lanes)
        for lane in lanes.values():
            self._pace(reader, lane)
        is_paused = any(lane.is_paused for lane in lanes.values())
        records = await reader.read(
            max_records=self._settings.read_records,
            timeout=self._settings.hasty_read_seconds if is_paused else self._settings.read_seconds,
        )
        self._hand_over(reader, lanes, records)

    def _raise_what_failed(self) -> None:
        """A fault of ours, which must not look like an observer that has nothing to do."""
        for lane in (*self._lanes.values(), *self._leaving.values()):
            failure = lane.failure()
            if failure is not None:
                raise failure
        if self._redriving is not None and self._redriving.done():
            self._redriving.result()

    async def _open(self, lanes: Mapping[int, Lane]) -> Reader:
        for lane in lanes.values():
            lane.is_paused = False
        self._reading = frozenset(lanes)
        return await self._log.reader({self._source(p): lane.read_to for p, lane in lanes.items()})

    def _source(self, partition: int) -> TopicPartition:
        return TopicPartition(self._topics.transitions, partition)

    def _pace(self, reader: Reader, lane: Lane) -> None:
        if lane.is_full and not lane.is_paused:
            reader.pause(self._source(lane.partition))
            lane.is_paused = True
        elif lane.is_paused and lane.has_room:
            reader.resume(self._source(lane.partition))
            lane.is_paused = False

    def _hand_over(self, reader: Reader, lanes: Mapping[int, Lane], records: list[Record]) -> None:
        parts: dict[int, list[Record]] = {}
        for record in records:
            parts.setdefault(record.partition, []).append(record)
        for partition, lane in lanes.items():
            lane.put(parts.get(partition, []), reader.position(self._source(partition)))

    async def _commit(self, member: Member) -> None:
        self._commit_due = time.monotonic() + self._settings.commit_seconds
        moved = {p: lane.standing for p, lane in self._lanes.items() if lane.standing != lane.committed}
        if moved:
            await member.commit(
                {partition: standing.position for partition, standing in moved.items()},
                notes={p: standing.trouble for p, standing in moved.items() if standing.trouble is not None},
                timeout=_COMMIT_TIMEOUT,
            )
            for partition, standing in moved.items():
                lane = self._lanes[partition]
                # What is not this member's is dropped without a word; the first commit fixes the beginning.
                if lane.committed is not None or await member.committed(partition) == standing.position:
                    lane.committed = standing

    async def _leave(self, member: Member, *, grace: bool) -> None:
        """Finish what is under way, commit it, and leave the group, so that the others take over at once."""
        seconds = self._settings.grace_seconds if grace else 0.0
        lanes = [*self._lanes.values(), *self._leaving.values()]
        try:
            if grace and self._redriving is not None:  # it has been asked to stop, too
                await asyncio.gather(
                    *(lane.end(timeout=seconds) for lane in lanes),
                    asyncio.wait([self._redriving], timeout=seconds),
                )
            else:
                await asyncio.gather(*(lane.end(timeout=seconds) for lane in lanes))
            await self._close_reader()
            await self._commit(member)
        except LogUnavailable as error:
            _logger.warning(
                "observer %s leaves without its last commit, so that some events come again: %s",
                self._definition.observer_id,
                error,
            )
        finally:
            self._lanes.clear()
            self._leaving.clear()
            await member.close()

    async def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.close()

    def _remind(self) -> None:
        if self.stopped and time.monotonic() >= self._alarm_due:
            self._alarm_due = time.monotonic() + self._settings.alarm_seconds
            for partition, error in self.stopped.items():
                _logger.critical(
                    "observer %s stands still at partition %d: %s",
                    self._definition.observer_id,
                    partition,
                    error,
                )
