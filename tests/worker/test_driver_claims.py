"""The driver's claims: every free slot is asked for once, and no grant exceeds the pool."""

from __future__ import annotations

import pytest
from tests.worker.stage import Stage, command_id, key_of, rows

from tidelog.worker.dispatch import Strict, Weighted
from tidelog.worker.messages import Answered, Ended, NotSent, Sent
from tidelog.worker.outcomes import succeeded
from tidelog_events.identity import Partition
from tidelog_events.identity import Sequence as EventSequence
from tidelog_events.instants import SECOND
from tidelog_events.replies import InvalidReply, Result


def test_an_idle_worker_parks_one_claim_for_all_its_slots() -> None:
    stage = Stage(concurrency=4)
    claim = stage.claim()
    assert (claim.max_jobs, claim.wait_seconds, claim.lease_seconds) == (4, 5 * SECOND, 60 * SECOND)
    stage.later(4.9)
    assert not stage.claims


def test_a_claim_that_came_back_empty_is_sent_again() -> None:
    stage = Stage()
    claim = stage.claim()
    stage.later(5.1)
    stage.granted(claim)
    assert stage.claim().max_jobs == 4
    assert stage.claim().command_id != claim.command_id


def test_a_claim_that_comes_back_empty_at_once_does_not_spin() -> None:
    stage = Stage()
    stage.granted(stage.claim())
    assert not stage.claims
    stage.later(0.2)
    assert len(stage.claims) == 1


def test_a_worker_whose_claims_do_not_wait_asks_ten_times_a_second_and_no_more() -> None:
    stage = Stage(wait=0.0)
    answered = 0
    open_claims = list(stage.claims)
    for _ in range(100):
        stage.later(0.005)
        open_claims += stage.claims
        while open_claims:
            stage.granted(open_claims.pop())
            answered += 1
            open_claims += stage.claims
            assert answered <= 6, "half a second"
    assert answered >= 5


def test_the_parked_claims_of_an_idle_worker_leave_most_of_a_lease() -> None:
    stage = Stage(lease=4.0, wait=5.0)
    assert stage.claim().wait_seconds == 1 * SECOND


def test_slots_that_are_left_are_asked_for_when_jobs_came() -> None:
    stage = Stage(concurrency=4)
    stage.running("a", "b")
    assert len(stage.started) == 2
    assert [(claim.max_jobs, claim.wait_seconds) for claim in stage.claims] == [(2, 5 * SECOND)]


def test_next_claims_go_in_the_batch_of_the_reports_that_freed_the_slots() -> None:
    stage = Stage(concurrency=2)
    grants = [stage.grant("a"), stage.grant("b")]
    stage.granted(stage.claim(), *grants, left_over=True)
    assert not stage.claims, "no slot is free"
    stage.ended(grants[0])
    assert [outgoing.command.type for outgoing in stage.sent] == ["report", "claim"]
    assert (stage.claim().max_jobs, stage.claim().wait_seconds) == (1, 0)
    stage.ended(grants[1])
    assert stage.claim().max_jobs == 1, "of a queue with a backlog several claims may be on their way"


def test_a_backlog_is_known_by_what_the_engine_left_over() -> None:
    stage = Stage(concurrency=3)
    (claim,) = stage.claims
    stage.granted(claim, stage.grant("a"), left_over=True)
    assert (stage.claim().max_jobs, stage.claim().wait_seconds) == (2, 0)
    stage.granted(stage.claim())
    assert (stage.claim().max_jobs, stage.claim().wait_seconds) == (2, 5 * SECOND)


def test_a_grant_in_pieces_is_joined_and_frees_nothing_before_its_end() -> None:
    stage = Stage(concurrency=3)
    claim = stage.claim()
    stage.granted(claim, stage.grant("a"), more=True)
    assert len(stage.started) == 1
    assert not stage.claims
    stage.granted(claim, stage.grant("b"))
    assert len(stage.started) == 1
    assert stage.claim().max_jobs == 1


