"""Schedules as they are shown: the record, and what stands about it elsewhere (contract section 10)."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog_events.identity import Partition, ScheduleId, Sequence
from tidelog_events.jsontext import Json, loads
from tidelog_events.schedule_record import ScheduleRecord
from tidelog_events.states import JobState
from tidelog_events.wire import WireInstant


@dataclass(slots=True, kw_only=True)
class ScheduleView(ScheduleRecord):
    """A schedule as Postgres, the client and the command line show it. Every field is always there.

    Attributes:
        last_job_state: the state of its newest instance; None when there was none, or it was purged.
        last_skipped: the newest tick for which no job was minted.
    """

    last_job_state: JobState | None
    last_skipped: WireInstant | None

    @property
    def payload_value(self) -> Json:
        """The payload of its jobs as a Python value."""
        return loads(self.payload)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleSkip:
    """A tick for which no job was minted, when that was decided, and the event that says so."""

    schedule_id: ScheduleId
    tick: WireInstant
    at: WireInstant
    partition: Partition
    sequence: Sequence
