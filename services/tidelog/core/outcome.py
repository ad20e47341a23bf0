"""Outcomes of attempts: what a report of the lease holder leads to (contract section 3)."""

from __future__ import annotations

from typing import assert_never

from tidelog.core.decision import Decision
from tidelog.core.dependency import resolve_dependents
from tidelog.core.lease import held_job
from tidelog.core.state import Job
from tidelog_events.bounds import MAX_OUTPUT_BYTES
from tidelog_events.commands import (
    CancelledOutcome,
    Failure,
    Outcome,
    Report,
    ReturnedOutcome,
    Success,
    Unroutable,
)
from tidelog_events.instants import Instant, later
from tidelog_events.replies import ReportReply, Result, RowResult
from tidelog_events.states import JobState
from tidelog_events.transitions import (
    Cancelled,
    DeadLettered,
    Quarantined,
    RetryScheduled,
    Returned,
    Succeeded,
)

OPERATOR_CANCEL = "operator-cancel"
"""The cause of a cancellation that names nobody."""


def report(decision: Decision, command: Report) -> None:
    """Apply the rows in their order, each by itself, each followed by its cascade."""
    results = tuple(_apply(decision, command, row) for row in command.outcomes)
    decision.answer(
        command.reply_to,
        ReportReply(
            command_id=command.command_id,
            type=command.type,
            result=Result.OK,
            partition=decision.state.partition,
            sequence=decision.state.last_sequence,
            results=results,
        ),
    )


def _apply(decision: Decision, command: Report, row: Outcome) -> RowResult:
    job = held_job(decision, command.worker_id, row)
    if job is None:
        return RowResult.STALE_LEASE
    match row:
        case Success():
            if len(row.output) > MAX_OUTPUT_BYTES:
                return RowResult.OUTPUT_TOO_LARGE
            _succeed(decision, job, row, command)
        case Failure():
            _fail(decision, job, row, command)
        case CancelledOutcome():
            _cancel(decision, job, row, command)
        case Unroutable():
            _quarantine(decision, job, row, command)
        case ReturnedOutcome():
            _return(decision, job, command)
        case _:
            assert_never(row)
    decision.touch(job.queue)
    if job.state.is_terminal:
        resolve_dependents(decision, job)
    return RowResult.APPLIED


def _succeed(decision: Decision, job: Job, row: Success, command: Report) -> None:
    decision.emit(
        Succeeded(
            **decision.step_fields(job),
            actor=command.actor,
            worker_id=command.worker_id,
            state=JobState.SUCCEEDED,
            attempt=job.attempt,
            output=row.output,
            add_tags=row.add_tags,
            terminal_at=decision.now,
        )
    )


def _retry_at(decision: Decision, job: Job, row: Failure) -> Instant | None:
    """When the failed attempt is tried again; None when there is no other try."""
    if not row.follows_policy:
        return row.next_due
    if job.retry.is_exhausted(job.charged):
        return None
    return later(decision.now, job.retry.delay_after(job.charged))


def _fail(decision: Decision, job: Job, row: Failure, command: Report) -> None:
    due = _retry_at(decision, job, row)
    if due is None:
        decision.emit(
            DeadLettered(
                **decision.step_fields(job),
                actor=command.actor,
                worker_id=command.worker_id,
                state=JobState.DEAD_LETTERED,
                attempt=job.attempt,
                error=row.error,
                failure_detail=row.failure_detail,
                add_tags=row.add_tags,
                terminal_at=decision.now,
                terminal_cause=row.error,
            )
        )
    else:
        decision.emit(
            RetryScheduled(
                **decision.step_fields(job),
                actor=command.actor,
                worker_id=command.worker_id,
                state=JobState.SCHEDULED,
                attempt=job.attempt,
                due_time=due,
                error=row.error,
                failure_detail=row.failure_detail,
                add_tags=row.add_tags,
            )
        )


def _cancel(decision: Decision, job: Job, row: CancelledOutcome, command: Report) -> None:
    decision.emit(
        Cancelled(
            **decision.step_fields(job),
            actor=command.actor,
            worker_id=command.worker_id,
            state=JobState.CANCELLED,
            attempt=job.attempt,
            terminal_at=decision.now,
            terminal_cause=OPERATOR_CANCEL if row.cause is None else row.cause,
        )
    )


def _quarantine(decision: Decision, job: Job, row: Unroutable, command: Report) -> None:
    decision.emit(
        Quarantined(
            **decision.step_fields(job),
            actor=command.actor,
            worker_id=command.worker_id,
            state=JobState.QUARANTINED,
            attempt=job.attempt,
            terminal_at=decision.now,
            terminal_cause=row.reason,
        )
    )


def _return(decision: Decision, job: Job, command: Report) -> None:
    decision.emit(
        Returned(
            **decision.step_fields(job),
            actor=command.actor,
            worker_id=command.worker_id,
            state=JobState.SCHEDULED,
            attempt=job.attempt,
            due_time=decision.now,
        )
    )
