"""What stands in Postgres about a job, by the fold that was written apart from the product's."""

from __future__ import annotations

from collections.abc import Sequence

import orjson
from tests.fold import Folded
from tests.torture.evidence import Row, Step, Tags

from tidelog_events.instants import Instant, to_datetime
from tidelog_events.record import RECORD_FIELDS
from tidelog_events.states import STATE_ORDINALS, JobState
from tidelog_events.transitions import JobFact, JobTransition
from tidelog_events.wire import write_retry

_TIMES = ("due_time", "lease_expiry", "terminal_at", "enqueued_at", "updated_at")


def expected_row(facts: Sequence[JobFact]) -> Row:
    """The row of `jobs`: the record but for its tags, which have a table of their own."""
    record = Folded.of(facts)
    row = {name: getattr(record, name) for name in RECORD_FIELDS if name != "tags"}
    row |= {name: None if row[name] is None else to_datetime(Instant(row[name])) for name in _TIMES}
    return {
        **row,
        "state": record.state.value,
        "state_ordinal": STATE_ORDINALS[record.state],
        "mode": record.mode.value,
        "payload": record.payload.decode(),
        "output": record.output.decode() if record.state is JobState.SUCCEEDED else None,
        "retry": orjson.dumps(write_retry(record.retry)).decode(),
    }


def expected_steps(facts: Sequence[JobFact]) -> Sequence[Step]:
    """The history of a job with these facts."""
    return [(fact.ordinal, fact.TYPE, fact.sequence) for fact in facts if isinstance(fact, JobTransition)]


def expected_tags(facts: Sequence[JobFact]) -> Tags:
    """The tags of a job with these facts."""
    return [(tag, None) if isinstance(tag, str) else tag for tag in Folded.of(facts).tags]


def expected_parents(facts: Sequence[JobFact]) -> Sequence[str]:
    """The parents that a job with these facts was enqueued with."""
    return getattr(facts[0], "parents", ())
