"""The log of a harness in memory, and what it says of each job: a projection without Postgres."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tidelog_events.identity import JobId, QueueName, ScheduleId
from tidelog_events.instants import Instant
from tidelog_events.record import JobRecord
from tidelog_events.schedule_record import SCHEDULE_FIELDS, ScheduleRecord
from tidelog_events.schedule_view import ScheduleView
from tidelog_events.transitions import (
    Enqueued,
    JobFact,
    JobTransition,
    Purged,
    ScheduleFact,
    SchedulePut,
    ScheduleRemoved,
    ScheduleTicked,
    Transition,
)


class Ledger:
    """Every event that was written, and the records that they fold into.

    Attributes:
        events: all of them, in the order in which they were written.
    """

    def __init__(self) -> None:
        self.events: list[Transition] = []
        self._records: dict[JobId, JobRecord] = {}
        self._gone: dict[JobId, JobRecord] = {}
        self._facts: dict[JobId, list[JobFact]] = {}
        self._schedules: dict[ScheduleId, ScheduleRecord] = {}
        self._last_skips: dict[ScheduleId, Instant] = {}
        self._waiting: dict[JobId, list[Callable[[], None]]] = {}

    def append(self, event: Transition) -> None:
        """Write an event down."""
        self.events.append(event)
        match event:
            case Enqueued():
                self._records[event.job_id] = JobRecord.born(event)
                self._gone.pop(event.job_id, None)
            case JobFact():
                self._records[event.job_id].apply(event)
            case Purged():
                self._gone[event.job_id] = self._records.pop(event.job_id)
            case ScheduleFact():
                self._append_of_schedule(event)
        if isinstance(event, JobFact):
            self._facts.setdefault(event.job_id, []).append(event)
        if isinstance(event, JobTransition) and event.state.is_terminal:
            for call in self._waiting.pop(event.job_id, ()):
                call()

    def job(self, job_id: JobId) -> JobRecord | None:
        """A job as it is now; None when there is none, or it was purged."""
        record = self._records.get(job_id)
        return None if record is None else replace(record)

    def last_known(self, job_id: JobId) -> JobRecord | None:
        """A job as it is now or was when it was purged."""
        record = self._records.get(job_id) or self._gone.get(job_id)
        return None if record is None else replace(record)

    def jobs(self) -> Iterator[JobRecord]:
        """The jobs that are not purged, in the order in which they were enqueued."""
        return (replace(record) for record in self._records.values())

    def enqueued(self) -> Iterator[Enqueued]:
        """Every birth of a job, purged since or not."""
        return (event for event in self.events if isinstance(event, Enqueued))

    def steps(self, job_id: JobId) -> list[JobTransition]:
        """The steps of a job's life, and of those lives that its id had before."""
        return [fact for fact in self._facts.get(job_id, ()) if isinstance(fact, JobTransition)]

    def job_after(self, event: Transition) -> JobRecord | None:
        """The job that an event is about, as it was right after it; None when it is about none."""
        job_id = event.job_id if isinstance(event, JobFact | Purged) else None
        record: JobRecord | None = None
        for fact in self._facts.get(job_id, ()) if job_id is not None else ():
            if fact.sequence > event.sequence:
                break
            if isinstance(fact, Enqueued):
                record = JobRecord.born(fact)
            elif record is not None:
                record.apply(fact)
        return record

    def schedule(self, schedule_id: ScheduleId) -> ScheduleView | None:
        """A schedule as it is now; None when there is none."""
        record = self._schedules.get(schedule_id)
        if record is None:
            return None
        last = None if record.last_job_id is None else self._records.get(record.last_job_id)
        return ScheduleView(
            **{name: getattr(record, name) for name in SCHEDULE_FIELDS},
            last_job_state=None if last is None else last.state,
            last_skipped=self._last_skips.get(schedule_id),
        )

    def schedules(self, queue: QueueName | None = None) -> list[ScheduleView]:
        """The schedules of a queue, or all, by id."""
        views = (self.schedule(schedule_id) for schedule_id in sorted(self._schedules))
        return [view for view in views if view is not None and queue in (None, view.queue)]

    def _append_of_schedule(self, event: ScheduleFact) -> None:
        known = self._schedules.get(event.schedule_id)
        match event:
            case ScheduleRemoved():
                self._schedules.pop(event.schedule_id, None)
                self._last_skips.pop(event.schedule_id, None)
            case SchedulePut() if known is None:
                self._schedules[event.schedule_id] = ScheduleRecord.put(event)
            case _ if known is not None:
                known.apply(event)
        if isinstance(event, ScheduleTicked) and event.skipped:
            self._last_skips[event.schedule_id] = event.skipped[-1]

    def when_ended(self, job_id: JobId, call: Callable[[], None]) -> None:
        """Call when the job next comes to an end."""
        self._waiting.setdefault(job_id, []).append(call)
