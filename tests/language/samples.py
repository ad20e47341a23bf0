"""One of each: commands as producers send them, a whole life of transitions, and every kind of answer.

The golden files, the codec tests and the schema tests all use these.
"""

from __future__ import annotations

from typing import Final, TypedDict

from tidelog_events.identity import (
    NO_SEQUENCE,
    ClientId,
    CommandId,
    JobId,
    Partition,
    QueueName,
    ScheduleId,
    Sequence,
    WorkerId,
)
from tidelog_events.instants import Instant, Micros, parse_instant
from tidelog_events.jsontext import Json
from tidelog_events.replies import (
    Answer,
    CancelRequestedPush,
    ClaimReply,
    EnqueueReply,
    Grant,
    HeartbeatReply,
    Hello,
    InvalidReply,
    LeaseAnswer,
    Reply,
    ReportReply,
    Result,
    RowResult,
    TriggerReply,
)
from tidelog_events.retry import DEFAULT_RETRY, RetryPolicy
from tidelog_events.states import CatchUp, DependencyMode, JobState
from tidelog_events.transitions import (
    Cancelled,
    CancelRequested,
    ConcurrencyLimitSet,
    DeadLettered,
    Enqueued,
    JobFact,
    Leased,
    LeaseExpired,
    LeaseRenewed,
    ParentResolved,
    Purged,
    Quarantined,
    QueuePaused,
    QueueResumed,
    Released,
    Requeued,
    RetryScheduled,
    Returned,
    SchedulePut,
    ScheduleRecomputed,
    ScheduleRemoved,
    ScheduleTicked,
    ScheduleTriggered,
    Succeeded,
    Transition,
)

JOB: Final = JobId("billing/invoice-2026-17")
PARENT: Final = JobId("billing/0199f3c2a7d47e8fb2b1c9d0e1f2a3b4")
OTHER_PARENT: Final = JobId("billing/0199f3c2a7d47e8fb2b1c9d0e1f2a3b5")
PARTITION: Final = Partition(1)
QUEUE: Final = QueueName("billing")
WORKER: Final = WorkerId("worker-a.1")
SCHEDULE: Final = ScheduleId("billing/nightly")
CLIENT: Final = ClientId("client-1")
NOON: Final = parse_instant("2026-01-31T12:00:00Z")

