"""Parents and dependents, and what the end of a parent brings about (contract section 3, Dependencies)."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as List

from tidelog.core.decision import Decision
from tidelog.core.state import Job
from tidelog_events.states import DependencyMode, JobState
from tidelog_events.transitions import Cancelled, ParentResolved, Released


def failure_cause(state: JobState) -> str:
    """The terminal cause of a job whose parent ended in that state."""
    return f"parent-failure:{state}"


def first_failure(parents: List[Job], mode: DependencyMode) -> Job | None:
    """The first parent that has ended in a state that the mode does not accept."""
    for parent in parents:
        if _fails(parent.state, mode):
            return parent
    return None


def _fails(parent_state: JobState, mode: DependencyMode) -> bool:
    return (
        mode is DependencyMode.ON_SUCCESS
        and parent_state.is_terminal
        and parent_state is not JobState.SUCCEEDED
    )


def resolve_dependents(decision: Decision, ended: Job) -> None:
    """Resolve all that waits for a job that has just ended, and for what ends by that.

    Breadth first, dependents in the order in which they were enqueued, without recursion: a chain may be
    10,000 jobs long.
    """
    if not ended.waiting:
        return
    parents = deque([ended])
    while parents:
        parent = parents.popleft()
        dependents, parent.waiting = parent.waiting, {}
        for child_id in dependents:
            child = decision.state.jobs[child_id]
            _resolve(decision, child, parent)
            if child.state.is_terminal and child.waiting:
                parents.append(child)


def _resolve(decision: Decision, child: Job, parent: Job) -> None:
    if _fails(parent.state, child.mode):
        decision.emit(
            Cancelled(
                **decision.step_fields(child),
                state=JobState.CANCELLED,
                attempt=child.attempt,
                terminal_at=decision.now,
                terminal_cause=failure_cause(parent.state),
            )
        )
        return
    remaining = child.parents_remaining - 1
    if remaining:
        decision.emit(
            ParentResolved(
                **decision.job_fields(child),
                state=child.state,
                attempt=child.attempt,
                parent_id=parent.job_id,
                parent_state=parent.state,
                parents_remaining=remaining,
            )
        )
        return
    decision.emit(
        Released(
            **decision.step_fields(child),
            state=JobState.SCHEDULED,
            attempt=child.attempt,
            due_time=max(child.due_time, decision.now),
        )
    )
    decision.touch(child.queue)