def test_a_grant_that_comes_twice_starts_nothing_twice() -> None:
    stage = Stage(concurrency=3)
    claim = stage.claim()
    grant = stage.grant("a")
    stage.granted(claim, grant, more=True)
    stage.granted(claim, grant)
    assert not stage.started


def test_hello_repeats_the_parked_claims_of_its_partition_at_once() -> None:
    stage = Stage(policy=Strict(["q", "r"]), concurrency=4)
    before = stage.claim("q")
    stage.hello("q")
    assert stage.claim("q").command_id != before.command_id
    assert len(stage.claims) == 1, "the claim of another partition is parked as before"


def test_a_claim_that_the_new_engine_will_still_come_to_is_not_repeated() -> None:
    stage = Stage()
    stage.hello(position=0)
    assert not stage.claims
    stage.hello(position=1)
    assert stage.claim().max_jobs == 4, "the engine before had come to it, and parked it"


@pytest.mark.parametrize("position", [7, None])
def test_a_claim_on_its_way_at_a_takeover_is_repeated_unless_it_came_after_it(position: int | None) -> None:
    stage = Stage(holds_back=True)
    (claim,) = stage.claims
    stage.hello(position=8)
    assert not stage.claims, "where it stands is not known yet"
    stage.tell(Sent(((command_id(claim), 8),)))
    assert not stage.claims
    stage.tell(Sent(((command_id(claim), position),)))
    assert stage.claim().max_jobs == 4


def test_without_a_takeover_a_claim_of_which_the_log_said_nothing_is_awaited() -> None:
    stage = Stage(holds_back=True)
    stage.tell(Sent(((command_id(stage.claim()), None),)))
    assert not stage.claims


def test_a_takeover_repeats_no_claim_that_did_not_wait() -> None:
    stage = Stage(concurrency=2)
    stage.granted(stage.claim(), stage.grant("a"), left_over=True)
    assert stage.claim().wait_seconds == 0
    stage.hello(position=9)
    assert not stage.claims, "it was answered before, or will be"


def test_a_large_pool_claims_and_reports_a_backlog_in_two_halves() -> None:
    stage = Stage(concurrency=300)
    grants = [stage.grant(str(n)) for n in range(300)]
    stage.granted(stage.claim(), *grants, left_over=True)
    stage.tell(*(Ended(key_of(grant), succeeded(grant, b"1")) for grant in grants))
    assert [(len(rows(stage.reports)), claim.max_jobs) for claim in stage.claims] == [(150, 150)]
    first = rows(stage.reports)
    stage.tell()
    assert [(len(rows(stage.reports)), claim.max_jobs) for claim in stage.claims] == [(150, 150)]
    assert {*first, *rows(stage.reports)} == {(grant.job_id, "Success") for grant in grants}
    stage.tell()
    assert not stage.sent


def test_a_claim_granted_after_it_was_repeated_gives_back_what_exceeds_the_pool() -> None:
    stage = Stage(concurrency=1)
    first = stage.claim()
    stage.hello()
    second = stage.claim()
    stage.granted(second, stage.grant("a"))
    assert len(stage.started) == 1
    stage.granted(first, stage.grant("b"))
    assert not stage.started
    assert rows(stage.reports) == [("q/b", "Returned")]


def test_a_claim_without_any_answer_is_repeated_after_its_wait_and_a_grace() -> None:
    stage = Stage()
    stage.later(14.9)
    assert not stage.claims
    stage.later(0.2)
    assert len(stage.claims) == 1


def test_a_claim_that_was_not_sent_is_tried_again_soon() -> None:
    stage = Stage()
    stage.tell(NotSent((command_id(stage.claim()),)))
    assert not stage.claims
    stage.later(0.6)
    assert stage.claim().max_jobs == 4


def test_a_claim_that_an_engine_calls_invalid_does_not_spin() -> None:
    stage = Stage()
    stage.tell(
        Answered(
            InvalidReply(
                command_id=stage.claim().command_id,
                type="claim",
                result=Result.INVALID,
                partition=Partition(0),
                sequence=EventSequence(1),
                field="queue",
                message="queue is no queue",
            )
        )
    )
    assert not stage.claims
    stage.later(0.6)
    assert len(stage.claims) == 1


