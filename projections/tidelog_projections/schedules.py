"""From events to changes of schedules, without a database.

The record of a schedule is folded by `ScheduleRecord` itself. As with jobs, an event never changes a row that
is newer than it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog_events.identity import Partition, ScheduleId, Sequence
from tidelog_events.instants import Instant
from tidelog_events.schedule_record import ScheduleRecord
from tidelog_events.transitions import ScheduleFact, SchedulePut, ScheduleRemoved, ScheduleTicked


@dataclass(frozen=True, slots=True)
class SkippedTick:
    """A tick for which no job was minted, and the event that says so."""

    tick: Instant
    at: Instant
    partition: Partition
    sequence: Sequence


@dataclass(slots=True)
class ScheduleChange:
    """What becomes of one schedule. `record` is None when there is no row (any more).

    Attributes:
        is_defined: the whole row is written; else the columns that change without a definition.
        erased_at: the stored rows of the schedule up to this sequence go.
        skips: to add, oldest first.
    """

    record: ScheduleRecord | None
    is_defined: bool = False
    is_changed: bool = False
    erased_at: Sequence | None = None
    skips: list[SkippedTick] = field(default_factory=list)

    def add(self, event: ScheduleFact) -> None:
        """Take in the next event."""
        if isinstance(event, ScheduleRemoved):
            self._erase(event)
            return
        if isinstance(event, ScheduleTicked):
            self.skips += [
                SkippedTick(tick, event.at, event.partition, event.sequence) for tick in event.skipped
            ]
        if self.record is None:
            # Any other event is of a schedule whose definition was set aside: there is nothing to change.
            if isinstance(event, SchedulePut):
                self.record = ScheduleRecord.put(event)
                self.is_defined = True
        elif event.sequence > self.record.sequence:
            self.record.apply(event)
            self.is_changed = True
            self.is_defined |= isinstance(event, SchedulePut)

    def _erase(self, event: ScheduleRemoved) -> None:
        self.erased_at = event.sequence
        self.skips.clear()
        if self.record is not None and self.record.sequence < event.sequence:
            self.record = None
            self.is_defined = self.is_changed = False


class ScheduleChanges:
    """Everything that a stretch of events of one partition changes about schedules.

    Args:
        stored: the stored record of each schedule that the events name and that has a row. What a definition
            alone says need not be read for this.
    """

    def __init__(self, stored: Mapping[ScheduleId, ScheduleRecord]) -> None:
        self._stored = stored
        self.changes: dict[ScheduleId, ScheduleChange] = {}

    def add(self, event: ScheduleFact) -> None:
        """Take in the next event."""
        change = self.changes.get(event.schedule_id)
        if change is None:
            stored = self._stored.get(event.schedule_id)
            change = self.changes[event.schedule_id] = ScheduleChange(stored)
        change.add(event)

    def put(self, record: ScheduleRecord) -> None:
        """Take in the finished record of a schedule that has no row, as a rebuild reads it."""
        self.changes[record.schedule_id] = ScheduleChange(record, is_defined=True)