COMMANDS: Final[dict[str, dict[str, Json]]] = {
    "enqueue": {
        "type": "enqueue",
        "command_id": "c-1",
        "reply_to": CLIENT,
        "actor": "ann",
        "queue": QUEUE,
        "wire_name": "send-invoice",
        "payload": {"order_id": "42", "lines": [1, 2.5, None]},
        "job_id": JOB,
        "due_time": "2026-01-31T13:00:00+01:00",
        "parents": [PARENT],
        "mode": "OnAnyTerminal",
        "tags": ["urgent", {"customer": "17"}],
        "retry": {"max_attempts": 5, "delays": [1, 5, 0.5]},
        "trace_context": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        "workflow_id": "month-end",
        "schedule_id": "billing/nightly",
    },
    "enqueue-short": {"type": "enqueue", "wire_name": "send-invoice"},
    "claim": {
        "type": "claim",
        "command_id": "c-2",
        "reply_to": CLIENT,
        "worker_id": WORKER,
        "queue": QUEUE,
        "max_jobs": 10,
        "lease_seconds": 30.5,
        "wait_seconds": 5,
    },
    "heartbeat": {
        "type": "heartbeat",
        "worker_id": WORKER,
        "leases": [{"job_id": JOB, "attempt": 1, "lease": 7}, {"job_id": PARENT, "attempt": 3}],
        "lease_seconds": 60,
    },
    "report": {
        "type": "report",
        "worker_id": WORKER,
        "outcomes": [
            {
                "job_id": JOB,
                "attempt": 1,
                "lease": 7,
                "outcome": "Success",
                "output": [1],
                "add_tags": ["paid"],
            },
            {"job_id": JOB, "attempt": 1, "lease": 7, "outcome": "Failure", "error": "no route"},
            {
                "job_id": JOB,
                "attempt": 2,
                "outcome": "Failure",
                "error": "no route",
                "failure_detail": "OSError: no route",
                "next_due": None,
                "add_tags": [{"host": "a"}],
            },
            {
                "job_id": JOB,
                "attempt": 2,
                "outcome": "Failure",
                "error": "no route",
                "next_due": "2026-01-31T12:00:00Z",
            },
            {"job_id": JOB, "attempt": 1, "outcome": "Cancelled", "cause": "ann"},
            {"job_id": JOB, "attempt": 1, "outcome": "Unroutable", "reason": "no handler"},
            {"job_id": JOB, "attempt": 1, "outcome": "Returned"},
        ],
    },
    "cancel": {"type": "cancel", "job_id": JOB, "actor": "ann"},
    "requeue": {"type": "requeue", "job_id": JOB},
    "pause_queue": {"type": "pause_queue", "queue": QUEUE, "actor": "ann"},
    "resume_queue": {"type": "resume_queue", "queue": QUEUE},
    "set_concurrency_limit": {"type": "set_concurrency_limit", "queue": QUEUE, "limit": 5},
    "put_schedule": {
        "type": "put_schedule",
        "command_id": "c-14",
        "actor": "ann",
        "schedule_id": SCHEDULE,
        "cron": "30 0 3 * * MON-fri",
        "time_zone": "Europe/Berlin",
        "wire_name": "send-invoice",
        "payload": {"order_id": "all"},
        "tags": ["nightly"],
        "retry": {"max_attempts": 2},
        "catch_up": "Coalesce",
        "no_overlap": True,
    },
    "put_schedule-short": {
        "type": "put_schedule",
        "schedule_id": SCHEDULE,
        "cron": "* * * * *",
        "wire_name": "send-invoice",
    },
    "remove_schedule": {"type": "remove_schedule", "schedule_id": SCHEDULE},
    "trigger_schedule": {"type": "trigger_schedule", "schedule_id": SCHEDULE, "command_id": "go-1"},
    "set_concurrency_limit-none": {"type": "set_concurrency_limit", "queue": QUEUE, "limit": None},
}


class FactFields(TypedDict):
    """What every fact about a job carries."""

    at: Instant
    partition: Partition
    sequence: Sequence
    job_id: JobId
    queue: QueueName
    wire_name: str
    state: JobState
    attempt: int


class ScheduleFields(TypedDict):
    """What every fact about a schedule carries."""

    at: Instant
    partition: Partition
    sequence: Sequence
    schedule_id: ScheduleId
    queue: QueueName


class StepFields(FactFields):
    """What every step of a job's life carries."""

    ordinal: int


def after(seconds: float) -> Instant:
    """So many seconds after noon."""
    return Instant(NOON + round(seconds * 1_000_000))


def fact(sequence: int, state: JobState, attempt: int) -> FactFields:
    """A fact that was decided at that second after noon."""
    return {
        "at": after(sequence),
        "partition": PARTITION,
        "sequence": Sequence(sequence),
        "job_id": JOB,
        "queue": QUEUE,
        "wire_name": "send-invoice",
        "state": state,
        "attempt": attempt,
    }


def of_schedule(sequence: int) -> ScheduleFields:
    """A fact about a schedule that was decided at that second after noon."""
    return {
        "at": after(sequence),
        "partition": PARTITION,
        "sequence": Sequence(sequence),
        "schedule_id": SCHEDULE,
        "queue": QUEUE,
    }


def step(sequence: int, ordinal: int, state: JobState, attempt: int) -> StepFields:
    """A step that was decided at that second after noon."""
    return {**fact(sequence, state, attempt), "ordinal": ordinal}