def test_several_idle_queues_are_listened_to_with_one_slot_each() -> None:
    stage = Stage(policy=Strict(["a", "b", "c"]), concurrency=10)
    assert [(claim.queue, claim.max_jobs) for claim in stage.claims] == [("a", 1), ("b", 1), ("c", 1)]


def test_a_busy_queue_gets_all_slots_that_idle_queues_do_not_listen_with() -> None:
    stage = Stage(policy=Strict(["a", "b"]), concurrency=10)
    stage.granted(stage.claim("b"), stage.grant("1", "b"), left_over=True)
    assert (stage.claim("b").max_jobs, stage.claim("b").wait_seconds) == (8, 0)
    assert [claim.queue for claim in stage.claims] == ["b"]


def test_strict_gives_every_free_slot_to_the_first_queue_with_work() -> None:
    stage = Stage(policy=Strict(["a", "b"]), concurrency=4)
    a, b = stage.claim("a"), stage.claim("b")
    stage.granted(b, grant := stage.grant("1", "b"), left_over=True)
    stage.granted(a, stage.grant("1", "a"), left_over=True)
    stage.ended(grant)
    assert [(claim.queue, claim.max_jobs) for claim in stage.claims] == [("a", 1)]


def test_weighted_shares_free_slots_in_proportion() -> None:
    stage = Stage(policy=Weighted({"a": 2, "b": 1}), concurrency=8)
    a, b = stage.claim("a"), stage.claim("b")
    stage.tell(
        Answered(stage.answer(a, stage.grant("1", "a"), left_over=True)),
        Answered(stage.answer(b, stage.grant("1", "b"), left_over=True)),
    )
    assert {claim.queue: claim.max_jobs for claim in stage.claims} == {"a": 4, "b": 2}


def test_fewer_slots_than_queues_listen_in_short_turns() -> None:
    stage = Stage(policy=Strict(["a", "b"]), concurrency=1)
    first = stage.claim("a")
    assert first.wait_seconds < SECOND
    assert len(stage.claims) == 1
    stage.later(0.25)
    stage.granted(first)
    assert [claim.queue for claim in stage.claims] == ["b"]


def test_with_one_slot_a_busy_queue_does_not_hide_a_more_urgent_one_for_long() -> None:
    stage = Stage(policy=Strict(["a", "b"]), concurrency=1)
    first = stage.claim("a")
    stage.later(0.25)
    stage.granted(first)
    grant = stage.grant("1", "b")
    stage.granted(stage.claim("b"), grant, left_over=True)
    stage.later(1.0)
    stage.ended(grant)
    assert [(claim.queue, claim.wait_seconds) for claim in stage.claims] == [("a", 0)]
    stage.granted(stage.claim("a"))
    assert [(claim.queue, claim.wait_seconds) for claim in stage.claims] == [("b", 0)]


def test_no_grant_ever_exceeds_the_pool() -> None:
    stage = Stage(policy=Weighted({"a": 3, "b": 2, "c": 1}), concurrency=7)
    open_claims = list(stage.claims)
    running = []
    for turn in range(300):
        claim = open_claims.pop(turn % len(open_claims)) if open_claims else None
        if claim is not None:
            count = min(claim.max_jobs, turn % 4)
            grants = [stage.grant(f"{turn}-{n}", claim.queue) for n in range(count)]
            stage.granted(claim, *grants, left_over=turn % 3 == 0 and count > 0)
            assert stage.started == grants
            assert not stage.reports
            running += grants
            open_claims += stage.claims
        if running and turn % 2:
            stage.ended(running.pop(0))
            open_claims += stage.claims
            stage.reported(stage.reports[0])
            open_claims += stage.claims
        assert len(running) + sum(claim.max_jobs for claim in open_claims) <= 7
        stage.later(0.11)
        open_claims += stage.claims
