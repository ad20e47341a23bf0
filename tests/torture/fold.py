"""What a job's row in Postgres must be, folded from its events apart from the product's own fold.

The product folds by the type of each event; this one by what must be true in each state.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from tests.torture.evidence import Row, Step, Tags

from tidelog_events.bounds import MAX_JOB_TAGS
from tidelog_events.instants import Instant, to_datetime
from tidelog_events.states import STATE_ORDINALS, TERMINAL_STATES, JobState
from tidelog_events.transitions import (
    CancelRequested,
    Enqueued,
    JobFact,
    JobTransition,
    Leased,
    LeaseRenewed,
    ParentResolved,
    Released,
    Requeued,
    Returned,
    Succeeded,
)
from tidelog_events.wire import write_retry


def expected_row(facts: Sequence[JobFact]) -> Row:
    """The row of a job with these facts; the first is its birth."""
    birth = facts[0]
    if not isinstance(birth, Enqueued):
        raise TypeError(f"the first event of {birth.job_id} is {birth.TYPE}")
    row: dict[str, object] = {
        "job_id": birth.job_id,
        "queue": birth.queue,
        "wire_name": birth.wire_name,
        "returned": 0,
        "enqueue_sequence": birth.sequence,
        "due_time": to_datetime(birth.due_time),
        "mode": birth.mode.value,
        "parents_remaining": birth.parents_remaining,
        "lease_owner": None,
        "lease_expiry": None,
        "cancel_requested": False,
        "terminal_at": None,
        "terminal_cause": None,
        "payload": birth.payload.decode(),
        "output": None,
        "retry": orjson.dumps(write_retry(birth.retry)).decode(),
        "trace_context": birth.trace_context,
        "workflow_id": birth.workflow_id,
        "schedule_id": birth.schedule_id,
        "enqueued_at": to_datetime(birth.at),
        "partition": birth.partition,
    }
    for fact in facts:
        _settle_state(row, fact)
        _note_particulars(row, fact)
    return row


def _settle_state(row: dict[str, object], fact: JobFact) -> None:
    """What follows from the state that an event leads to, whatever its type."""
    row["state"] = fact.state.value
    row["state_ordinal"] = STATE_ORDINALS[fact.state]
    row["attempt"] = fact.attempt
    row["sequence"] = fact.sequence
    row["updated_at"] = to_datetime(fact.at)
    if fact.state is not JobState.LEASED:
        row["lease_owner"] = row["lease_expiry"] = None
    if fact.state is not JobState.AWAITING_PARENT:
        row["parents_remaining"] = 0
    ended: Instant | None = getattr(fact, "terminal_at", None)
    row["terminal_at"] = None if ended is None else to_datetime(ended)
    row["terminal_cause"] = getattr(fact, "terminal_cause", None)
    if fact.state in TERMINAL_STATES:
        row["cancel_requested"] = False
    elif (due := getattr(fact, "due_time", None)) is not None:
        row["due_time"] = to_datetime(due)


def _note_particulars(row: dict[str, object], fact: JobFact) -> None:
    """What only an event of that type says."""
    match fact:
        case Leased() | LeaseRenewed():
            row["lease_owner"] = fact.worker_id
            row["lease_expiry"] = to_datetime(fact.lease_expiry)
        case Succeeded():
            row["output"] = fact.output.decode()
        case Returned():
            row["returned"] = int(str(row["returned"])) + 1
        case Requeued():
            row["returned"] = 0
            row["cancel_requested"] = False
        case CancelRequested():
            row["cancel_requested"] = True
        case ParentResolved() | Released():
            row["parents_remaining"] = getattr(fact, "parents_remaining", 0)


def expected_steps(facts: Sequence[JobFact]) -> Sequence[Step]:
    """The history of a job with these facts."""
    return [(fact.ordinal, fact.TYPE, fact.sequence) for fact in facts if isinstance(fact, JobTransition)]


def expected_tags(facts: Sequence[JobFact]) -> Tags:
    """The tags of a job with these facts: those of its birth, then what its attempts added, each once."""
    named = [tag for fact in facts for name in ("tags", "add_tags") for tag in getattr(fact, name, ())]
    return [(tag, None) if isinstance(tag, str) else tag for tag in dict.fromkeys(named)][:MAX_JOB_TAGS]


def expected_parents(facts: Sequence[JobFact]) -> Sequence[str]:
    """The parents that a job with these facts was enqueued with."""
    return getattr(facts[0], "parents", ())
