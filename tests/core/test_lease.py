"""The fence, heartbeats, and leases that expire (contract section 3, Fence and Lease expiry)."""

from __future__ import annotations

import pytest
from tests.core.playing import (
    Script,
    cancel,
    claim,
    dead,
    enqueue,
    failure,
    heartbeat,
    lease,
    report,
    requeue,
    returned,
    success,
    time_of,
)

from tidelog_events.wire import WireObject


def leased(lease_seconds: float = 10, **fields: object) -> Script:
    """A script in which w holds q/a since 0."""
    script = Script()
    script.do(0, enqueue("q/a", **fields))
    script.do(0, claim("q", "w", lease_seconds=lease_seconds))
    return script


class TestFence:
    @pytest.mark.parametrize(
        ("worker", "row"),
        [
            ("v", lease("q/a")),
            ("w", lease("q/a", 0)),
            ("w", lease("q/a", 2)),
            ("w", lease("q/a", -1)),
            ("w", lease("q/a", 10**700)),
            ("w", lease("q/a", lease=0)),
            ("w", lease("q/a", lease=10**30)),
            ("w", lease("q/unknown")),
        ],
    )
    def test_whoever_does_not_hold_the_lease_changes_nothing(self, worker: str, row: WireObject) -> None:
        script = leased()
        before = script.records()
        beat = script.do(1, heartbeat(worker, row))
        assert beat.reply["leases"] == [
            {"job_id": row["job_id"], "renewed": False, "cancel_requested": False}
        ]
        stale = script.do(1, report(worker, {**row, "outcome": "Success"}))
        assert stale.reply["results"] == ["StaleLease"]
        assert (beat.transitions, stale.transitions) == ([], [])
        assert script.records() == before

    @pytest.mark.parametrize("number", [1, None])
    def test_the_holder_may_leave_the_lease_number_out(self, number: int | None) -> None:
        assert leased().do(1, report("w", success("q/a", lease=number))).reply["results"] == ["Applied"]

    def test_the_expiry_instant_is_too_late(self) -> None:
        script = leased(lease_seconds=10)
        assert script.do(10, report("w", success("q/a"))).reply["results"] == ["StaleLease"]
        script = leased(lease_seconds=10)
        last = script.do("2026-01-01T00:00:09.999999Z", report("w", success("q/a")))
        assert last.reply["results"] == ["Applied"]

    def test_one_lease_takes_one_outcome(self) -> None:
        script = leased()
        printed = script.do(1, report("w", success("q/a"), failure("q/a")))
        assert printed.reply["results"] == ["Applied", "StaleLease"]
        assert script.do(1, report("w", success("q/a"))).reply["results"] == ["StaleLease"]

    def test_the_lease_number_tells_the_lives_of_a_job_apart_where_attempts_do_not(self) -> None:
        script = leased()
        old = 1
        script.do(1, report("w", dead("q/a")))
        script.do(2, requeue("q/a"))
        grant = script.do(3, claim("q", "w")).reply["jobs"][0]
        assert (grant["attempt"], grant["lease"] > old) == (1, True)
        stale = script.do(4, report("w", success("q/a", lease=old)))
        assert (stale.reply["results"], stale.transitions) == (["StaleLease"], [])
        assert script.do(4, heartbeat("w", lease("q/a", lease=old))).reply["leases"][0]["renewed"] is False
        applied = script.do(4, report("w", success("q/a", lease=grant["lease"])))
        assert applied.reply["results"] == ["Applied"]


