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
    # Field by field, and not by a call with as many keywords, which takes six times as long: it is the event
    # of which most are made.
    event = Enqueued.__new__(Enqueued)
    event.at = decision.now
    event.partition = decision.state.partition
    event.sequence = decision.state.sequence
    event.cause_command_id = decision.cause
    event.actor = command.actor
    event.job_id = job_id
    event.queue = queue
    event.wire_name = command.wire_name
    event.ordinal = 0
    event.state = state
    event.attempt = 0
    event.payload = command.payload
    event.due_time = decision.now if command.due_time is None else command.due_time
    event.parents = tuple(parents)
    event.mode = command.mode
    event.parents_remaining = open_parents if failed is None else 0
    event.tags = command.tags
    event.retry = command.retry_policy
    event.trace_context = command.trace_context
    event.workflow_id = command.workflow_id
    event.schedule_id = command.schedule_id
    event.terminal_at = None if failed is None else decision.now
    event.terminal_cause = None if failed is None else failure_cause(failed)
    decision.emit(event)
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