def leased(sequence: int, ordinal: int, attempt: int) -> Leased:
    """A lease of thirty seconds."""
    return Leased(
        **step(sequence, ordinal, JobState.LEASED, attempt),
        cause_command_id=CommandId("c-2"),
        worker_id=WORKER,
        lease_expiry=after(sequence + 30),
    )


LIFE: Final[tuple[JobFact, ...]] = (
    Enqueued(
        **step(7, 0, JobState.AWAITING_PARENT, 0),
        cause_command_id=CommandId("c-1"),
        actor="ann",
        payload=b'{"order_id":"42","huge":123456789012345678901234567890,"text":"\xc3\xa9"}',
        due_time=after(1.5),
        parents=(PARENT, OTHER_PARENT),
        mode=DependencyMode.ON_ANY_TERMINAL,
        parents_remaining=2,
        tags=("urgent", ("customer", "17")),
        retry=RetryPolicy(5, (Micros(1_000_000), Micros(500_000))),
        trace_context="00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        workflow_id="month-end",
        schedule_id=ScheduleId("billing/nightly"),
        terminal_at=None,
        terminal_cause=None,
    ),
    ParentResolved(
        **fact(8, JobState.AWAITING_PARENT, 0),
        cause_command_id=CommandId("c-9"),
        parent_id=PARENT,
        parent_state=JobState.DEAD_LETTERED,
        parents_remaining=1,
    ),
    Released(**step(9, 1, JobState.SCHEDULED, 0), due_time=after(9)),
    leased(10, 2, 1),
    LeaseRenewed(
        **fact(11, JobState.LEASED, 1),
        cause_command_id=CommandId("c-3"),
        worker_id=WORKER,
        lease_expiry=after(71.25),
    ),
    RetryScheduled(
        **step(12, 3, JobState.SCHEDULED, 1),
        cause_command_id=CommandId("c-4"),
        worker_id=WORKER,
        due_time=after(13),
        error="no route to host",
        failure_detail='OSError: no route\n  File "a.py"\x00',
        add_tags=(("host", "a"), "urgent"),
    ),
    leased(13, 4, 2),
    Returned(
        **step(14, 5, JobState.SCHEDULED, 2),
        cause_command_id=CommandId("c-5"),
        worker_id=WORKER,
        due_time=after(14),
    ),
    leased(15, 6, 3),
    CancelRequested(**fact(16, JobState.LEASED, 3), cause_command_id=CommandId("c-6"), actor="ann"),
    LeaseExpired(
        **step(45, 7, JobState.SCHEDULED, 3),
        worker_id=WORKER,
        due_time=after(45.5),
        terminal_at=None,
        terminal_cause=None,
    ),
    leased(46, 8, 4),
    DeadLettered(
        **step(47, 9, JobState.DEAD_LETTERED, 4),
        cause_command_id=CommandId("c-7"),
        worker_id=WORKER,
        error="no route to host",
        failure_detail=None,
        add_tags=(),
        terminal_at=after(47),
        terminal_cause="no route to host",
    ),
    Requeued(
        **step(48, 10, JobState.SCHEDULED, 0),
        cause_command_id=CommandId("c-8"),
        actor="bob",
        due_time=after(48),
    ),
    leased(49, 11, 1),
    Quarantined(
        **step(50, 12, JobState.QUARANTINED, 1),
        cause_command_id=CommandId("c-10"),
        worker_id=WORKER,
        terminal_at=after(50),
        terminal_cause="no handler registered for wire name 'send-invoice'",
    ),
    Requeued(**step(51, 13, JobState.SCHEDULED, 0), due_time=after(51)),
    leased(52, 14, 1),
    LeaseExpired(
        **step(82, 15, JobState.DEAD_LETTERED, 1),
        worker_id=WORKER,
        due_time=None,
        terminal_at=after(82),
        terminal_cause="Lease expired on attempt 1 (attempt ceiling reached).",
    ),
    Requeued(**step(83, 16, JobState.SCHEDULED, 0), due_time=after(83)),
    leased(84, 17, 1),
    Succeeded(
        **step(85, 18, JobState.SUCCEEDED, 1),
        cause_command_id=CommandId("c-11"),
        worker_id=WORKER,
        output=b'{"sent":"42"}',
        add_tags=("paid",),
        terminal_at=after(85),
    ),
)
"""One job that meets every fact of a job's life on its way but `cancelled`."""

