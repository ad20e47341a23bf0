"""The driver's leases: heartbeats, what losing one means, and cancellation."""

from __future__ import annotations

import logging

import pytest
from tests.worker.stage import PARTITIONS, Stage, command_id, key_of, rows

from tidelog.worker.dispatch import Strict
from tidelog.worker.messages import Began, Extend, NotSent, StopReason
from tidelog.worker.outcomes import cancelled
from tidelog_events.identity import partition_of
from tidelog_events.instants import SECOND
from tidelog_events.replies import RowResult


def test_leases_are_renewed_at_a_third_of_their_time() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.later(19.9)
    assert not stage.beats
    stage.later(0.2)
    (beat,) = stage.beats
    assert [(row.job_id, row.attempt, row.lease) for row in beat.leases] == [("q/a", 1, grant.lease)]
    assert beat.lease_seconds == 60 * SECOND
    stage.renewed(beat)
    stage.later(19.8)
    assert not stage.beats
    stage.later(0.3)
    assert len(stage.beats) == 1


def test_a_lease_counts_from_the_sending_of_its_claim() -> None:
    stage = Stage()
    claim = stage.claim()
    stage.later(4.0)
    stage.granted(claim, stage.grant("a"))
    stage.later(15.9)
    assert not stage.beats
    stage.later(0.2)
    assert len(stage.beats) == 1


def test_a_job_that_runs_for_hours_keeps_its_lease() -> None:
    stage = Stage()
    stage.running("a")
    for _ in range(400):
        stage.later(20.0)
        for beat in stage.beats:
            stage.renewed(beat)
        assert not stage.stops


def test_rows_of_a_heartbeat_live_on_one_partition() -> None:
    queues = ["q1", "q2", "q3", "q4", "q5"]
    stage = Stage(policy=Strict(queues), concurrency=20)
    for claim in stage.claims:
        stage.granted(claim, stage.grant("a", claim.queue))
    stage.later(20.0)
    homes = [
        {partition_of(row.job_id.split("/")[0], PARTITIONS) for row in beat.leases} for beat in stage.beats
    ]
    assert all(len(home) == 1 for home in homes)
    assert len(homes) == len({partition_of(queue, PARTITIONS) for queue in queues})


def test_an_unanswered_heartbeat_is_repeated_sooner() -> None:
    stage = Stage()
    stage.running("a")
    stage.later(20.0)
    assert len(stage.beats) == 1
    stage.later(7.0)
    assert len(stage.beats) == 1


def test_a_lease_without_a_confirmed_renewal_is_given_up_by_the_own_clock() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.later(59.9)
    assert not stage.stops
    stage.later(0.2)
    assert [(stop.key, stop.reason) for stop in stage.stops] == [(key_of(grant), StopReason.LEASE_LOST)]
    stage.ended(grant)
    assert not stage.reports, "nothing is reported under a lease that is over"


def test_a_renewal_counts_from_the_sending_of_its_heartbeat() -> None:
    stage = Stage()
    stage.running("a")
    stage.later(20.0)
    (beat,) = stage.beats
    stage.later(30.0)
    stage.renewed(beat)
    stage.later(29.9)
    assert not stage.stops
    stage.later(0.2)
    assert len(stage.stops) == 1


def test_a_renewed_lease_moves_the_expiry_that_the_handler_sees() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.later(20.0)
    stage.renewed(stage.beats[0])
    (extend,) = [action for action in stage.actions if isinstance(action, Extend)]
    assert extend.lease_expiry == grant.lease_expiry + 20 * SECOND


def test_a_lease_that_is_not_renewed_stops_the_handler_and_reports_nothing() -> None:
    stage = Stage(concurrency=2)
    lost, kept = stage.running("lost", "kept")
    stage.later(20.0)
    stage.renewed(stage.beats[0], lost=["q/lost"])
    assert [(stop.key, stop.reason) for stop in stage.stops] == [(key_of(lost), StopReason.LEASE_LOST)]
    assert not stage.claims, "its slot is occupied until the handler has ended"
    stage.ended(lost)
    assert not stage.reports
    assert stage.claim().max_jobs == 1
    stage.ended(kept)
    assert rows(stage.reports) == [("q/kept", "Success")]


