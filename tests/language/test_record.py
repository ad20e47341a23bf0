"""The fold of transitions into a JobRecord: contract section 7."""

from __future__ import annotations

import pytest
from tests.language.golden import fold
from tests.language.samples import JOB, LIFE, TRANSITIONS, WORKER, after, step

from tidelog_events.bounds import MAX_JOB_TAGS
from tidelog_events.record import RECORD_FIELDS, JobRecord
from tidelog_events.states import LEGAL_STEPS, STATE_ORDINALS, JobState
from tidelog_events.transitions import (
    Cancelled,
    Enqueued,
    JobFact,
    JobTransition,
    RetryScheduled,
)
from tidelog_events.wire import to_wire


def upto(sequence: int) -> JobRecord:
    """The record once the event with that sequence was applied."""
    return fold([event for event in LIFE if event.sequence <= sequence])


def test_the_fields_are_those_of_the_contract_in_its_order() -> None:
    assert " ".join(RECORD_FIELDS) == (
        "job_id queue wire_name state attempt returned enqueue_sequence due_time mode parents_remaining "
        "lease_owner lease_expiry cancel_requested terminal_at terminal_cause payload output tags retry "
        "trace_context workflow_id schedule_id enqueued_at updated_at partition sequence"
    )
    assert tuple(to_wire(fold(list(LIFE)))) == RECORD_FIELDS


def test_the_ordinals_of_the_states_are_frozen() -> None:
    assert {str(state): state.ordinal for state in JobState} == {
        "Scheduled": 0,
        "AwaitingParent": 1,
        "Leased": 2,
        "Succeeded": 3,
        "Cancelled": 4,
        "DeadLettered": 5,
        "Quarantined": 6,
    }
    assert len(STATE_ORDINALS) == len(JobState)


def test_the_sample_life_is_a_legal_one() -> None:
    state: JobState | None = None
    ordinal = 0
    for event in LIFE:
        if isinstance(event, JobTransition):
            assert (state, event.state) in LEGAL_STEPS
            assert event.ordinal == ordinal
            state, ordinal = event.state, ordinal + 1


@pytest.mark.parametrize("event", LIFE, ids=[f"{event.sequence}-{event.TYPE}" for event in LIFE])
def test_every_fact_moves_the_record_to_itself(event: JobFact) -> None:
    record = upto(event.sequence)

    assert (record.state, record.attempt) == (event.state, event.attempt)
    assert (record.sequence, record.updated_at) == (event.sequence, event.at)
    assert (record.enqueue_sequence, record.enqueued_at, record.job_id) == (7, after(7), JOB)
    assert (record.lease_owner is not None) == (event.state is JobState.LEASED)
    assert (record.lease_expiry is not None) == (event.state is JobState.LEASED)
    assert (record.terminal_at is not None) == event.state.is_terminal
    assert (record.parents_remaining > 0) == (event.state is JobState.AWAITING_PARENT)


def test_parents_are_counted_down() -> None:
    assert [upto(sequence).parents_remaining for sequence in (7, 8, 9)] == [2, 1, 0]
    assert upto(9).due_time == after(9)


def test_a_renewal_moves_the_expiry_and_nothing_else() -> None:
    before, renewed = upto(10), upto(11)

    assert (renewed.lease_owner, renewed.lease_expiry) == (WORKER, after(71.25))
    assert renewed.attempt == before.attempt


def test_returned_tries_are_counted_until_a_requeue() -> None:
    assert [upto(sequence).returned for sequence in (13, 14, 47, 48)] == [0, 1, 1, 0]


def test_the_request_to_cancel_survives_an_expiry_and_ends_with_the_life() -> None:
    assert [upto(sequence).cancel_requested for sequence in (15, 16, 45, 46, 47)] == [
        False,
        True,
        True,
        True,
        False,
    ]


def test_an_expiry_at_the_ceiling_ends_the_life() -> None:
    record = upto(82)

    assert (record.state, record.terminal_at) == (JobState.DEAD_LETTERED, after(82))
    assert record.terminal_cause == "Lease expired on attempt 1 (attempt ceiling reached)."


def test_a_requeue_clears_the_end() -> None:
    record = upto(83)

    assert (record.terminal_at, record.terminal_cause, record.cancel_requested) == (None, None, False)
    assert (record.due_time, record.attempt, record.returned) == (after(83), 0, 0)


def test_a_success_has_its_output_and_no_cause() -> None:
    record = fold(list(LIFE))

    assert (record.output, record.terminal_cause, record.terminal_at) == (b'{"sent":"42"}', None, after(85))


def test_tags_are_added_once_in_order_of_first_appearance() -> None:
    assert fold(list(LIFE)).tags == ("urgent", ("customer", "17"), ("host", "a"), "paid")


def test_a_job_keeps_128_tags() -> None:
    born = LIFE[0]
    assert isinstance(born, Enqueued)
    record = JobRecord.born(born)
    for round_ in range(10):
        record.apply(
            RetryScheduled(
                **step(20 + round_, 1, JobState.SCHEDULED, 1),
                due_time=after(20),
                error="e",
                failure_detail=None,
                add_tags=tuple(f"t{round_}-{n}" for n in range(32)),
            )
        )

    assert len(record.tags) == MAX_JOB_TAGS == 128
    assert record.tags[:3] == ("urgent", ("customer", "17"), "t0-0")


def test_a_cancellation_tells_its_cause_and_ends_the_waiting() -> None:
    record = upto(8)
    record.apply(
        Cancelled(
            **step(9, 1, JobState.CANCELLED, 0),
            terminal_at=after(9),
            terminal_cause="parent-failure:Cancelled",
        )
    )

    assert (record.state, record.parents_remaining) == (JobState.CANCELLED, 0)
    assert record.terminal_cause == "parent-failure:Cancelled"


def test_a_job_that_is_cancelled_at_birth_has_ended() -> None:
    born = TRANSITIONS["enqueued-cancelled-at-once"]
    assert isinstance(born, Enqueued)

    record = JobRecord.born(born)

    assert (record.state, record.terminal_at) == (JobState.CANCELLED, after(90))
    assert record.terminal_cause == "parent-failure:Quarantined"


def test_the_request_to_cancel_survives_a_retry() -> None:
    record = upto(16)
    record.apply(
        RetryScheduled(
            **step(17, 7, JobState.SCHEDULED, 3),
            due_time=after(18),
            error="e",
            failure_detail=None,
            add_tags=(),
        )
    )

    assert record.cancel_requested
