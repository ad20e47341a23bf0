"""The life of one job, event by event: its steps, its numbers, its leases and what ended each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidelog_events.identity import JobId
from tidelog_events.identity import Sequence as LeaseNumber
from tidelog_events.instants import Instant
from tidelog_events.states import LEGAL_STEPS, JobState
from tidelog_events.transitions import (
    DeadLettered,
    JobFact,
    JobTransition,
    Leased,
    LeaseExpired,
    LeaseRenewed,
    Quarantined,
    Requeued,
    RetryScheduled,
    Returned,
    Succeeded,
)

_ENDS_A_LEASE: Final = (Succeeded, RetryScheduled, DeadLettered, Quarantined, Returned, LeaseExpired)
"""Events that can be nothing but the end of a lease, whatever state they find."""

Problem = str
"""A rule that was broken, by whom and where, for people."""


@dataclass(slots=True)
class Lease:
    """A lease, from its event to the one that ended it."""

    granted: Leased
    expiry: Instant
    ended_by: list[JobTransition] = field(default_factory=list)

    @property
    def number(self) -> LeaseNumber:
        return self.granted.sequence


@dataclass(slots=True)
class Life:
    """What was found out about a job."""

    job_id: JobId
    facts: Sequence[JobFact]
    leases: list[Lease] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    @property
    def state(self) -> JobState:
        """The last one."""
        return self.facts[-1].state

    @property
    def outcomes(self) -> Counter[str]:
        """What ended its leases, by type of event."""
        return Counter(end.TYPE for lease in self.leases for end in lease.ended_by)


def examine(job_id: JobId, facts: Sequence[JobFact]) -> Life:
    """Go through the life of a job."""
    life = Life(job_id, facts)
    state: JobState | None = None
    ordinal = attempt = 0
    for fact in facts:
        found = _problems_of_a_step(fact, state, ordinal, attempt)
        life.problems += [f"{job_id}, {_where(fact)}: {problem}" for problem in found]
        life.problems += [
            f"{job_id}, {_where(fact)}: {problem}" for problem in _follow_lease(life, state, fact)
        ]
        if isinstance(fact, JobTransition):
            ordinal += 1
        state, attempt = fact.state, fact.attempt
    life.problems += [
        f"{job_id}: lease {lease.number} has {len(lease.ended_by)} applied outcomes"
        for lease in life.leases
        if len(lease.ended_by) > 1
    ]
    return life


def _problems_of_a_step(
    fact: JobFact, state: JobState | None, ordinal: int, attempt: int
) -> Iterator[Problem]:
    match fact:
        case Leased():
            due = attempt + 1
        case Requeued():
            due = 0
        case _:
            due = attempt
    if fact.attempt != due:
        yield f"attempt {fact.attempt} where {due} was due"
    if not isinstance(fact, JobTransition):
        if fact.state is not state:
            yield f"a fact changed the state from {state} to {fact.state}"
        return
    if (state, fact.state) not in LEGAL_STEPS:
        yield f"an illegal step from {state} to {fact.state}"
    if fact.ordinal != ordinal:
        yield f"ordinal {fact.ordinal} where {ordinal} was due"


def _follow_lease(life: Life, state: JobState | None, fact: JobFact) -> Iterator[Problem]:
    lease = life.leases[-1] if life.leases else None
    is_live = lease is not None and not lease.ended_by
    if isinstance(fact, Leased):
        if is_live:
            yield "a lease was granted while another one was live"
        if fact.lease_expiry <= fact.at:
            yield "a lease was granted that had run out"
        life.leases.append(Lease(fact, fact.lease_expiry))
        return
    is_end = isinstance(fact, JobTransition) and (state is JobState.LEASED or isinstance(fact, _ENDS_A_LEASE))
    if not is_end and not isinstance(fact, LeaseRenewed):
        return
    if lease is None:
        yield "there never was a lease"
        return
    owner = getattr(fact, "worker_id", None)
    if owner is not None and owner != lease.granted.worker_id:
        yield f"{owner} acted on a lease of {lease.granted.worker_id}"
    if isinstance(fact, LeaseExpired):
        if fact.at < lease.expiry:
            yield "a lease expired before its time"
    elif owner is not None and fact.at >= lease.expiry:
        yield "an outcome or a heartbeat counted after the lease had run out"
    if isinstance(fact, LeaseRenewed):
        if not is_live:
            yield "a lease that was over was renewed"
        lease.expiry = fact.lease_expiry
    elif isinstance(fact, JobTransition):
        lease.ended_by.append(fact)


def _where(fact: JobFact) -> str:
    return f"{fact.TYPE} at {fact.partition}:{fact.sequence}"
