"""Parents and dependents, and what the end of a parent brings about (contract section 3, Dependencies)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from tidelog.core.decision import Decision
from tidelog.core.linking import tell_dependents_elsewhere
from tidelog.core.state import Job
from tidelog_events.identity import JobId
from tidelog_events.states import DependencyMode, JobState
from tidelog_events.transitions import Cancelled, ParentResolved, Released


def failure_cause(state: JobState) -> str:
    """The terminal cause of a job whose parent ended in that state."""
    return f"parent-failure:{state}"


def first_failure(parent_states: Iterable[JobState], mode: DependencyMode) -> JobState | None:
    """The state of the first parent that has ended in one that the mode does not accept."""
    return next((state for state in parent_states if _fails(state, mode)), None)


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
    parents = deque([ended])
    while parents:
        parent = parents.popleft()
        tell_dependents_elsewhere(decision, parent)
        dependents, parent.waiting = parent.waiting, {}
        for child_id in dependents:
            child = decision.state.jobs[child_id]
            _resolve(decision, child, parent.job_id, parent.state)
            if child.state.is_terminal:
                parents.append(child)


def resolve_parent_elsewhere(
    decision: Decision, child: Job, parent_id: JobId, parent_state: JobState
) -> None:
    """A parent of another partition has ended: resolve the job that waits for it, and what ends by that."""
    _resolve(decision, child, parent_id, parent_state)
    if child.state.is_terminal:
        resolve_dependents(decision, child)


def _resolve(decision: Decision, child: Job, parent_id: JobId, parent_state: JobState) -> None:
    if _fails(parent_state, child.mode):
        decision.emit(
            Cancelled(
                **decision.step_fields(child),
                state=JobState.CANCELLED,
                attempt=child.attempt,
                terminal_at=decision.now,
                terminal_cause=failure_cause(parent_state),
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
                parent_id=parent_id,
                parent_state=parent_state,
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
