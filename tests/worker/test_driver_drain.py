"""The driver's end: what a worker does between the wish that it stop and its last word."""

from __future__ import annotations

from tests.worker.stage import Stage, key_of, rows

from tidelog.worker.messages import Answered, Drain, StopReason
from tidelog.worker.outcomes import returned


def test_an_idle_worker_takes_its_parked_claim_back_and_is_done() -> None:
    stage = Stage()
    parked = stage.claim()
    stage.tell(Drain(30.0))
    withdrawal = stage.claim()
    assert (withdrawal.max_jobs, withdrawal.wait_seconds) == (1, 0)
    assert not stage.driver.is_done()
    stage.granted(parked)
    stage.granted(withdrawal)
    assert stage.driver.is_done()
    assert not stage.claims


def test_what_is_granted_while_draining_is_given_back() -> None:
    stage = Stage()
    parked = stage.claim()
    stage.tell(Drain(30.0))
    withdrawal = stage.claim()
    stage.granted(parked, stage.grant("a"))
    assert not stage.started
    assert rows(stage.reports) == [("q/a", "Returned")]
    report = stage.reports[0]
    stage.granted(withdrawal)
    assert not stage.driver.is_done()
    stage.reported(report)
    assert stage.driver.is_done()


def test_running_jobs_finish_within_the_grace_while_heartbeats_go_on() -> None:
    stage = Stage(lease=5.0)
    parked = stage.claim()
    (grant,) = [stage.grant("a")]
    stage.granted(parked, grant)
    stage.later(2.0)
    for beat in stage.beats:
        stage.renewed(beat)
    stage.tell(Drain(60.0))
    for _ in range(16):
        stage.later(1.0)
        for beat in stage.beats:
            stage.renewed(beat)
        assert not stage.stops
        assert not stage.claims
        assert not stage.driver.is_done()
    stage.ended(grant)
    assert rows(stage.reports) == [("q/a", "Success")]
    assert not stage.driver.is_done(), "the outcome is not acknowledged yet"
    stage.reported(stage.reports[0])
    assert stage.driver.is_done()


def test_a_cancel_request_reaches_a_handler_while_draining() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.tell(Drain(30.0))
    stage.push_cancel(grant)
    assert [stop.reason for stop in stage.stops] == [StopReason.CANCELLED]


def test_a_job_whose_handler_has_not_begun_never_begins() -> None:
    stage = Stage()
    grant = stage.grant("a")
    stage.tell(Answered(stage.answer(stage.claim(), grant)))
    stage.tell(Drain(30.0))
    assert [(stop.key, stop.reason) for stop in stage.stops] == [(key_of(grant), StopReason.SHUT_DOWN)]
    stage.ended(grant, returned(grant))
    assert rows(stage.reports) == [("q/a", "Returned")]


def test_what_is_left_after_the_grace_is_stopped_and_given_back() -> None:
    stage = Stage()
    quick, stuck = stage.running("quick", "stuck")
    stage.tell(Drain(2.0))
    stage.later(1.9)
    assert not stage.stops
    stage.later(0.1)
    assert {stop.key for stop in stage.stops} == {key_of(quick), key_of(stuck)}
    assert {stop.reason for stop in stage.stops} == {StopReason.SHUT_DOWN}
    stage.ended(quick, returned(quick))
    assert rows(stage.reports) == [("q/quick", "Returned")]
    stage.reported(stage.reports[0])
    stage.later(0.5)
    assert rows(stage.reports) == [("q/stuck", "Returned")]
    stage.reported(stage.reports[0])
    assert stage.driver.is_done()
    assert stage.driver.left_behind() == ["q/stuck"]


def test_the_end_of_the_grace_is_not_slept_through_when_it_comes_after_the_last_step() -> None:
    stage = Stage()
    stage.running("a")
    stage.tell(Drain(2.0))
    end = stage.now + 2.0
    stage.now = end - 0.001
    stage.tell()
    assert not stage.stops
    stage.now = end + 0.001  # the pump asks when it has done what the step said
    assert stage.driver.next_wake() == end


def test_a_handler_that_finishes_while_it_is_stopped_has_succeeded() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.tell(Drain(0.0))
    stage.ended(grant)
    assert rows(stage.reports) == [("q/a", "Success")]


def test_the_end_is_bounded_although_no_engine_answers() -> None:
    stage = Stage()
    stage.running("a")
    stage.tell(Drain(2.0))
    stage.later(7.4)
    assert not stage.driver.is_done()
    stage.later(0.2)
    assert stage.driver.is_done()


def test_a_parked_claim_that_does_not_come_back_is_not_waited_for_long() -> None:
    stage = Stage()
    stage.tell(Drain(30.0))
    stage.later(1.9)
    assert not stage.driver.is_done()
    stage.later(0.2)
    assert stage.driver.is_done()


def test_a_second_wish_to_stop_can_only_shorten_the_grace() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.tell(Drain(30.0))
    stage.tell(Drain(300.0))
    stage.tell(Drain(1.0))
    stage.later(1.0)
    assert [stop.key for stop in stage.stops] == [key_of(grant)]


def test_a_slot_that_becomes_free_while_draining_is_not_filled() -> None:
    stage = Stage(concurrency=1)
    (grant,) = stage.running("a")
    stage.tell(Drain(30.0))
    stage.ended(grant)
    assert not stage.claims
