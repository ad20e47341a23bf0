"""The loop that takes the log of transitions into Postgres.

The consumer group only shares the partitions out. Where to read on stands in Postgres, in the transaction
that wrote the rows: so a projector may be killed anywhere, and two may believe in the same partition.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from tidelog.clock import Clock, wall_clock
from tidelog.inspection.origin import differences
from tidelog.log.port import LogUnavailable, OffsetOutOfRange, TopicPartition
from tidelog.pausing import Backoff
from tidelog.projector.alarms import another_log, not_begun, out_of_log
from tidelog.projector.decoding import entry_of
from tidelog.projector.intake import take_in
from tidelog_events.codec import UnknownVersion
from tidelog_events.errors import TidelogError
from tidelog_events.identity import Partition
from tidelog_projections.batch import LogEntry, Position
from tidelog_projections.errors import ProjectionUnavailable, SequenceGap

if TYPE_CHECKING:
    from tidelog.log.port import Log, Member, Reader, Record
    from tidelog.log.topics import Topics
    from tidelog_projections.projection import Projection

_logger: Final = logging.getLogger(__name__)

BATCH_RECORDS: Final = 1_000
"""The most records read at once: a batch is some tens of milliseconds of work, so a stop is never far."""
_READ_SECONDS: Final = 0.25
_LOOK_SECONDS: Final = 20.0
"""The longest look for the records that were read last."""
_TIDY_SECONDS: Final = 3_600.0
_MENDED_SECONDS: Final = 2.0
"""How often it is looked whether a partition that was stopped can go on."""


@dataclass(slots=True)
class ProjectorCounters:
    """What a projector has done since it was made.

    Attributes:
        records: read from the log and taken in.
        rejected: records among them that were set aside in `projection_rejects`.
        retries: times that the log or Postgres had to be waited for.
    """

    records: int = 0
    rejected: int = 0
    retries: int = 0


class _Moved(Exception):
    """The position in Postgres is not where this projector left it: a rebuild, or another projector."""


class Projector:
    """Projects one share of the partitions.

    Args:
        log: where the transitions are.
        topics: their names.
        projection: Postgres.
        batch_records: the most records read at once.
        clock: says which workers have been silent for long.

    Attributes:
        stopped: the partitions that cannot go on without a person, and why. The others go on, and these do
            as soon as a rebuild has put their positions elsewhere.
        counters: what was done so far.
    """

    def __init__(
        self,
        log: Log,
        topics: Topics,
        projection: Projection,
        *,
        batch_records: int = BATCH_RECORDS,
        clock: Clock = wall_clock,
    ) -> None:
        self._log = log
        self._topics = topics
        self._projection = projection
        self._batch_records = batch_records
        self._clock = clock
        self._positions: dict[Partition, Position] = {}
        self._backoff = Backoff()
        self._tidy_at = -inf
        self._look_for_mended_at = -inf
        self.stopped: dict[Partition, TidelogError] = {}
        self.counters = ProjectorCounters()

    @property
    def group(self) -> str:
        """The consumer group that shares the partitions among the projectors of an installation."""
        return self._topics.projector_group

    async def run(self, stop: asyncio.Event) -> None:
        """Project until `stop` is set; then the batch under way is finished and the group is left.

        While the log or Postgres is away it waits, with a warning at each try, and goes on by itself.

        Raises:
            SequenceGap, PositionNotInLog, AnotherLog, UnknownVersion: every partition of the share has come
                to a point where a person is needed. While there is another one, the reason stands in
                `stopped` and in the program's log.
            ProjectionRefused: Postgres refuses for good.
        """
        while not stop.is_set():
            try:
                member = await self._log.join(self.group, self._topics.transitions)
                try:
                    await self._stay(member, stop)
                finally:
                    await member.close()
            except LogUnavailable as error:
                await self._wait(stop, error)

    async def _stay(self, member: Member, stop: asyncio.Event) -> None:
        """Serve the share, whatever becomes of it, as long as the log is there."""
        while not stop.is_set():
            try:
                await self._serve(member, stop)
            # Out of range while reading: opening again looks which partition it is, and stops that one.
            except (ProjectionUnavailable, OffsetOutOfRange) as error:
                await self._wait(stop, error)
            except _Moved:
                _logger.info("the position in Postgres has moved; reading on from there")

    async def _wait(self, stop: asyncio.Event, error: TidelogError) -> None:
        self.counters.retries += 1
        _logger.warning("the projector tries again in %.1f s: %s", self._backoff.seconds, error)
        await self._backoff.pause(stop)

    async def _serve(self, member: Member, stop: asyncio.Event) -> None:
        """Read the present share from where Postgres has it, until the share changes."""
        share = member.assignment
        reader = await self._open(share)
        try:
            while not stop.is_set() and member.assignment == share:
                self._alarm(share)
                await self._tidy()
                await self._go_on_with_mended(share)
                if reader is None:
                    await member.changed(timeout=_READ_SECONDS)
                    continue
                records = await reader.read(max_records=self._batch_records, timeout=_READ_SECONDS)
                if await self._take(reader, records):
                    reader = await self._reopened(reader, share)
                await member.changed(timeout=0)
        finally:
            if reader is not None:
                await reader.close()

    async def _tidy(self) -> None:
        """Forget workers of long ago, now and then: every start of one makes a row."""
        if time.monotonic() >= self._tidy_at:
            await self._projection.forget_silent_workers(self._clock())
            self._tidy_at = time.monotonic() + _TIDY_SECONDS

    def _alarm(self, share: frozenset[int]) -> None:
        """Raise what stopped the partitions when there is none left to go on with."""
        if share and self.stopped.keys() >= share:
            # The one that stopped first: others may have stopped because of it.
            raise next(error for partition, error in self.stopped.items() if partition in share)

    async def _go_on_with_mended(self, share: frozenset[int]) -> None:
        """Raise `_Moved` when a partition of the share that was stopped stands elsewhere by now."""
        stopped = sorted(self.stopped.keys() & share)
        if not stopped or time.monotonic() < self._look_for_mended_at:
            return
        self._look_for_mended_at = time.monotonic() + _MENDED_SECONDS
        for partition in map(Partition, stopped):
            if await self._has_moved(TopicPartition(self._topics.transitions, partition)):
                del self.stopped[partition]
                raise _Moved

    async def _reopened(self, reader: Reader, share: frozenset[int]) -> Reader | None:
        await reader.close()
        return await self._open(share)

    async def _open(self, share: frozenset[int]) -> Reader | None:
        """A reader of the partitions that can go on, each from its position in Postgres."""
        known = await self._projection.positions()
        sources = {Partition(p): TopicPartition(self._topics.transitions, p) for p in sorted(share)}
        marks = {
            source: last
            for partition, source in sources.items()
            if partition in known and (last := known[partition].last) is not None
        }
        foreign = await differences(self._log, marks, timeout=_LOOK_SECONDS)
        offsets: dict[TopicPartition, int] = {}
        for partition, source in sources.items():
            if partition in self.stopped:
                continue
            start = await self._log.start_offset(source)
            position = known.get(partition, Position(partition, next_offset=start))
            end = await self._log.end_offset(source)
            self._positions[partition] = position
            if not start <= position.next_offset <= end:
                self._stop(partition, out_of_log(source, position.next_offset, start, end))
            elif source in foreign:
                self._stop(partition, another_log(source, marks[source].offset, foreign[source]))
            else:
                offsets[source] = position.next_offset
        if foreign and foreign.keys() == marks.keys():
            # Nothing that was read is in this log: it is not the one of the partitions without a mark either.
            self._leave_alone([source for source in offsets if source not in marks])
            offsets = {source: offset for source, offset in offsets.items() if source in marks}
        return await self._log.reader(offsets) if offsets else None

    async def _take(self, reader: Reader, records: list[Record]) -> bool:
        """Take records in, partition by partition, side by side; whether one was stopped."""
        if not records:
            return False
        parts: defaultdict[Partition, list[Record]] = defaultdict(list)
        for record in records:
            parts[Partition(record.partition)].append(record)
        results = await asyncio.gather(
            *(self._take_part(reader, partition, part) for partition, part in parts.items()),
            return_exceptions=True,
        )
        failures = [result for result in results if isinstance(result, BaseException)]
        if failures:
            raise failures[0]
        self._backoff.reset()
        return any(partition in self.stopped for partition in parts)

    async def _take_part(self, reader: Reader, partition: Partition, records: list[Record]) -> None:
        source = TopicPartition(self._topics.transitions, partition)
        next_offset = reader.position(source)
        entries: list[LogEntry] = []
        unreadable: UnknownVersion | None = None
        for record in records:
            try:
                entries.append(entry_of(record))
            except UnknownVersion as error:
                next_offset = record.offset
                unreadable = UnknownVersion(f"{source.topic}[{partition}], offset {next_offset}: {error}")
                break
        try:
            await self._store(partition, records[: len(entries)], entries, next_offset)
        except SequenceGap as error:
            if await self._has_moved(source):
                raise _Moved from error
            self._stop(partition, error)
            return
        if unreadable is not None:
            self._stop(partition, unreadable)

    async def _store(
        self, partition: Partition, records: list[Record], entries: list[LogEntry], next_offset: int
    ) -> None:
        taken = await take_in(self._projection.apply, partition, records, entries, next_offset)
        self._positions[partition] = taken.position
        self.counters.records += len(entries)
        self.counters.rejected += len(taken.rejected)
        for entry in taken.rejected:
            _logger.error(
                "%s[%d], offset %d: the record was set aside in tidelog.projection_rejects: %s",
                self._topics.transitions,
                partition,
                entry.offset,
                entry.reason,
            )

    async def _has_moved(self, source: TopicPartition) -> bool:
        partition = Partition(source.partition)
        position = (await self._projection.positions()).get(partition)
        if position is None:
            position = Position(partition, next_offset=await self._log.start_offset(source))
        # All of it: a rebuild from a log as long as the last one ends at the same offset.
        return position != self._positions[partition]

    def _leave_alone(self, sources: list[TopicPartition]) -> None:
        if not sources:
            return
        error = not_begun(sources)
        self.stopped |= {Partition(source.partition): error for source in sources}
        _logger.critical("the projection does not begin with partitions of its share: %s", error)

    def _stop(self, partition: Partition, error: TidelogError) -> None:
        self.stopped[partition] = error
        _logger.critical("partition %d of the projection stops here: %s", partition, error)
