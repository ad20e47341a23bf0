"""What a job's record must be, folded from its transitions alone and apart from the product's own fold.

The product folds by the type of each event; this one by what must be true in each state. Random scripts
compare it with the records of the core, the audits with the rows of Postgres.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from tidelog_events.bounds import MAX_JOB_TAGS
from tidelog_events.identity import JobId, Partition, QueueName, ScheduleId, Sequence, WorkerId
from tidelog_events.instants import Instant
from tidelog_events.jsontext import NULL
from tidelog_events.retry import RetryPolicy
from tidelog_events.states import TERMINAL_STATES, DependencyMode, JobState
from tidelog_events.transitions import (
    CancelRequested,
    Enqueued,
    JobFact,
    Leased,
    LeaseRenewed,
    ParentResolved,
    Purged,
    Released,
    Requeued,
    Returned,
    Succeeded,
    Transition,
)
from tidelog_events.wire import Tag


@dataclass(slots=True, kw_only=True)
class Folded:
    """A JobRecord, field by field (contract section 7)."""

    job_id: JobId
    queue: QueueName
    wire_name: str
    state: JobState
    attempt: int
    returned: int
    enqueue_sequence: Sequence
    due_time: Instant
    mode: DependencyMode
    parents_remaining: int
    lease_owner: WorkerId | None
    lease_expiry: Instant | None
    cancel_requested: bool
    terminal_at: Instant | None
    terminal_cause: str | None
    payload: bytes
    output: bytes
    tags: tuple[Tag, ...]
    retry: RetryPolicy
    trace_context: str | None
    workflow_id: str | None
    schedule_id: ScheduleId | None
    enqueued_at: Instant
    updated_at: Instant
    partition: Partition
    sequence: Sequence

    @classmethod
    def of(cls, facts: Iterable[JobFact]) -> Self:
        """The record of a job with these facts; the first is its birth."""
        birth, *later = facts
        if not isinstance(birth, Enqueued):
            raise TypeError(f"the first event of {birth.job_id} is {birth.TYPE}")
        record = cls.born(birth)
        for fact in later:
            record.follow(fact)
        return record

    @classmethod
    def born(cls, birth: Enqueued) -> Self:
        """The record of a job of which nothing but its birth is known."""
        record = cls(
            job_id=birth.job_id,
            queue=birth.queue,
            wire_name=birth.wire_name,
            state=birth.state,
            attempt=0,
            returned=0,
            enqueue_sequence=birth.sequence,
            due_time=birth.due_time,
            mode=birth.mode,
            parents_remaining=birth.parents_remaining,
            lease_owner=None,
            lease_expiry=None,
            cancel_requested=False,
            terminal_at=None,
            terminal_cause=None,
            payload=birth.payload,
            output=NULL,
            tags=birth.tags,
            retry=birth.retry,
            trace_context=birth.trace_context,
            workflow_id=birth.workflow_id,
            schedule_id=birth.schedule_id,
            enqueued_at=birth.at,
            updated_at=birth.at,
            partition=birth.partition,
            sequence=birth.sequence,
        )
        record._settle_state(birth)
        return record

    def follow(self, fact: JobFact) -> None:
        """Take the next fact about the job in."""
        self._settle_state(fact)
        added: tuple[Tag, ...] = getattr(fact, "add_tags", ())
        self.tags = tuple(dict.fromkeys([*self.tags, *added]))[:MAX_JOB_TAGS]
        match fact:
            case Leased() | LeaseRenewed():
                self.lease_owner, self.lease_expiry = fact.worker_id, fact.lease_expiry
            case Succeeded():
                self.output = fact.output
            case Returned():
                self.returned += 1
            case Requeued():
                self.returned = 0
                self.cancel_requested = False
            case CancelRequested():
                self.cancel_requested = True
            case ParentResolved() | Released():
                self.parents_remaining = getattr(fact, "parents_remaining", 0)

    def _settle_state(self, fact: JobFact) -> None:
        """What follows from the state that an event leads to, whatever its type."""
        self.state = fact.state
        self.attempt = fact.attempt
        self.sequence = fact.sequence
        self.updated_at = fact.at
        if fact.state is not JobState.LEASED:
            self.lease_owner = self.lease_expiry = None
        if fact.state is not JobState.AWAITING_PARENT:
            self.parents_remaining = 0
        self.terminal_at = getattr(fact, "terminal_at", None)
        self.terminal_cause = getattr(fact, "terminal_cause", None)
        due: Instant | None = getattr(fact, "due_time", None)
        if fact.state in TERMINAL_STATES:
            self.cancel_requested = False
        elif due is not None:
            self.due_time = due


def folded(events: Iterable[Transition]) -> dict[JobId, Folded]:
    """The records of all jobs that are there after these events."""
    records: dict[JobId, Folded] = {}
    for event in events:
        match event:
            case Enqueued():
                records[event.job_id] = Folded.born(event)
            case JobFact():
                records[event.job_id].follow(event)
            case Purged():
                del records[event.job_id]
    return records
