"""From events to changes of rows, without a database: what a batch does to jobs, queues, schedules and audit.

The record of a job is folded by `JobRecord` itself, the one fold of the project. An event never changes a row
that is newer than it: after a rebuild the rows may be ahead of the position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from tidelog_events.identity import NO_SEQUENCE, JobId, Partition, QueueName, ScheduleId, Sequence
from tidelog_events.instants import Instant
from tidelog_events.record import JobRecord
from tidelog_events.schedule_record import ScheduleRecord
from tidelog_events.states import JobState
from tidelog_events.transitions import (
    Cancelled,
    CancelRequested,
    ConcurrencyLimitSet,
    DeadLettered,
    Enqueued,
    JobFact,
    JobTransition,
    Purged,
    QueueFact,
    QueuePaused,
    QueueResumed,
    Requeued,
    RetryScheduled,
    ScheduleFact,
    SchedulePut,
    ScheduleRemoved,
    ScheduleTriggered,
    Succeeded,
    Transition,
)
from tidelog_projections.history import History
from tidelog_projections.schedules import ScheduleChanges
from tidelog_projections.text import shown_tags
from tidelog_projections.worker_fold import WorkerChanges


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """What operators have set on a queue. `sequence` is that of the last setting; -1: never set."""

    queue: QueueName
    partition: Partition
    paused: bool = False
    paused_at: Instant | None = None
    paused_by: str | None = None
    concurrency_limit: int | None = None
    updated_at: Instant | None = None
    sequence: Sequence = NO_SEQUENCE


class AuditRow(NamedTuple):
    """Who asked for what. `action` is the type of the command."""

    partition: Partition
    sequence: Sequence
    actor: str | None
    action: str
    target: str
    at: Instant


class Erasure(NamedTuple):
    """The event that ends a job's rows: those up to its `sequence` go, not newer ones."""

    sequence: Sequence
    at: Instant


@dataclass(slots=True)
class JobChange:
    """What becomes of one job. `record` is None when there is no row (any more).

    Attributes:
        stored_tags: how many tags stand in `job_tags` already; new ones only ever follow.
        is_born: the whole row is written, payload included; else the columns that change.
        erasure: the stored rows of the job go (a purge, or a life that never ended).
        history: steps to add.
    """

    record: JobRecord | None
    stored_tags: int = 0
    is_born: bool = False
    is_changed: bool = False
    has_output: bool = False
    erasure: Erasure | None = None
    parents: tuple[JobId, ...] = ()
    history: list[JobTransition] = field(default_factory=list)

    def erase(self, event: Transition) -> None:
        """Forget everything about the job up to an event, but not a row that is newer than it."""
        self.erasure = Erasure(event.sequence, event.at)
        self.history.clear()
        if self.record is not None and self.record.sequence < event.sequence:
            self.record = None
            self.is_born = self.is_changed = self.has_output = False
            self.stored_tags = 0
            self.parents = ()


_QUEUE_ACTIONS: Final[dict[type[QueueFact], str]] = {
    QueuePaused: "pause_queue",
    QueueResumed: "resume_queue",
    ConcurrencyLimitSet: "set_concurrency_limit",
}
_SCHEDULE_ACTIONS: Final[dict[type[ScheduleFact], str]] = {
    SchedulePut: "put_schedule",
    ScheduleRemoved: "remove_schedule",
    ScheduleTriggered: "trigger_schedule",
}


