"""What operators do: cancel, requeue, pause, resume, limit (contract section 3)."""

from __future__ import annotations

from tidelog.core.decision import Decision
from tidelog.core.dependency import resolve_dependents
from tidelog.core.outcome import OPERATOR_CANCEL
from tidelog.core.state import Job
from tidelog_events.commands import Cancel, PauseQueue, Requeue, ResumeQueue, SetConcurrencyLimit
from tidelog_events.replies import CancelRequestedPush, Result
from tidelog_events.states import REQUEUEABLE_STATES, JobState
from tidelog_events.transitions import (
    Cancelled,
    CancelRequested,
    ConcurrencyLimitSet,
    QueuePaused,
    QueueResumed,
    Requeued,
)


def cancel(decision: Decision, command: Cancel) -> None:
    """End a job that is not running; ask the worker of one that is; a job that has ended is left alone."""
    pending = decision.state.admissions.get(command.job_id)
    if pending is not None:
        if pending.hold(command):
            decision.state.dirty_admissions[command.job_id] = None
        else:
            decision.reply(command, Result.NOT_CANCELLABLE)
        return
    job = decision.state.jobs.get(command.job_id)
    if job is None or job.state.is_terminal:
        decision.reply(command, Result.NOT_CANCELLABLE)
    elif job.state is JobState.LEASED:
        _request_cancellation(decision, command, job)
    else:
        decision.emit(
            Cancelled(
                **decision.step_fields(job),
                actor=command.actor,
                state=JobState.CANCELLED,
                attempt=job.attempt,
                terminal_at=decision.now,
                terminal_cause=OPERATOR_CANCEL if command.actor is None else command.actor,
            )
        )
        resolve_dependents(decision, job)
        decision.reply(command, Result.CANCELLED_IMMEDIATELY)


def _request_cancellation(decision: Decision, command: Cancel, job: Job) -> None:
    decision.emit(
        CancelRequested(**decision.job_fields(job), actor=command.actor, state=job.state, attempt=job.attempt)
    )
    decision.reply(command, Result.CANCELLATION_REQUESTED)
    if job.lease_owner is None or job.lease is None:
        raise ValueError(f"{job.job_id} is leased, but to nobody")
    decision.answer(
        job.lease_reply_to,
        CancelRequestedPush(
            worker_id=job.lease_owner,
            job_id=job.job_id,
            attempt=job.attempt,
            lease=job.lease,
            partition=decision.state.partition,
            sequence=decision.state.last_sequence,
        ),
    )


def requeue(decision: Decision, command: Requeue) -> None:
    """Start a dead-lettered or quarantined job again."""
    job = decision.state.jobs.get(command.job_id)
    if job is None or job.state not in REQUEUEABLE_STATES:
        decision.reply(command, Result.NOT_REQUEUEABLE)
        return
    decision.emit(
        Requeued(
            **decision.step_fields(job),
            actor=command.actor,
            state=JobState.SCHEDULED,
            attempt=0,
            due_time=decision.now,
        )
    )
    decision.touch(job.queue)
    decision.reply(command, Result.REQUEUED)


def pause_queue(decision: Decision, command: PauseQueue) -> None:
    """Withhold the queue's work from claims; what is leased goes on."""
    decision.emit(QueuePaused(**decision.event_fields(), actor=command.actor, queue=command.queue))
    decision.reply(command, Result.OK)


def resume_queue(decision: Decision, command: ResumeQueue) -> None:
    """Give the queue's work to claims again."""
    decision.emit(QueueResumed(**decision.event_fields(), actor=command.actor, queue=command.queue))
    decision.touch(command.queue)
    decision.reply(command, Result.OK)


def set_concurrency_limit(decision: Decision, command: SetConcurrencyLimit) -> None:
    """Bound the leases of a queue; what is over a lowered bound may only shrink."""
    decision.emit(
        ConcurrencyLimitSet(
            **decision.event_fields(), actor=command.actor, queue=command.queue, limit=command.limit
        )
    )
    decision.touch(command.queue)
    decision.reply(command, Result.OK)