_LATEST: Final = {event.TYPE: event for event in reversed(LIFE)}

TRANSITIONS: Final[dict[str, Transition]] = {
    **_LATEST,
    "lease_expired-at-the-ceiling": LIFE[18],
    "enqueued-cancelled-at-once": Enqueued(
        **step(90, 0, JobState.CANCELLED, 0),
        payload=b"null",
        due_time=after(90),
        parents=(PARENT,),
        mode=DependencyMode.ON_SUCCESS,
        parents_remaining=0,
        tags=(),
        retry=DEFAULT_RETRY,
        trace_context=None,
        workflow_id=None,
        schedule_id=None,
        terminal_at=after(90),
        terminal_cause="parent-failure:Quarantined",
    ),
    "cancelled": Cancelled(
        **step(91, 1, JobState.CANCELLED, 0),
        cause_command_id=CommandId("c-12"),
        actor="ann",
        terminal_at=after(91),
        terminal_cause="ann",
    ),
    "purged": Purged(at=after(86_491), partition=PARTITION, sequence=Sequence(92), job_id=JOB, queue=QUEUE),
    "queue_paused": QueuePaused(
        at=after(93),
        partition=PARTITION,
        sequence=Sequence(93),
        queue=QUEUE,
        cause_command_id=CommandId("c-13"),
        actor="ann",
    ),
    "queue_resumed": QueueResumed(at=after(94), partition=PARTITION, sequence=Sequence(94), queue=QUEUE),
    "concurrency_limit_set": ConcurrencyLimitSet(
        at=after(95), partition=PARTITION, sequence=Sequence(95), queue=QUEUE, limit=5
    ),
    "concurrency_limit_set-none": ConcurrencyLimitSet(
        at=after(96), partition=PARTITION, sequence=Sequence(96), queue=QUEUE, limit=None
    ),
    "schedule_put": SchedulePut(
        **of_schedule(97),
        cause_command_id=CommandId("c-14"),
        actor="ann",
        cron="30 0 3 * * MON-fri",
        time_zone="Europe/Berlin",
        wire_name="send-invoice",
        payload=b'{"order_id":"all"}',
        tags=("nightly", ("customer", "17")),
        retry=RetryPolicy(2, (Micros(500_000),)),
        catch_up=CatchUp.COALESCE,
        no_overlap=True,
        next_due=parse_instant("2026-02-02T02:00:30Z"),
    ),
    "schedule_ticked": ScheduleTicked(
        **of_schedule(98),
        minted=(JobId(f"{SCHEDULE}@20260131T120138Z"),),
        skipped=(after(96), after(97)),
        skipped_count=40,
        next_due=after(198),
    ),
    "schedule_ticked-nothing": ScheduleTicked(
        **of_schedule(99), minted=(), skipped=(), skipped_count=0, next_due=None
    ),
    "schedule_triggered": ScheduleTriggered(
        **of_schedule(100),
        cause_command_id=CommandId("go-1"),
        actor="ann",
        job_id=JobId(f"{SCHEDULE}@trigger-go-1"),
    ),
    "schedule_recomputed": ScheduleRecomputed(**of_schedule(101), next_due=after(300), error=None),
    "schedule_recomputed-faulty": ScheduleRecomputed(
        **of_schedule(102), next_due=None, error="there is no time zone 'Europe/Berlin'"
    ),
    "schedule_removed": ScheduleRemoved(**of_schedule(103), cause_command_id=CommandId("c-15"), actor="ann"),
}
"""One event of each type, by its type, and the variants that look otherwise."""


class ReplyFields(TypedDict):
    """What every reply carries."""

    command_id: CommandId | None
    type: str | None
    partition: Partition
    sequence: Sequence


