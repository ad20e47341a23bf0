"""What happened: the events of the log, one class for each type (contract section 4).

An instance is never changed once it is made. The classes are not frozen all the same, because the engine
makes one for every event, and a frozen dataclass takes three times as long to make.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from tidelog_events.identity import CommandId, JobId, Partition, QueueName, ScheduleId, Sequence, WorkerId
from tidelog_events.states import CatchUp, DependencyMode, JobState
from tidelog_events.wire import OmittedWhenNone, WireInstant, WireInstants, WireJson, WireRetry, WireTags

Absent = OmittedWhenNone()


@dataclass(slots=True, kw_only=True)
class Transition:
    """Common to all: when it was decided, and its position: partition and sequence.

    `cause_command_id` is the command that led to it, over any number of steps; `actor` or `worker_id` is who
    acted on this very event. They are written only where there is one.
    """

    TYPE: ClassVar[str]

    at: WireInstant
    partition: Partition
    sequence: Sequence
    cause_command_id: Annotated[CommandId | None, Absent] = None
    actor: Annotated[str | None, Absent] = None


@dataclass(slots=True, kw_only=True)
class JobFact(Transition):
    """A fact about a job. `state` and `attempt` are those after it."""

    job_id: JobId
    queue: QueueName
    wire_name: str
    state: JobState
    attempt: int


@dataclass(slots=True, kw_only=True)
class JobTransition(JobFact):
    """A step of a job's life. `ordinal` counts them, dense from 0 until the job is purged."""

    ordinal: int


@dataclass(slots=True, kw_only=True)
class Enqueued(JobTransition):
    """A job was born: Scheduled, AwaitingParent, or Cancelled at once because of a parent."""

    TYPE = "enqueued"

    payload: WireJson
    due_time: WireInstant
    parents: tuple[JobId, ...]
    mode: DependencyMode
    parents_remaining: int
    tags: WireTags
    retry: WireRetry
    trace_context: str | None
    workflow_id: str | None
    schedule_id: ScheduleId | None
    terminal_at: WireInstant | None
    terminal_cause: str | None


@dataclass(slots=True, kw_only=True)
class Released(JobTransition):
    """The last parent has ended: AwaitingParent to Scheduled."""

    TYPE = "released"

    due_time: WireInstant


@dataclass(slots=True, kw_only=True)
class Leased(JobTransition):
    """A worker holds the job until `lease_expiry`. The event's `sequence` is the number of the lease."""

    TYPE = "leased"

    worker_id: WorkerId
    lease_expiry: WireInstant


@dataclass(slots=True, kw_only=True)
class Succeeded(JobTransition):
    """The handler finished; `output` is the Job Output."""

    TYPE = "succeeded"

    worker_id: Annotated[WorkerId | None, Absent] = None
    output: WireJson
    add_tags: WireTags
    terminal_at: WireInstant


@dataclass(slots=True, kw_only=True)
class RetryScheduled(JobTransition):
    """The attempt failed and another one is due at `due_time`."""

    TYPE = "retry_scheduled"

    worker_id: Annotated[WorkerId | None, Absent] = None
    due_time: WireInstant
    error: str
    failure_detail: str | None
    add_tags: WireTags


@dataclass(slots=True, kw_only=True)
class LeaseExpired(JobTransition):
    """The worker fell silent: Scheduled again at `due_time`, or DeadLettered at the attempt ceiling."""

    TYPE = "lease_expired"

    worker_id: WorkerId
    due_time: WireInstant | None
    terminal_at: WireInstant | None
    terminal_cause: str | None
    failure_detail: None = None


@dataclass(slots=True, kw_only=True)
class Returned(JobTransition):
    """A worker that shuts down gave the job back; the try is not charged."""

    TYPE = "returned"

    worker_id: Annotated[WorkerId | None, Absent] = None
    due_time: WireInstant


@dataclass(slots=True, kw_only=True)
class DeadLettered(JobTransition):
    """The attempt failed and there will be no other unless somebody requeues the job."""

    TYPE = "dead_lettered"

    worker_id: Annotated[WorkerId | None, Absent] = None
    error: str
    failure_detail: str | None
    add_tags: WireTags
    terminal_at: WireInstant
    terminal_cause: str


@dataclass(slots=True, kw_only=True)
class Quarantined(JobTransition):
    """The worker could not route the job to a handler."""

    TYPE = "quarantined"

    worker_id: Annotated[WorkerId | None, Absent] = None
    terminal_at: WireInstant
    terminal_cause: str


