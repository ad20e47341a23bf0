"""The parent's side of an edge between partitions: the jobs elsewhere that name a job of here."""

from __future__ import annotations

from typing import Final

from tidelog.core.decision import Decision
from tidelog.core.link import (
    DependentEnded,
    DependentLives,
    LinkMessage,
    LinkParent,
    ParentEnded,
    ParentLinked,
)
from tidelog.core.state import Admission, Edge, Job
from tidelog_events.instants import SECOND, Micros, later

PATIENCE: Final = Micros(30 * SECOND)
"""How long others wait for a pending job to be decided: two of them may have named each other."""


def link_parent(decision: Decision, message: LinkParent, until: int | None) -> None:
    """Answer a link: at once, or when commands up to an offset are handled, or a pending job is decided."""
    state = decision.state
    edge = state.edges[message.edge] = Edge(message)
    state.dirty_edges[message.edge] = None
    parent = state.jobs.get(message.parent_id)
    pending = state.admissions.get(message.parent_id)
    if parent is not None:
        answer_link(decision, edge, parent)
    elif pending is not None:
        pending.edges[message.edge] = edge
        contest(decision, pending)
    elif until is not None:
        edge.until = until
        state.late_edges[message.edge] = edge
    else:
        answer_link(decision, edge, None)


def relink_late(decision: Decision, handled: int) -> None:
    """Answer the links that waited for the commands up to an offset."""
    state = decision.state
    due = [edge for edge in state.late_edges.values() if edge.until is not None and edge.until <= handled]
    for edge in due:
        del state.late_edges[edge.message.edge]
        decision.cause = edge.message.cause_command_id
        link_parent(decision, edge.message, None)


def answer_link(decision: Decision, edge: Edge, parent: Job | None) -> None:
    """Tell a child's partition how its parent is, and keep the parent for as long as the child lives."""
    message = edge.message
    if parent is None:
        del decision.state.edges[message.edge]
    else:
        edge.parent_sequence = parent.enqueue_sequence
        edge.is_awaited = not parent.state.is_terminal
        parent.edges[message.edge] = edge
    decision.state.dirty_edges[message.edge] = None
    decision.messages.append(
        ParentLinked(
            child_id=message.child_id,
            child_partition=message.child_partition,
            admission=message.admission,
            parent_id=message.parent_id,
            cause_command_id=message.cause_command_id,
            state=None if parent is None else parent.state,
            parent_sequence=None if parent is None else parent.enqueue_sequence,
        )
    )


def contest(decision: Decision, pending: Admission) -> None:
    """Somebody waits for a pending job from now on, and not for ever."""
    decision.state.contested.setdefault(pending.job_id, later(decision.now, PATIENCE))
    decision.state.dirty_admissions[pending.job_id] = None


def tell_dependents_elsewhere(decision: Decision, ended: Job) -> None:
    """The partitions of the jobs elsewhere that wait for it resolve them when they hear of its end."""
    for key, edge in ended.edges.items():
        if not edge.is_awaited:
            continue
        edge.is_awaited = False
        decision.state.dirty_edges[key] = None
        decision.messages.append(
            ParentEnded(
                child_id=edge.message.child_id,
                child_partition=edge.message.child_partition,
                admission=edge.message.admission,
                parent_id=ended.job_id,
                cause_command_id=decision.cause,
                state=ended.state,
            )
        )


def dependent_ended(decision: Decision, message: DependentEnded) -> None:
    """A job elsewhere has ended, or was not born: its parent may go, as far as it is concerned."""
    state = decision.state
    if state.edges.pop(message.edge, None) is None:
        return
    state.dirty_edges[message.edge] = None
    parent = state.jobs.get(message.parent_id)
    if parent is not None and parent.edges.pop(message.edge, None) is not None:
        state.let_go(parent)


def dependent_lives(decision: Decision, message: DependentLives) -> None:
    """A job elsewhere was requeued: keep its parent again, if it is still there and still that one."""
    state = decision.state
    parent = state.life(message.parent_id, message.parent_sequence)
    if parent is None:
        return
    edge = Edge(_as_link(message), parent_sequence=parent.enqueue_sequence)
    state.edges[message.edge] = parent.edges[message.edge] = edge
    state.dirty_edges[message.edge] = None


def _as_link(message: LinkMessage) -> LinkParent:
    return LinkParent(
        child_id=message.child_id,
        child_partition=message.child_partition,
        admission=message.admission,
        parent_id=message.parent_id,
        cause_command_id=message.cause_command_id,
    )
