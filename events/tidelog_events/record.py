"""The JobRecord: what a job is by now, and the one fold of transitions that makes it (contract section 7).

The engine, the projection and `tidelog replay` all use this fold, so they cannot disagree about a record.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Self

from tidelog_events.bounds import MAX_JOB_TAGS
from tidelog_events.identity import JobId, Partition, QueueName, ScheduleId, Sequence, WorkerId
from tidelog_events.jsontext import NULL, Json, loads
from tidelog_events.states import DependencyMode, JobState
from tidelog_events.transitions import (
    Cancelled,
    CancelRequested,
    DeadLettered,
    Enqueued,
    JobFact,
    Leased,
    LeaseExpired,
    LeaseRenewed,
    ParentResolved,
    Quarantined,
    Released,
    Requeued,
    RetryScheduled,
    Returned,
    Succeeded,
)
from tidelog_events.wire import Tag, WireInstant, WireJson, WireRetry, WireTags


@dataclass(slots=True, kw_only=True)
class JobRecord:
    """A job as the projection, the client and the HTTP answer show it. Every field is always there.

    `payload` and `output` are compact JSON text. `sequence`: the last event that changed the record.
    """

    job_id: JobId
    queue: QueueName
    wire_name: str
    state: JobState
    attempt: int
    returned: int
    enqueue_sequence: Sequence
    due_time: WireInstant
    mode: DependencyMode
    parents_remaining: int
    lease_owner: WorkerId | None
    lease_expiry: WireInstant | None
    cancel_requested: bool
    terminal_at: WireInstant | None
    terminal_cause: str | None
    payload: WireJson
    output: WireJson
    tags: WireTags
    retry: WireRetry
    trace_context: str | None
    workflow_id: str | None
    schedule_id: ScheduleId | None
    enqueued_at: WireInstant
    updated_at: WireInstant
    partition: Partition
    sequence: Sequence

    @property
    def payload_value(self) -> Json:
        """The payload as a Python value."""
        return loads(self.payload)

    @property
    def output_value(self) -> Json:
        """The Job Output as a Python value; None while there is none."""
        return loads(self.output)

    @classmethod
    def born(cls, event: Enqueued) -> Self:
        """The record of a job that was enqueued just now."""
        record = cls.__new__(cls)
        record.begin(event)
        return record

    def begin(self, event: Enqueued) -> None:
        """Set every field, of a record that has none yet.

        One by one: a call with so many keywords takes six times as long, for every job that is born.
        """
        self.job_id = event.job_id
        self.queue = event.queue
        self.wire_name = event.wire_name
        self.state = event.state
        self.attempt = event.attempt
        self.returned = 0
        self.enqueue_sequence = event.sequence
        self.due_time = event.due_time
        self.mode = event.mode
        self.parents_remaining = event.parents_remaining
        self.lease_owner = None
        self.lease_expiry = None
        self.cancel_requested = False
        self.terminal_at = event.terminal_at
        self.terminal_cause = event.terminal_cause
        self.payload = event.payload
        self.output = NULL
        self.tags = event.tags
        self.retry = event.retry
        self.trace_context = event.trace_context
        self.workflow_id = event.workflow_id
        self.schedule_id = event.schedule_id
        self.enqueued_at = event.at
        self.updated_at = event.at
        self.partition = event.partition
        self.sequence = event.sequence

    def apply(self, event: JobFact) -> None:
        """Change the record by a later fact about the job; one of a type not known here changes nothing."""
        fold = _FOLDS.get(type(event))
        if fold is None:
            return
        fold(self, event)
        self.state = event.state
        self.attempt = event.attempt
        self.updated_at = event.at
        self.sequence = event.sequence


RECORD_FIELDS = tuple(field.name for field in fields(JobRecord))


def _ends_lease(record: JobRecord) -> None:
    record.lease_owner = None
    record.lease_expiry = None


def _add_tags(record: JobRecord, added: tuple[Tag, ...]) -> None:
    if added:
        record.tags = tuple(dict.fromkeys((*record.tags, *added)))[:MAX_JOB_TAGS]


def _released(record: JobRecord, event: Released) -> None:
    record.due_time = event.due_time
    record.parents_remaining = 0


def _leased(record: JobRecord, event: Leased | LeaseRenewed) -> None:
    record.lease_owner = event.worker_id
    record.lease_expiry = event.lease_expiry


def _ended(record: JobRecord, event: Succeeded | DeadLettered | Quarantined | Cancelled) -> None:
    _ends_lease(record)
    record.cancel_requested = False
    record.parents_remaining = 0
    record.terminal_at = event.terminal_at


def _succeeded(record: JobRecord, event: Succeeded) -> None:
    _ended(record, event)
    record.output = event.output
    _add_tags(record, event.add_tags)


def _retry_scheduled(record: JobRecord, event: RetryScheduled) -> None:
    _ends_lease(record)
    record.due_time = event.due_time
    _add_tags(record, event.add_tags)


def _lease_expired(record: JobRecord, event: LeaseExpired) -> None:
    _ends_lease(record)
    if event.due_time is not None:
        record.due_time = event.due_time
    else:
        record.cancel_requested = False
        record.terminal_at = event.terminal_at
        record.terminal_cause = event.terminal_cause


def _returned(record: JobRecord, event: Returned) -> None:
    _ends_lease(record)
    record.due_time = event.due_time
    record.returned += 1


def _dead_lettered(record: JobRecord, event: DeadLettered) -> None:
    _ended(record, event)
    record.terminal_cause = event.terminal_cause
    _add_tags(record, event.add_tags)


def _ended_by_cause(record: JobRecord, event: Quarantined | Cancelled) -> None:
    _ended(record, event)
    record.terminal_cause = event.terminal_cause


def _requeued(record: JobRecord, event: Requeued) -> None:
    record.due_time = event.due_time
    record.returned = 0
    record.cancel_requested = False
    record.terminal_at = None
    record.terminal_cause = None


def _cancel_requested(record: JobRecord, event: CancelRequested) -> None:  # noqa: ARG001  one shape for all folds
    record.cancel_requested = True


def _parent_resolved(record: JobRecord, event: ParentResolved) -> None:
    record.parents_remaining = event.parents_remaining


# Each fold takes the class that it is listed under; a mapping cannot say that to the type checker.
_FOLDS: dict[type[JobFact], Callable[[JobRecord, Any], None]] = {
    Released: _released,
    Leased: _leased,
    LeaseRenewed: _leased,
    Succeeded: _succeeded,
    RetryScheduled: _retry_scheduled,
    LeaseExpired: _lease_expired,
    Returned: _returned,
    DeadLettered: _dead_lettered,
    Quarantined: _ended_by_cause,
    Cancelled: _ended_by_cause,
    Requeued: _requeued,
    CancelRequested: _cancel_requested,
    ParentResolved: _parent_resolved,
}
