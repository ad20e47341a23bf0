"""The audit of a run: what must hold of the log, of the handlers' journal and of Postgres, whatever happened.

It is made from what stands there at the end, and takes nobody's word for it but the contract's.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.torture.deliveries import problems_of_deliveries
from tests.torture.evidence import Evidence
from tests.torture.fold import expected_parents, expected_row, expected_steps, expected_tags
from tests.torture.jobs import expected_end
from tests.torture.journal import Ending, Run
from tests.torture.lives import Life, Problem, examine
from tests.torture.ticks import minted_by, problems_of_ticks

from tidelog_events.bounds import MAX_HISTORY_ROWS
from tidelog_events.identity import JobId, Partition, partition_of, queue_of
from tidelog_events.states import TERMINAL_STATES
from tidelog_events.transitions import (
    DeadLettered,
    Enqueued,
    JobFact,
    JobTransition,
    Purged,
    RetryScheduled,
    ScheduleTicked,
    Succeeded,
    Transition,
)

_ENDING_OF: Mapping[type[JobTransition], Ending] = {
    Succeeded: Ending.RETURNED,
    RetryScheduled: Ending.RAISED,
    DeadLettered: Ending.RAISED,
}
"""What the handler must have done for an outcome that a worker reported."""


@dataclass(frozen=True, slots=True)
class Audit:
    """What an audit counted, by name, and every rule that it found broken."""

    counts: Mapping[str, int]
    problems: Sequence[Problem]


def audit(evidence: Evidence) -> Audit:
    """Audit a run."""
    lives = {job_id: examine(job_id, facts) for job_id, facts in _facts_by_job(evidence).items()}
    problems = [
        *_problems_of_positions(evidence),
        *(problem for events in evidence.events.values() for problem in problems_of_ticks(events)),
        *(problem for life in lives.values() for problem in life.problems),
        *_problems_of_jobs(evidence, lives),
        *_problems_of_parents(lives),
        *_problems_of_runs(evidence.runs, lives),
        *problems_of_deliveries(evidence.events, evidence.deliveries),
        *_problems_of_rows(evidence, lives),
        *_problems_of_depths(evidence, lives),
    ]
    return Audit(_counts(evidence, lives), problems)


def _facts_by_job(evidence: Evidence) -> dict[JobId, list[JobFact]]:
    facts: defaultdict[JobId, list[JobFact]] = defaultdict(list)
    for events in evidence.events.values():
        for event in events:
            if isinstance(event, JobFact):
                facts[event.job_id].append(event)
    return facts


def _problems_of_positions(evidence: Evidence) -> Iterator[Problem]:
    for partition, events in evidence.events.items():
        for position, event in enumerate(events):
            if (event.partition, event.sequence) != (partition, position):
                yield (
                    f"partition {partition}: the event at position {position} says that it is "
                    f"{event.partition}:{event.sequence}"
                )
            if isinstance(event, JobFact) and partition_of(event.queue, evidence.partitions) != partition:
                yield f"partition {partition}: {event.job_id} does not live here"
            if isinstance(event, Purged):
                yield f"{event.job_id} was purged within its retention"
        yield from _problems_of_time(partition, events)


def _problems_of_time(partition: Partition, events: Sequence[Transition]) -> Iterator[Problem]:
    for earlier, later in pairwise(events):
        if later.at < earlier.at:
            yield f"partition {partition}: time goes back at event {later.sequence}"


def _problems_of_jobs(evidence: Evidence, lives: Mapping[JobId, Life]) -> Iterator[Problem]:
    for job_id in sorted(evidence.acknowledged - lives.keys()):
        yield f"{job_id} was acknowledged and is not in the log"
    minted = [job_id for events in evidence.events.values() for job_id in minted_by(events)]
    for job_id, count in Counter(minted).items():
        if count > 1:
            yield f"{job_id} was minted {count} times"
    for job_id in sorted(set(minted) - lives.keys()):
        yield f"{job_id} was minted and is not in the log"
    for job_id in sorted(lives.keys() - evidence.sent - set(minted)):
        yield f"{job_id} is in the log and nobody has sent it"
    for job_id, life in lives.items():
        wanted = expected_end(job_id)
        if life.state is not wanted:
            yield f"{job_id} ended as {life.state}, not as {wanted}"


def _problems_of_parents(lives: Mapping[JobId, Life]) -> Iterator[Problem]:
    """A job runs only once all its parents have ended: by the log's order, or by time between partitions."""
    for job_id, life in lives.items():
        birth = life.facts[0]
        if not isinstance(birth, Enqueued) or not life.leases:
            continue
        for parent_id in birth.parents:
            parent = lives.get(parent_id)
            if parent is None:
                yield f"{job_id} waited for {parent_id}, which is not in the log"
            elif _was_before(life.leases[0].granted, parent.facts[-1]):
                yield f"{job_id} was leased before its parent {parent_id} had ended"


def _was_before(event: JobFact, other: JobFact) -> bool:
    """Whether an event was written before another one; in two partitions their engines' clock is one."""
    if event.partition == other.partition:
        return event.sequence < other.sequence
    return event.at < other.at