@dataclass(slots=True, kw_only=True)
class Cancelled(JobTransition):
    """The job was cancelled: by an operator, by its worker, or by a parent that did not succeed."""

    TYPE = "cancelled"

    worker_id: Annotated[WorkerId | None, Absent] = None
    terminal_at: WireInstant
    terminal_cause: str


@dataclass(slots=True, kw_only=True)
class Requeued(JobTransition):
    """A dead-lettered or quarantined job starts again, with attempt 0."""

    TYPE = "requeued"

    due_time: WireInstant


@dataclass(slots=True, kw_only=True)
class LeaseRenewed(JobFact):
    """A heartbeat moved the lease expiry."""

    TYPE = "lease_renewed"

    worker_id: WorkerId
    lease_expiry: WireInstant


@dataclass(slots=True, kw_only=True)
class CancelRequested(JobFact):
    """Somebody asked the worker of a leased job to stop."""

    TYPE = "cancel_requested"


@dataclass(slots=True, kw_only=True)
class ParentResolved(JobFact):
    """A parent ended and the job goes on waiting for others."""

    TYPE = "parent_resolved"

    parent_id: JobId
    parent_state: JobState
    parents_remaining: int


@dataclass(slots=True, kw_only=True)
class Purged(Transition):
    """The job is forgotten; its id is free again."""

    TYPE = "purged"

    job_id: JobId
    queue: QueueName


@dataclass(slots=True, kw_only=True)
class QueueFact(Transition):
    """A fact about a queue."""

    queue: QueueName


@dataclass(slots=True, kw_only=True)
class QueuePaused(QueueFact):
    """Claims on the queue are granted nothing from now on."""

    TYPE = "queue_paused"


@dataclass(slots=True, kw_only=True)
class QueueResumed(QueueFact):
    """Claims on the queue are granted work again."""

    TYPE = "queue_resumed"


@dataclass(slots=True, kw_only=True)
class ConcurrencyLimitSet(QueueFact):
    """At most so many jobs of the queue are leased at once; None: no limit."""

    TYPE = "concurrency_limit_set"

    limit: int | None


@dataclass(slots=True, kw_only=True)
class ScheduleFact(Transition):
    """A fact about a schedule."""

    schedule_id: ScheduleId
    queue: QueueName


@dataclass(slots=True, kw_only=True)
class SchedulePut(ScheduleFact):
    """The schedule is defined, anew or for the first time, from now on; `next_due` is its next tick."""

    TYPE = "schedule_put"

    cron: str
    time_zone: str
    wire_name: str
    payload: WireJson
    tags: WireTags
    retry: WireRetry
    catch_up: CatchUp
    no_overlap: bool
    next_due: WireInstant | None


@dataclass(slots=True, kw_only=True)
class ScheduleRemoved(ScheduleFact):
    """The schedule is gone; its jobs stay."""

    TYPE = "schedule_removed"


@dataclass(slots=True, kw_only=True)
class ScheduleTicked(ScheduleFact):
    """All ticks up to now are settled: each is either minted or skipped.

    `skipped` are the newest of the skipped ones; `skipped_count` is how many there are.
    """

    TYPE = "schedule_ticked"

    minted: tuple[JobId, ...]
    skipped: WireInstants
    skipped_count: int
    next_due: WireInstant | None


@dataclass(slots=True, kw_only=True)
class ScheduleTriggered(ScheduleFact):
    """Somebody asked for an instance outside of the ticks, which are not touched by it."""

    TYPE = "schedule_triggered"

    job_id: JobId


@dataclass(slots=True, kw_only=True)
class ScheduleRecomputed(ScheduleFact):
    """The time zone data changed, and with it the next tick; `error` says why there is none any longer."""

    TYPE = "schedule_recomputed"

    next_due: WireInstant | None
    error: str | None


TRANSITION_CLASSES: tuple[type[Transition], ...] = (
    Enqueued,
    Released,
    Leased,
    Succeeded,
    RetryScheduled,
    LeaseExpired,
    Returned,
    DeadLettered,
    Quarantined,
    Cancelled,
    Requeued,
    LeaseRenewed,
    CancelRequested,
    ParentResolved,
    Purged,
    QueuePaused,
    QueueResumed,
    ConcurrencyLimitSet,
    SchedulePut,
    ScheduleRemoved,
    ScheduleTicked,
    ScheduleTriggered,
    ScheduleRecomputed,
)
