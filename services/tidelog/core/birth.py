"""The birth of a job below its parents, and the answer to the enqueue (contract section 3, Birth)."""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.core.decision import Decision
from tidelog.core.dependency import failure_cause, first_failure
from tidelog_events.commands import Enqueue
from tidelog_events.identity import JobId
from tidelog_events.replies import EnqueueReply, Result
from tidelog_events.states import JobState
from tidelog_events.transitions import Enqueued


def bear(decision: Decision, command: Enqueue, job_id: JobId, parents: Mapping[JobId, JobState]) -> None:
    """Bear a job whose parents are known, and say so.

    Args:
        decision: in the making.
        command: checked against the bounds.
        job_id: not in use.
        parents: the states of its parents, in the order of the command.
    """
    failed = first_failure(parents.values(), command.mode) if parents else None
    open_parents = sum(not state.is_terminal for state in parents.values()) if parents else 0
    if failed is not None:
        state = JobState.CANCELLED
    elif open_parents:
        state = JobState.AWAITING_PARENT
    else:
        state = JobState.SCHEDULED
    queue = command.target_queue
    # Named one by one, and not by `event_fields`, which takes half as long again: it is the event of which
    # most are made.
    decision.emit(
        Enqueued(
            at=decision.now,
            partition=decision.state.partition,
            sequence=decision.state.sequence,
            cause_command_id=decision.cause,
            actor=command.actor,
            job_id=job_id,
            queue=queue,
            wire_name=command.wire_name,
            ordinal=0,
            state=state,
            attempt=0,
            payload=command.payload,
            due_time=decision.now if command.due_time is None else command.due_time,
            parents=tuple(parents),
            mode=command.mode,
            parents_remaining=open_parents if failed is None else 0,
            tags=command.tags,
            retry=command.retry_policy,
            trace_context=command.trace_context,
            workflow_id=command.workflow_id,
            schedule_id=command.schedule_id,
            terminal_at=None if failed is None else decision.now,
            terminal_cause=None if failed is None else failure_cause(failed),
        )
    )
    if state is JobState.SCHEDULED:
        decision.touch(queue)
    answer(decision, command, Result.OK, job_id=job_id)


def refuse_unknown_parent(decision: Decision, command: Enqueue, parent_id: JobId) -> None:
    """Answer an enqueue that names a job which does not exist."""
    answer(decision, command, Result.UNKNOWN_PARENT, f"there is no job {parent_id} to be a parent")


def answer(
    decision: Decision,
    command: Enqueue,
    result: Result,
    message: str | None = None,
    *,
    job_id: JobId | None = None,
) -> None:
    """Answer an enqueue."""
    decision.answer(
        command.reply_to,
        EnqueueReply(
            command_id=command.command_id,
            type=command.type,
            result=result,
            partition=decision.state.partition,
            sequence=decision.state.last_sequence,
            job_id=job_id,
            message=message,
        ),
    )
