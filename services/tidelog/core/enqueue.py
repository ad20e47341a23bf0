"""Enqueue: the checks in their order (contract section 3, Bounds)."""

from __future__ import annotations

from collections.abc import Sequence as List

from tidelog.core.admission import admit, states_of
from tidelog.core.birth import answer, bear, refuse_unknown_parent
from tidelog.core.decision import Decision
from tidelog.core.state import UNKNOWN_PARENT, ParentAnswer
from tidelog_events.bounds import MAX_PARENTS, MAX_PAYLOAD_BYTES, MAX_WIRE_NAME_CHARS
from tidelog_events.commands import Enqueue
from tidelog_events.identity import JobId, QueueName, mint_key
from tidelog_events.replies import Result

Position = tuple[int, ...]
"""Where a command stands in its input: what makes a minted key unique, and the same in every replay."""


def enqueue(decision: Decision, command: Enqueue, position: Position) -> None:
    """Bear a job, or ask after its parents first, or say why not; a refused enqueue leaves no trace."""
    state = decision.state
    parent_ids = command.parents
    refusal = _over_a_bound(command, parent_ids)
    if refusal is not None:
        answer(decision, command, *refusal)
        return
    job_id = command.job_id or _minted_id(decision, command.target_queue, position)
    pending = state.admissions.get(job_id)
    if pending is not None:
        if pending.hold(command):
            state.dirty_admissions[job_id] = None
        else:
            answer(decision, command, Result.DUPLICATE, job_id=job_id)
        return
    known = state.jobs.get(job_id)
    if known is not None:
        same = command.command_id is not None and command.command_id == known.enqueue_command_id
        answer(decision, command, Result.OK if same else Result.DUPLICATE, job_id=job_id)
        return
    if not parent_ids:
        bear(decision, command, job_id, {})
        return
    answers = _ask_here(decision, parent_ids)
    unknown = next((parent_id for parent_id, found in answers.items() if found and not found.state), None)
    if unknown is not None:
        refuse_unknown_parent(decision, command, unknown)
    elif None in answers.values():
        admit(decision, command, job_id, answers)
    else:
        bear(decision, command, job_id, states_of(answers))


def _ask_here(decision: Decision, parent_ids: List[JobId]) -> dict[JobId, ParentAnswer | None]:
    """How the parents are; None for those that only time or another partition can tell."""
    state = decision.state
    answers: dict[JobId, ParentAnswer | None] = {}
    for parent_id in parent_ids:
        parent = state.jobs.get(parent_id)
        if parent is not None:
            answers[parent_id] = ParentAnswer(parent.state, parent.enqueue_sequence)
        elif parent_id in state.admissions or not state.is_home_of(parent_id):
            answers[parent_id] = None
        else:
            answers[parent_id] = UNKNOWN_PARENT
    return answers


def _minted_id(decision: Decision, queue: QueueName, position: Position) -> JobId:
    return JobId(f"{queue}/{mint_key(decision.now, decision.state.partition, *position)}")


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