def _problems_of_runs(runs: Sequence[Run], lives: Mapping[JobId, Life]) -> Iterator[Problem]:
    """No handler runs without a lease, none twice for one, and no outcome is reported without a handler."""
    by_lease: defaultdict[tuple[JobId, int], list[Run]] = defaultdict(list)
    for run in runs:
        by_lease[run.job_id, run.attempt].append(run)
    leases = {
        (job_id, lease.granted.attempt): lease for job_id, life in lives.items() for lease in life.leases
    }
    for (job_id, attempt), of_lease in by_lease.items():
        lease = leases.get((job_id, attempt))
        if lease is None:
            yield f"{job_id}: a handler ran attempt {attempt}, of which the log has no lease"
            continue
        if len(of_lease) > 1:
            yield f"{job_id}: {len(of_lease)} handlers ran attempt {attempt}"
        for run in of_lease:
            if f"-{run.pid}-" not in lease.granted.worker_id:
                yield f"{job_id}: process {run.pid} ran a lease of {lease.granted.worker_id}"
    for (job_id, attempt), lease in leases.items():
        endings = {run.ending for run in by_lease.get((job_id, attempt), ())}
        for end in lease.ended_by:
            wanted = _ENDING_OF.get(type(end))
            if wanted is not None and wanted not in endings:
                yield f"{job_id}: attempt {attempt} is {end.TYPE}, and no handler has {wanted}"
            if isinstance(end, Succeeded) and end.output != str(attempt).encode():
                yield f"{job_id}: attempt {attempt} returned its number, and the output is {end.output!r}"


def _problems_of_rows(evidence: Evidence, lives: Mapping[JobId, Life]) -> Iterator[Problem]:
    for job_id in sorted(evidence.rows.keys() - lives.keys()):
        yield f"{job_id} is in Postgres and not in the log"
    for job_id, life in lives.items():
        row = evidence.rows.get(job_id)
        if row is None:
            yield f"{job_id} is not in Postgres"
            continue
        if not isinstance(life.facts[0], Enqueued):
            continue  # which is a problem of its life
        for column, value in expected_row(life.facts).items():
            if row[column] != value:
                yield f"{job_id} in Postgres: {column} is {row[column]!r}, and by the log {value!r}"
        for what, stored, expected in (
            ("steps", evidence.steps, expected_steps(life.facts)[-MAX_HISTORY_ROWS:]),
            ("tags", evidence.tags, expected_tags(life.facts)),
            ("parents", evidence.parents, expected_parents(life.facts)),
        ):
            if list(stored.get(job_id, ())) != list(expected):
                yield f"{job_id} in Postgres: the {what} are not those of the log"


def _problems_of_depths(evidence: Evidence, lives: Mapping[JobId, Life]) -> Iterator[Problem]:
    by_log = Counter((str(life.facts[-1].queue), life.state.value) for life in lives.values())
    if dict(evidence.depths) != dict(evidence.counted):
        yield f"queue_depths says {dict(evidence.depths)}, and jobs has {dict(evidence.counted)}"
    if dict(evidence.depths) != dict(by_log):
        yield f"queue_depths says {dict(evidence.depths)}, and the log {dict(by_log)}"


def _has_parents_elsewhere(life: Life) -> bool:
    """Whether a job waited for one of another queue."""
    birth = life.facts[0]
    return isinstance(birth, Enqueued) and any(queue_of(parent) != birth.queue for parent in birth.parents)


def _counts(evidence: Evidence, lives: Mapping[JobId, Life]) -> dict[str, int]:
    states = Counter(life.state.value for life in lives.values())
    outcomes = sum((life.outcomes for life in lives.values()), Counter[str]())
    endings = Counter(run.ending for run in evidence.runs)
    return {
        "events": sum(map(len, evidence.events.values())),
        "jobs acknowledged": len(evidence.acknowledged),
        "jobs in the log": len(lives),
        "jobs with parents elsewhere": sum(map(_has_parents_elsewhere, lives.values())),
        "ticks minted": sum(len(minted_by(events)) for events in evidence.events.values()),
        "ticks skipped": sum(
            event.skipped_count
            for events in evidence.events.values()
            for event in events
            if isinstance(event, ScheduleTicked)
        ),
        "jobs ended": sum(states[state] for state in TERMINAL_STATES),
        **_named("jobs", states),
        "leases": sum(len(life.leases) for life in lives.values()),
        "leases renewed": sum(fact.TYPE == "lease_renewed" for life in lives.values() for fact in life.facts),
        **_named("outcomes", outcomes),
        "runs of handlers": len(evidence.runs),
        "runs killed": endings[None],
        "runs stopped": endings[Ending.STOPPED],
        "deliveries": len(evidence.deliveries),
        "deliveries repeated": len(evidence.deliveries) - len(set(evidence.deliveries)),
        "rows compared": len(evidence.rows),
    }


def _named(what: str, counted: Mapping[str, int]) -> dict[str, int]:
    return {f"{what}: {name}": count for name, count in sorted(counted.items())}