def test_a_heartbeat_that_was_not_sent_is_tried_again() -> None:
    stage = Stage()
    stage.running("a")
    stage.later(20.0)
    stage.tell(NotSent((command_id(stage.beats[0]),)))
    stage.later(7.0)
    assert len(stage.beats) == 1


def test_a_job_that_is_granted_again_supersedes_its_older_lease(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(concurrency=2)
    (older,) = stage.running("a")
    newer = stage.grant("a", attempt=2)
    with caplog.at_level(logging.WARNING, "tidelog.worker"):
        stage.granted(stage.claim(), newer)
    assert [(stop.key, stop.reason) for stop in stage.stops] == [(key_of(older), StopReason.LEASE_LOST)]
    assert stage.started == [newer]
    assert "q/a, attempt 1, is lost" in caplog.text
    stage.ended(older)
    assert not stage.reports
    assert stage.claim().max_jobs == 1, "the worker goes on with the slot of the older one"
    stage.ended(newer)
    assert [(row.lease, row.outcome) for row in stage.reports[0].outcomes] == [(newer.lease, "Success")]


def test_the_older_lease_may_end_last() -> None:
    stage = Stage(concurrency=2)
    (older,) = stage.running("a")
    newer = stage.grant("a", attempt=2)
    stage.granted(stage.claim(), newer)
    stage.ended(newer)
    stage.reported(stage.reports[0])
    stage.ended(older)
    assert not stage.reports
    assert stage.driver.running == 0


def test_a_cancel_push_stops_the_handler_once() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.push_cancel(grant)
    assert [(stop.key, stop.reason) for stop in stage.stops] == [(key_of(grant), StopReason.CANCELLED)]
    stage.push_cancel(grant)
    stage.later(20.0)
    stage.renewed(stage.beats[0], cancel_requested=["q/a"])
    assert not stage.stops
    stage.ended(grant, cancelled(grant))
    assert rows(stage.reports) == [("q/a", "Cancelled")]


def test_a_heartbeat_row_asks_to_cancel_as_well() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.later(20.0)
    stage.renewed(stage.beats[0], cancel_requested=["q/a"])
    assert [(stop.key, stop.reason) for stop in stage.stops] == [(key_of(grant), StopReason.CANCELLED)]


def test_a_cancel_push_about_another_lease_stops_nothing() -> None:
    stage = Stage()
    (grant,) = stage.running("a")
    stage.push_cancel(grant, lease=99)
    assert not stage.stops


def test_a_grant_with_a_cancel_request_is_reported_without_running() -> None:
    stage = Stage()
    stage.granted(stage.claim(), stage.grant("a", cancel_requested=True))
    assert not stage.started
    assert rows(stage.reports) == [("q/a", "Cancelled")]
    assert stage.claim().max_jobs == 4


def test_an_attempt_that_takes_too_long_is_stopped_and_then_reported_without_its_handler() -> None:
    stage = Stage(concurrency=1)
    (grant,) = stage.running("a")
    stage.tell(Began(key_of(grant), 30.0))
    stage.later(30.0)
    assert [stop.reason for stop in stage.stops] == [StopReason.TIMED_OUT]
    assert not stage.reports
    stage.later(5.0)
    (report,) = stage.reports
    assert rows([report]) == [("q/a", "Failure")]
    assert "longer than 30 s" in str(report.outcomes[0])
    stage.reported(report)
    assert not stage.claims, "the handler still occupies the slot"
    stage.ended(grant)
    assert not stage.reports
    assert stage.claim().max_jobs == 1


def test_a_grant_that_comes_after_its_lease_is_given_back(caplog: pytest.LogCaptureFixture) -> None:
    """A takeover may hold a claim up for longer than a lease. No try is charged that nobody made."""
    stage = Stage()
    claim = stage.claim()
    stage.later(61.0)
    with caplog.at_level(logging.WARNING, "tidelog.worker"):
        stage.granted(claim, stage.grant("a"))
    assert not stage.started
    [report] = stage.reports
    assert rows([report]) == [("q/a", "Returned")]
    assert "given back" in caplog.text
    stage.reported(report, RowResult.STALE_LEASE)
    stage.later(120.0)
    assert not stage.reports, "it is settled"
    assert not stage.beats, "nothing is renewed for it"