def reply(kind: str | None) -> ReplyFields:
    """A reply to a command of that type."""
    return {"command_id": CommandId("c-1"), "type": kind, "partition": PARTITION, "sequence": Sequence(7)}


GRANT: Final = Grant(
    job_id=JOB,
    queue=QUEUE,
    wire_name="send-invoice",
    payload=b'{"order_id":"42"}',
    attempt=1,
    lease=Sequence(10),
    lease_expiry=after(40),
    cancel_requested=False,
    due_time=after(9),
    tags=("urgent", ("customer", "17")),
    retry=RetryPolicy(5, (Micros(1_000_000),)),
    trace_context=None,
    workflow_id="month-end",
    schedule_id=None,
)

ANSWERS: Final[dict[str, Answer]] = {
    "enqueue": EnqueueReply(**reply("enqueue"), result=Result.OK, job_id=JOB),
    "enqueue-duplicate": EnqueueReply(**reply("enqueue"), result=Result.DUPLICATE, job_id=JOB),
    "enqueue-refused": EnqueueReply(
        **reply("enqueue"), result=Result.UNKNOWN_PARENT, message="there is no job billing/none"
    ),
    "claim": ClaimReply(**reply("claim"), result=Result.OK, jobs=(GRANT,), next_due=None),
    "claim-first-piece": ClaimReply(
        **reply("claim"), result=Result.OK, jobs=(GRANT,), next_due=after(60), more=True
    ),
    "claim-empty": ClaimReply(
        command_id=None,
        type="claim",
        result=Result.OK,
        partition=PARTITION,
        sequence=NO_SEQUENCE,
        jobs=(),
        next_due=None,
    ),
    "heartbeat": HeartbeatReply(
        **reply("heartbeat"),
        result=Result.OK,
        leases=(
            LeaseAnswer(job_id=JOB, renewed=True, cancel_requested=True),
            LeaseAnswer(job_id=PARENT, renewed=False, cancel_requested=False),
        ),
    ),
    "report": ReportReply(
        **reply("report"),
        result=Result.OK,
        results=(RowResult.APPLIED, RowResult.STALE_LEASE, RowResult.OUTPUT_TOO_LARGE),
    ),
    "invalid": InvalidReply(
        **reply("claim"), result=Result.INVALID, field="max_jobs", message="max_jobs must be a whole number"
    ),
    "invalid-without-a-type": InvalidReply(
        **reply(None), result=Result.INVALID, field="type", message="type must be one of enqueue, claim"
    ),
    "cancel": Reply(**reply("cancel"), result=Result.CANCELLATION_REQUESTED),
    "requeue": Reply(**reply("requeue"), result=Result.NOT_REQUEUEABLE),
    "pause_queue": Reply(**reply("pause_queue"), result=Result.OK),
    "resume_queue": Reply(**reply("resume_queue"), result=Result.OK),
    "set_concurrency_limit": Reply(**reply("set_concurrency_limit"), result=Result.OK),
    "put_schedule": Reply(**reply("put_schedule"), result=Result.OK),
    "remove_schedule": Reply(**reply("remove_schedule"), result=Result.SCHEDULE_NOT_FOUND),
    "trigger_schedule": TriggerReply(
        **reply("trigger_schedule"), result=Result.TRIGGERED, job_id=JobId(f"{SCHEDULE}@trigger-go-1")
    ),
    "trigger_schedule-not-found": TriggerReply(**reply("trigger_schedule"), result=Result.SCHEDULE_NOT_FOUND),
    "push-cancel_requested": CancelRequestedPush(
        worker_id=WORKER,
        job_id=JOB,
        attempt=1,
        lease=Sequence(10),
        partition=PARTITION,
        sequence=Sequence(16),
    ),
    "hello": Hello(partition=PARTITION),
    "hello-position": Hello(partition=PARTITION, position=40),
}
"""One answer of each kind."""
