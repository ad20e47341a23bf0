"""The lease fence, heartbeats, and leases that expire (contract section 3, Fence and Lease expiry)."""

from __future__ import annotations

from tidelog.core.decision import Decision
from tidelog.core.dependency import resolve_dependents
from tidelog.core.pieces import in_pieces
from tidelog.core.state import Job
from tidelog_events.commands import Heartbeat, LeaseRow
from tidelog_events.identity import WorkerId
from tidelog_events.instants import later
from tidelog_events.replies import HeartbeatReply, LeaseAnswer, Result
from tidelog_events.states import JobState
from tidelog_events.transitions import LeaseExpired, LeaseRenewed

# Of a row: field names and two booleans.
_ANSWER_FRAME_BYTES = 64


def held_job(decision: Decision, worker_id: WorkerId, row: LeaseRow) -> Job | None:
    """The fence: the job, if this worker holds it now, at this attempt and under this lease; else None."""
    job = decision.state.jobs.get(row.job_id)
    if (
        job is None
        or job.state is not JobState.LEASED
        or job.lease_owner != worker_id
        or job.attempt != row.attempt
        or (row.lease is not None and row.lease != job.lease)
        or job.lease_expiry is None
        or job.lease_expiry <= decision.now
    ):
        return None
    return job


def heartbeat(decision: Decision, command: Heartbeat) -> None:
    """Renew the leases that the worker holds, from now on; the others are told apart and left alone."""
    expiry = later(decision.now, command.lease_seconds)
    answers: list[LeaseAnswer] = []
    for row in command.leases:
        job = held_job(decision, command.worker_id, row)
        if job is not None:
            decision.emit(
                LeaseRenewed(
                    **decision.job_fields(job),
                    actor=command.actor,
                    state=job.state,
                    attempt=job.attempt,
                    worker_id=command.worker_id,
                    lease_expiry=expiry,
                )
            )
        answers.append(
            LeaseAnswer(
                job_id=row.job_id,
                renewed=job is not None,
                cancel_requested=job is not None and job.cancel_requested,
            )
        )
    pieces = in_pieces(answers, _size)
    for number, piece in enumerate(pieces, 1):
        decision.answer(
            command.reply_to,
            HeartbeatReply(
                command_id=command.command_id,
                type=command.type,
                result=Result.OK,
                partition=decision.state.partition,
                sequence=decision.state.last_sequence,
                leases=tuple(piece),
                more=True if number < len(pieces) else None,
            ),
        )


def _size(answer: LeaseAnswer) -> int:
    return _ANSWER_FRAME_BYTES + len(answer.job_id)


def expire_leases(decision: Decision, limit: int) -> None:
    """Take jobs back from workers that fell silent: retry after the delay, or dead-letter at the ceiling."""
    for job in decision.state.due_leases(decision.now, limit):
        if job.lease_owner is None:
            raise ValueError(f"{job.job_id} has a lease that expires, but no owner")
        exhausted = job.retry.is_exhausted(job.charged)
        decision.emit(
            LeaseExpired(
                **decision.step_fields(job),
                state=JobState.DEAD_LETTERED if exhausted else JobState.SCHEDULED,
                attempt=job.attempt,
                worker_id=job.lease_owner,
                due_time=None if exhausted else later(decision.now, job.retry.delay_after(job.charged)),
                terminal_at=decision.now if exhausted else None,
                terminal_cause=(
                    f"Lease expired on attempt {job.attempt} (attempt ceiling reached)."
                    if exhausted
                    else None
                ),
            )
        )
        decision.touch(job.queue)
        if exhausted:
            resolve_dependents(decision, job)