class Changes:
    """Everything that a stretch of events of one partition changes.

    Args:
        jobs: the stored record of each job that the events name and that has a row. Payload and output need
            not be read for this, tags only for jobs to which an event adds some.
        queues: the stored settings of the queues that the events set.
        history: which steps are kept.
        schedules: the stored record of each schedule that the events name and that has a row.
    """

    def __init__(
        self,
        jobs: Mapping[JobId, JobRecord],
        queues: Mapping[QueueName, QueueSettings] | None = None,
        history: History = History.DETAIL,
        schedules: Mapping[ScheduleId, ScheduleRecord] | None = None,
    ) -> None:
        self._stored = jobs
        self._history = history
        self.jobs: dict[JobId, JobChange] = {}
        self.queues: dict[QueueName, QueueSettings] = dict(queues or {})
        self.schedules = ScheduleChanges(schedules or {})
        self.audit: list[AuditRow] = []
        self.depths: Counter[tuple[QueueName, JobState]] = Counter()
        self.workers = WorkerChanges()
        self.partition_of: dict[QueueName, Partition] = {}

    def add(self, event: Transition) -> None:
        """Take in the next event."""
        if isinstance(event, JobFact):
            self._job_fact(event)
        elif isinstance(event, Purged):
            self._purged(event)
        elif isinstance(event, QueueFact):
            self._queue_fact(event)
        elif isinstance(event, ScheduleFact):
            self._schedule_fact(event)

    def put(self, record: JobRecord, parents: tuple[JobId, ...]) -> None:
        """Take in the finished record of a job that has no row, as a rebuild reads it."""
        record.tags = shown_tags(record.tags)
        self.jobs[record.job_id] = JobChange(record, is_born=True, parents=parents)
        self._count(record.queue, record.partition, None, record.state)
        self.workers.moved(record.partition, None, record.lease_owner, record.updated_at)

    def _change(self, job_id: JobId) -> JobChange:
        change = self.jobs.get(job_id)
        if change is None:
            record = self._stored.get(job_id)
            change = self.jobs[job_id] = JobChange(record, len(record.tags) if record is not None else 0)
        return change

    def _job_fact(self, event: JobFact) -> None:
        change = self._change(event.job_id)
        record = change.record
        before, owner = (record.state, record.lease_owner) if record is not None else (None, None)
        if isinstance(event, Enqueued):
            self._born(change, event)
        elif record is not None and event.sequence > record.sequence:
            record.apply(_with_shown_tags(event))
            change.is_changed = True
            change.has_output |= isinstance(event, Succeeded)
        if change.record is not None:
            self._count(event.queue, event.partition, before, change.record.state)
            self.workers.moved(event.partition, owner, change.record.lease_owner, event.at)
        self.workers.saw(event)
        if isinstance(event, JobTransition) and (step := self._history.kept(event)) is not None:
            change.history.append(step)
        self._audit_job(event)

    def _born(self, change: JobChange, event: Enqueued) -> None:
        record = change.record
        if record is not None:
            if record.sequence >= event.sequence:
                return
            # The purge between the two lives was set aside; what is left of the first must not mix in.
            change.erase(event)
        change.record = JobRecord.born(event)
        change.record.tags = shown_tags(event.tags)
        change.parents = event.parents
        change.is_born = True

    def _purged(self, event: Purged) -> None:
        change = self._change(event.job_id)
        record = change.record
        before, owner = (record.state, record.lease_owner) if record is not None else (None, None)
        change.erase(event)
        if change.record is None:
            self._count(event.queue, event.partition, before, None)
            self.workers.moved(event.partition, owner, None, event.at)

    def _queue_fact(self, event: QueueFact) -> None:
        action = _QUEUE_ACTIONS.get(type(event))
        if action is None:
            return
        settings = self.queues.get(event.queue) or QueueSettings(queue=event.queue, partition=event.partition)
        if event.sequence > settings.sequence:
            self.queues[event.queue] = _set(settings, event)
        self._audit(event, action, event.queue)

    def _schedule_fact(self, event: ScheduleFact) -> None:
        self.schedules.add(event)
        action = _SCHEDULE_ACTIONS.get(type(event))
        if action is not None:
            self._audit(event, action, event.schedule_id)

    def _count(
        self, queue: QueueName, partition: Partition, before: JobState | None, after: JobState | None
    ) -> None:
        self.partition_of[queue] = partition
        if before is after:
            return
        if before is not None:
            self.depths[queue, before] -= 1
        if after is not None:
            self.depths[queue, after] += 1

    def _audit_job(self, event: JobFact) -> None:
        if isinstance(event, CancelRequested) or (isinstance(event, Cancelled) and _is_asked_for(event)):
            self._audit(event, "cancel", event.job_id)
        elif isinstance(event, Requeued):
            self._audit(event, "requeue", event.job_id)

    def _audit(self, event: Transition, action: str, target: str) -> None:
        self.audit.append(AuditRow(event.partition, event.sequence, event.actor, action, target, event.at))


def _is_asked_for(event: Cancelled) -> bool:
    """Whether an operator's command did this: not the worker's outcome, and not a parent that failed."""
    if event.worker_id is not None:
        return False
    return event.actor is not None or not event.terminal_cause.startswith("parent-failure:")


def _with_shown_tags(event: JobFact) -> JobFact:
    """The event with its new tags as Postgres can hold them, so that they meet the stored ones as equals."""
    if isinstance(event, Succeeded | RetryScheduled | DeadLettered) and event.add_tags:
        return replace(event, add_tags=shown_tags(event.add_tags))
    return event


def _set(settings: QueueSettings, event: QueueFact) -> QueueSettings:
    stamped = replace(settings, updated_at=event.at, sequence=event.sequence)
    match event:
        case QueuePaused():
            return replace(stamped, paused=True, paused_at=event.at, paused_by=event.actor)
        case QueueResumed():
            return replace(stamped, paused=False, paused_at=None, paused_by=None)
        case ConcurrencyLimitSet():
            return replace(stamped, concurrency_limit=event.limit)
        case _:
            return stamped
