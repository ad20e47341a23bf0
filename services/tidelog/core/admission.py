"""Pending admissions: jobs whose parents live elsewhere, until every parent's partition has answered.

A pending job is not visible and has no transition. What else is asked about its id meanwhile waits for the
outcome: commands, and the links of jobs that name it as a parent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from tidelog.core.birth import bear, refuse_unknown_parent
from tidelog.core.decision import Decision
from tidelog.core.dependency import resolve_parent_elsewhere
from tidelog.core.link import DependentEnded, LinkParent, ParentEnded, ParentLinked
from tidelog.core.linking import answer_link, contest
from tidelog.core.state import UNKNOWN_PARENT, Admission, Job, ParentAnswer, PartitionState
from tidelog_events.commands import Enqueue
from tidelog_events.identity import JobId
from tidelog_events.states import JobState


def states_of(answers: Mapping[JobId, ParentAnswer | None]) -> dict[JobId, JobState]:
    """The states of the parents that are known."""
    return {
        parent_id: answer.state
        for parent_id, answer in answers.items()
        if answer is not None and answer.state is not None
    }


def admit(
    decision: Decision, command: Enqueue, job_id: JobId, answers: dict[JobId, ParentAnswer | None]
) -> None:
    """Begin to ask after the parents that live elsewhere; the others are kept meanwhile."""
    state = decision.state
    admission = Admission(job_id, state.next_admission, command, answers)
    state.next_admission += 1
    state.admissions[job_id] = admission
    state.dirty_admissions[job_id] = None
    for parent_id in answers:
        parent = state.jobs.get(parent_id)
        if parent is not None:
            _hold_parent(admission, parent)
        elif parent_id in state.admissions:
            contest(decision, state.admissions[parent_id])
            state.admissions[parent_id].waiters[job_id] = None
        else:
            edge = decision.edge_fields(job_id, admission.number, parent_id)
            decision.messages.append(LinkParent(**edge))


def parent_linked(decision: Decision, message: ParentLinked) -> None:
    """A parent's partition has answered."""
    admission = decision.state.admissions.get(message.child_id)
    if admission is None or admission.number != message.admission:
        return
    if message.parent_id in admission.answers and admission.answers[message.parent_id] is None:
        answer = ParentAnswer(message.state, message.parent_sequence)
        _answered(decision, admission, message.parent_id, answer)


def parent_ended(decision: Decision, message: ParentEnded) -> None:
    """A parent elsewhere has ended: while the job is pending, or while it waits."""
    state = decision.state
    admission = state.admissions.get(message.child_id)
    if admission is not None and admission.number == message.admission:
        known = admission.answers.get(message.parent_id)
        if known is not None:
            admission.answers[message.parent_id] = ParentAnswer(message.state, known.sequence)
            state.dirty_admissions[admission.job_id] = None
        return
    child = state.jobs.get(message.child_id)
    if child is not None and child.admission == message.admission and message.parent_id in child.open_parents:
        resolve_parent_elsewhere(decision, child, message.parent_id, message.state)


def stop_waiting(decision: Decision) -> None:
    """Tell those that have waited long enough for a pending job that it is unknown."""
    state = decision.state
    for job_id, deadline in list(state.contested.items()):
        if deadline > decision.now:
            return
        if job_id not in state.contested:  # decided by what another one's end has brought about
            continue
        pending = state.admissions[job_id]
        del state.contested[job_id]
        state.dirty_admissions[job_id] = None
        _answer_links(decision, pending, None)
        waiters, pending.waiters = pending.waiters, {}
        for waiter in waiters:
            _answered(decision, state.admissions[waiter], job_id, UNKNOWN_PARENT)


def _answered(decision: Decision, admission: Admission, parent_id: JobId, answer: ParentAnswer) -> None:
    """Take an answer in, and decide what is decided by it: without recursion, for chains may be long."""
    todo = deque([(admission, parent_id, answer)])
    while todo:
        pending, parent_id, answer = todo.popleft()
        pending.answers[parent_id] = answer
        decision.state.dirty_admissions[pending.job_id] = None
        if not pending.is_answered:
            continue
        waiters = list(pending.waiters)
        _settle(decision, pending)
        born = decision.state.jobs.get(pending.job_id)
        outcome = UNKNOWN_PARENT if born is None else ParentAnswer(born.state, born.enqueue_sequence)
        for waiter in waiters:
            waiting = decision.state.admissions[waiter]
            if born is not None:
                _hold_parent(waiting, born)
            todo.append((waiting, pending.job_id, outcome))


def _settle(decision: Decision, admission: Admission) -> None:
    """All parents are known, or one is not there: bear the job, or refuse it; then serve who waited."""
    state = decision.state
    decision.cause = admission.command.command_id
    answers = _with_present_states(state, admission.answers)
    unknown = next((parent_id for parent_id, answer in answers.items() if answer.state is None), None)
    if unknown is None:
        bear(decision, admission.command, admission.job_id, states_of(answers))
    else:
        refuse_unknown_parent(decision, admission.command, unknown)
        _forget_edges(decision, admission, answers)
    _let_go_of_parents(state, admission)
    del state.admissions[admission.job_id]
    state.contested.pop(admission.job_id, None)
    state.dirty_admissions[admission.job_id] = None
    _answer_links(decision, admission, state.jobs.get(admission.job_id))
    decision.released.extend(admission.held)


def _with_present_states(
    state: PartitionState, answers: Mapping[JobId, ParentAnswer | None]
) -> dict[JobId, ParentAnswer]:
    """The answers, with parents of this partition as they are by now."""
    present: dict[JobId, ParentAnswer] = {}
    for parent_id, answer in answers.items():
        parent = state.jobs.get(parent_id)
        if parent is not None:
            present[parent_id] = ParentAnswer(parent.state, parent.enqueue_sequence)
        else:
            present[parent_id] = UNKNOWN_PARENT if answer is None else answer
    return present


def _hold_parent(admission: Admission, parent: Job) -> None:
    """Keep a parent of this partition as long as the job is pending; born, it keeps it by itself."""
    admission.held_parents[parent.job_id] = None
    parent.open_dependents += 1


def _let_go_of_parents(state: PartitionState, admission: Admission) -> None:
    for parent_id in admission.held_parents:
        parent = state.jobs[parent_id]
        parent.open_dependents -= 1
        state.let_go(parent)


def _forget_edges(decision: Decision, admission: Admission, answers: Mapping[JobId, ParentAnswer]) -> None:
    """The job is not born: its parents elsewhere need not be kept for it."""
    for parent_id, answer in answers.items():
        if answer.state is not None and not decision.state.is_home_of(parent_id):
            edge = decision.edge_fields(admission.job_id, admission.number, parent_id)
            decision.messages.append(DependentEnded(**edge))


def _answer_links(decision: Decision, pending: Admission, parent: Job | None) -> None:
    edges, pending.edges = pending.edges, {}
    for edge in edges.values():
        answer_link(decision, edge, parent)
