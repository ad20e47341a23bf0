"""From a situation to its reasons: what is rare, or cannot be brought about at will."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tidelog.inspection.freshness import Behind
from tidelog.inspection.presence import Presence
from tidelog.why import ReasonCode
from tidelog.why.explaining import explain
from tidelog.why.situation import Engine, Situation
from tidelog.words import span
from tidelog_events.identity import JobId, Partition, QueueName, Sequence, WorkerId
from tidelog_events.instants import SECOND, Instant
from tidelog_events.jsontext import NULL
from tidelog_events.record import JobRecord
from tidelog_events.retry import DEFAULT_RETRY
from tidelog_events.states import DependencyMode, JobState
from tidelog_projections.archive import ArchivedJob
from tidelog_projections.circumstances import MAX_COUNTED, Circumstances, Parent
from tidelog_projections.queries import CancelRequest

NOW = Instant(1_800_000_000 * SECOND)
JOB = JobRecord(
    job_id=JobId("mail/job"),
    queue=QueueName("mail"),
    wire_name="work",
    state=JobState.SCHEDULED,
    attempt=0,
    returned=0,
    enqueue_sequence=Sequence(0),
    due_time=Instant(NOW - 90 * SECOND),
    mode=DependencyMode.ON_SUCCESS,
    parents_remaining=0,
    lease_owner=None,
    lease_expiry=None,
    cancel_requested=False,
    terminal_at=None,
    terminal_cause=None,
    payload=NULL,
    output=NULL,
    tags=(),
    retry=DEFAULT_RETRY,
    trace_context=None,
    workflow_id=None,
    schedule_id=None,
    enqueued_at=NOW,
    updated_at=NOW,
    partition=Partition(3),
    sequence=Sequence(0),
)
SERVED = Presence({QueueName("mail"): frozenset({WorkerId("w")})}, {}, is_whole=True)


def situation(
    known: Circumstances,
    *,
    engine: Engine = Engine.THERE,
    presence: Presence | None = SERVED,
    behind: Behind | None = None,
) -> Situation:
    return Situation(
        now=NOW,
        job_id=JOB.job_id,
        partition=JOB.partition,
        known=known,
        behind=behind,
        engine=engine,
        presence=presence,
    )


def codes(of: Situation) -> list[str]:
    return [reason.code.value for reason in explain(of)]


def test_engines_that_share_out_their_partitions_or_that_cannot_be_looked_at() -> None:
    known = Circumstances(job=JOB)
    [reason] = explain(situation(known, engine=Engine.CHANGING))
    assert (reason.code, "Ask again" in reason.sentence) == (ReasonCode.NO_ENGINE, True)
    assert codes(situation(known, engine=Engine.NOT_KNOWN)) == ["soon"]


def test_too_many_commands_to_read_prove_no_absence() -> None:
    unknown = Presence({}, {}, is_whole=False)
    assert codes(situation(Circumstances(job=JOB), presence=unknown)) == ["soon"]


@pytest.mark.parametrize(
    ("ahead", "told"),
    [
        (0, "no due job is before it"),
        (1, "1 due job is before it"),
        (1_200, "1,200 due jobs are before it"),
        (MAX_COUNTED, "10,000 due jobs or more are before it"),
    ],
)
def test_the_jobs_before_it_are_counted_in_words(ahead: int, told: str) -> None:
    [reason] = explain(situation(Circumstances(job=JOB, ahead=ahead)))
    assert reason.sentence.startswith(
        f"It has been due for 1 min 30 s and is free to go; {told} in the queue mail. It goes when a worker "
        "has a free slot."
    )


def test_whoever_serves_the_queue_may_be_busy_with_others() -> None:
    elsewhere = Presence({}, {QueueName("urgent"): frozenset({WorkerId("w")})}, is_whole=True)
    [reason] = explain(situation(Circumstances(job=JOB), presence=elsewhere))
    assert (reason.code, reason.details["other_workers"]) == (ReasonCode.NO_WORKER, ["w"])
    assert "or those that do are busy with other queues. Others of this partition" in reason.sentence


def test_all_parents_have_ended_and_the_word_is_on_its_way() -> None:
    waiting = replace(JOB, state=JobState.AWAITING_PARENT, parents_remaining=1)
    known = Circumstances(job=waiting, parents=(Parent(JobId("other/parent"), JobState.SUCCEEDED),))
    [reason] = explain(situation(known, presence=None))
    assert (reason.code, reason.details["parents"]) == (ReasonCode.AWAITING_PARENTS, [])
    assert "the word is on its way" in reason.sentence


def test_a_wish_to_stop_outlives_the_attempt_and_may_be_nameless() -> None:
    known = Circumstances(
        job=replace(JOB, cancel_requested=True),
        cancel_requests=(CancelRequest(NOW, None, JOB.partition, Sequence(7)),),
    )
    soon, wish = explain(situation(known))
    assert soon.code == ReasonCode.SOON
    assert wish.sentence.startswith("Somebody who left no name asked for it to stop at 2027-")
    assert "ends it without running the handler" in wish.sentence


def test_what_postgres_lacks_may_be_the_very_job_but_for_one_that_was_purged() -> None:
    behind = Behind(3, 12, Instant(NOW - 5 * SECOND), NOW)
    unknown = situation(Circumstances(job=None), behind=behind, engine=Engine.NONE)
    assert codes(unknown) == ["no_engine", "projection_behind", "unknown_job"]
    ended = replace(JOB, state=JobState.CANCELLED, terminal_at=NOW, terminal_cause="ann")
    archived = Circumstances(job=None, archived=ArchivedJob(ended, (), NOW))
    purged, late = explain(situation(archived, behind=behind))
    assert (purged.code, late.code) == (ReasonCode.PURGED, ReasonCode.PROJECTION_BEHIND)
    assert "It ended as Cancelled at 2027-01-15T08:00:00Z, because: ann, and was purged" in purged.sentence
    assert "lacks 12 events of partition 3, the oldest of 5.0 s ago" in late.sentence


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-5, "0.0 s"),
        (12.34, "12.3 s"),
        (60, "1 min"),
        (3_725, "1 h 2 min"),
        (86_400, "1 d"),
        (200_000, "2 d 7 h"),
    ],
)
def test_spans_are_told_to_two_units(seconds: float, told: str) -> None:
    assert span(NOW, Instant(NOW + round(seconds * SECOND))) == told
