"""The ScheduleRecord: what a schedule is by now, and the one fold of transitions that makes it.

The engine and the projection both use this fold, so they cannot disagree about a schedule.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Self

from tidelog_events.identity import JobId, Partition, QueueName, ScheduleId, Sequence
from tidelog_events.states import CatchUp
from tidelog_events.transitions import (
    ScheduleFact,
    SchedulePut,
    ScheduleRecomputed,
    ScheduleTicked,
    ScheduleTriggered,
)
from tidelog_events.wire import WireInstant, WireJson, WireRetry, WireTags


@dataclass(slots=True, kw_only=True)
class ScheduleRecord:
    """A schedule as the engine, the projection and the client know it. Every field is always there.

    Attributes:
        settled_until: all ticks up to that instant are minted or skipped.
        next_due: the next tick; None when there is none.
        error: why a schedule that once was good cannot tick any longer.
        last_job_id: the newest instance, minted or triggered.
        last_minted_at: when it was.
        skipped_count: ticks that were skipped since the schedule was first put.
        put_at, put_by: when it was defined as it is now, and by whom.
        sequence: of the last event that changed the record.
    """

    schedule_id: ScheduleId
    queue: QueueName
    cron: str
    time_zone: str
    wire_name: str
    payload: WireJson
    tags: WireTags
    retry: WireRetry
    catch_up: CatchUp
    no_overlap: bool
    settled_until: WireInstant
    next_due: WireInstant | None
    error: str | None
    last_job_id: JobId | None
    last_minted_at: WireInstant | None
    skipped_count: int
    put_at: WireInstant
    put_by: str | None
    partition: Partition
    sequence: Sequence

    @classmethod
    def put(cls, event: SchedulePut) -> Self:
        """The record of a schedule that was defined for the first time just now."""
        return cls(
            schedule_id=event.schedule_id,
            queue=event.queue,
            cron=event.cron,
            time_zone=event.time_zone,
            wire_name=event.wire_name,
            payload=event.payload,
            tags=event.tags,
            retry=event.retry,
            catch_up=event.catch_up,
            no_overlap=event.no_overlap,
            settled_until=event.at,
            next_due=event.next_due,
            error=None,
            last_job_id=None,
            last_minted_at=None,
            skipped_count=0,
            put_at=event.at,
            put_by=event.actor,
            partition=event.partition,
            sequence=event.sequence,
        )

    def apply(self, event: ScheduleFact) -> None:
        """Change the record by a later fact; its removal, or one of an unknown type, changes nothing."""
        match event:
            case SchedulePut():
                self._redefine(event)
            case ScheduleTicked():
                self.settled_until = event.at
                self.next_due = event.next_due
                self.skipped_count += event.skipped_count
                if event.minted:
                    self.last_job_id = event.minted[-1]
                    self.last_minted_at = event.at
            case ScheduleTriggered():
                self.last_job_id = event.job_id
                self.last_minted_at = event.at
            case ScheduleRecomputed():
                self.next_due = event.next_due
                self.error = event.error
            case _:
                return
        self.sequence = event.sequence

    def _redefine(self, event: SchedulePut) -> None:
        self.cron = event.cron
        self.time_zone = event.time_zone
        self.wire_name = event.wire_name
        self.payload = event.payload
        self.tags = event.tags
        self.retry = event.retry
        self.catch_up = event.catch_up
        self.no_overlap = event.no_overlap
        self.settled_until = event.at
        self.next_due = event.next_due
        self.error = None
        self.put_at = event.at
        self.put_by = event.actor


SCHEDULE_FIELDS = tuple(field.name for field in fields(ScheduleRecord))