class TestHeartbeat:
    def test_it_moves_the_expiry_from_now_on(self) -> None:
        script = leased(lease_seconds=10)
        printed = script.do(6, heartbeat("w", lease("q/a"), lease_seconds=10))
        assert (printed.steps, printed.event["lease_expiry"]) == (["lease_renewed q/a"], time_of(16))
        assert "ordinal" not in printed.event
        assert script.wait(15).lines == []
        assert script.wait(16).steps == ["lease_expired q/a"]

    def test_it_may_shorten_the_lease(self) -> None:
        script = leased(lease_seconds=100)
        script.do(1, heartbeat("w", lease("q/a"), lease_seconds=2))
        assert script.wait(3).steps == ["lease_expired q/a"]
        assert script.wait(200).lines == []

    def test_it_may_shorten_and_lengthen_in_turn(self) -> None:
        script = leased(lease_seconds=50)
        for at, seconds in [(1, 2), (2, 50), (3, 4), (4, 3), (5, 95)]:
            renewed = script.do(at, heartbeat("w", lease("q/a"), lease_seconds=seconds))
            assert renewed.steps == ["lease_renewed q/a"]
        assert script.wait(99).lines == []
        assert script.wait(100).steps == ["lease_expired q/a"]

    def test_rows_are_independent_and_answered_in_their_order(self) -> None:
        script = leased()
        script.do(0, enqueue("q/b"))
        script.do(0, claim("q", "w"))
        script.do(1, cancel("q/b"))
        printed = script.do(2, heartbeat("w", lease("q/b"), lease("q/x"), lease("q/a")))
        assert [(row["renewed"], row["cancel_requested"]) for row in printed.reply["leases"]] == [
            (True, True),
            (False, False),
            (True, False),
        ]

    def test_it_shows_in_the_record(self) -> None:
        script = leased()
        script.do(5, heartbeat("w", lease("q/a"), lease_seconds=30))
        record = script.record("q/a")
        assert (record["lease_owner"], record["lease_expiry"]) == ("w", time_of(35))
        assert (record["updated_at"], record["sequence"]) == (time_of(5), 2)


class TestExpiry:
    def test_a_silent_worker_loses_the_job_at_the_very_instant(self) -> None:
        script = leased(lease_seconds=10, retry={"max_attempts": 2, "delays": [5]})
        printed = script.wait(10)
        event = printed.event
        assert (event["at"], event["due_time"], event["worker_id"]) == (time_of(10), time_of(15), "w")
        assert (event["state"], event["terminal_cause"]) == ("Scheduled", None)
        assert "cause_command_id" not in event
        record = script.record("q/a")
        assert (record["lease_owner"], record["lease_expiry"], record["attempt"]) == (None, None, 1)

    def test_at_the_ceiling_it_is_dead_lettered(self) -> None:
        script = leased(lease_seconds=10, retry={"max_attempts": 1})
        event = script.wait(10).event
        assert event["state"] == "DeadLettered"
        assert event["terminal_cause"] == "Lease expired on attempt 1 (attempt ceiling reached)."
        assert (event["terminal_at"], event["due_time"]) == (time_of(10), None)

    def test_the_text_names_the_attempt_and_the_ceiling_counts_charged_tries(self) -> None:
        script = leased(lease_seconds=10, retry={"max_attempts": 1})
        script.do(1, report("w", returned("q/a")))
        script.do(2, claim("q", "w", lease_seconds=10))
        event = script.wait(12).event
        assert event["terminal_cause"] == "Lease expired on attempt 2 (attempt ceiling reached)."

    def test_a_late_decision_counts_from_its_own_instant(self) -> None:
        script = leased(lease_seconds=10, retry={"max_attempts": 2, "delays": [5]})
        event = script.away(5, 100).event
        assert (event["at"], event["due_time"]) == (time_of(100), time_of(105))

    def test_expiries_of_one_instant_go_by_enqueue_order(self) -> None:
        script = Script()
        for number in range(5):
            script.do(0, enqueue(f"q/{number}", due_time=time_of(5 - number)))
        assert script.do(5, claim("q", "w", max_jobs=5, lease_seconds=10)).granted == [
            f"q/{number}" for number in (4, 3, 2, 1, 0)
        ]
        assert script.wait(15).steps == [f"lease_expired q/{number}" for number in range(5)]

    def test_expiries_of_one_late_decision_go_by_enqueue_order_too(self) -> None:
        script = Script()
        for number in range(3):
            script.do(0, enqueue(f"q/{number}"))
            script.do(0, claim("q", "w", lease_seconds=30 - number * 10))
        assert script.away(1, 50).steps == [f"lease_expired q/{number}" for number in range(3)]

    def test_a_lease_that_was_given_up_does_not_expire_again(self) -> None:
        script = leased(lease_seconds=10)
        script.do(1, report("w", returned("q/a")))
        script.do(2, claim("q", "v", lease_seconds=100))
        assert script.wait(20).lines == []
        assert script.record("q/a")["lease_owner"] == "v"

    def test_the_longest_lease_ends_with_the_calendar(self) -> None:
        script = Script()
        script.do("9999-12-31T23:59:00Z", enqueue("q/a"))
        printed = script.do("9999-12-31T23:59:00Z", claim("q", "w", lease_seconds=1_000_000_000))
        assert printed.event["lease_expiry"] == "9999-12-31T23:59:59.999999Z"
