"""Enqueue: the checks in their order, and the birth of a job (contract section 3, Bounds and Birth)."""

from __future__ import annotations

from collections.abc import Sequence as List

from tidelog.core.decision import Decision
from tidelog.core.dependency import failure_cause, first_failure
from tidelog.core.state import Job
from tidelog_events.bounds import MAX_PARENTS, MAX_PAYLOAD_BYTES, MAX_WIRE_NAME_CHARS
from tidelog_events.commands import Enqueue
from tidelog_events.identity import JobId, QueueName, mint_key, partition_of, queue_of
from tidelog_events.replies import EnqueueReply, InvalidReply, Result
from tidelog_events.states import JobState
from tidelog_events.transitions import Enqueued

Position = tuple[int, ...]
"""Where a command stands in its input: what makes a minted key unique, and the same in every replay."""


def enqueue(decision: Decision, command: Enqueue, position: Position) -> None:
    """Bear a job, or say why not; a refused enqueue leaves no trace."""
    parent_ids = tuple(dict.fromkeys(command.parents))
    foreign = _foreign_parent(decision, command, parent_ids)
    if foreign is not None:
        decision.answer(command.reply_to, foreign)
        return
    refusal = _over_a_bound(command, parent_ids)
    if refusal is not None:
        _answer(decision, command, *refusal)
        return
    queue = command.target_queue
    job_id = command.job_id or _minted_id(decision, queue, position)
    known = decision.state.jobs.get(job_id)
    if known is not None:
        same = command.command_id is not None and command.command_id == known.enqueue_command_id
        _answer(decision, command, Result.OK if same else Result.DUPLICATE, job_id=job_id)
        return
    parents: list[Job] = []
    for parent_id in parent_ids:
        parent = decision.state.jobs.get(parent_id)
        if parent is None:
            _answer(decision, command, Result.UNKNOWN_PARENT, f"there is no job {parent_id} to be a parent")
            return
        parents.append(parent)
    _bear(decision, command, job_id, parents)
    _answer(decision, command, Result.OK, job_id=job_id)


def _minted_id(decision: Decision, queue: QueueName, position: Position) -> JobId:
    return JobId(f"{queue}/{mint_key(decision.now, decision.state.partition, *position)}")


def _foreign_parent(decision: Decision, command: Enqueue, parent_ids: List[JobId]) -> InvalidReply | None:
    """The refusal of a parent that another partition decides about."""
    state = decision.state
    for parent_id in parent_ids:
        home = partition_of(queue_of(parent_id), state.partitions)
        if home != state.partition:
            index = command.parents.index(parent_id)
            return InvalidReply(
                command_id=command.command_id,
                type=command.type,
                result=Result.INVALID,
                partition=state.partition,
                sequence=state.last_sequence,
                field=f"parents[{index}]",
                message=(
                    f"parents[{index}]: {parent_id} lives in partition {home} and this job in partition "
                    f"{state.partition}; give both the same queue, or run with one partition"
                ),
            )
    return None


def _over_a_bound(command: Enqueue, parent_ids: List[JobId]) -> tuple[Result, str] | None:
    size = len(command.payload)
    if size > MAX_PAYLOAD_BYTES:
        return (
            Result.PAYLOAD_TOO_LARGE,
            f"the payload is {size} bytes of compact JSON; at most {MAX_PAYLOAD_BYTES} are allowed",
        )
    length = len(command.wire_name)
    if length > MAX_WIRE_NAME_CHARS:
        return (
            Result.WIRE_NAME_TOO_LONG,
            f"the wire name has {length} characters; at most {MAX_WIRE_NAME_CHARS} are allowed",
        )
    if len(parent_ids) > MAX_PARENTS:
        return (
            Result.TOO_MANY_PARENTS,
            f"the job names {len(parent_ids)} distinct parents; at most {MAX_PARENTS} are allowed",
        )
    return None


def _bear(decision: Decision, command: Enqueue, job_id: JobId, parents: List[Job]) -> None:
    failed = first_failure(parents, command.mode)
    open_parents = sum(not parent.state.is_terminal for parent in parents)
    if failed is not None:
        state = JobState.CANCELLED
    elif open_parents:
        state = JobState.AWAITING_PARENT
    else:
        state = JobState.SCHEDULED
    queue = command.target_queue
    decision.emit(
        Enqueued(
            **decision.event_fields(),
            actor=command.actor,
            job_id=job_id,
            queue=queue,
            wire_name=command.wire_name,
            ordinal=0,
            state=state,
            attempt=0,
            payload=command.payload,
            due_time=decision.now if command.due_time is None else command.due_time,
            parents=tuple(parent.job_id for parent in parents),
            mode=command.mode,
            parents_remaining=open_parents if failed is None else 0,
            tags=command.tags,
            retry=command.retry_policy,
            trace_context=command.trace_context,
            workflow_id=command.workflow_id,
            schedule_id=command.schedule_id,
            terminal_at=None if failed is None else decision.now,
            terminal_cause=None if failed is None else failure_cause(failed.state),
        )
    )
    if state is JobState.SCHEDULED:
        decision.touch(queue)


def _answer(
    decision: Decision,
    command: Enqueue,
    result: Result,
    message: str | None = None,
    *,
    job_id: JobId | None = None,
) -> None:
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
