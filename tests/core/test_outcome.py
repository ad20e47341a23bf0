"""What a report of the lease holder leads to (contract section 3: outcomes, Retry, Returned)."""

from __future__ import annotations

import pytest
from tests.core.playing import (
    Script,
    cancel,
    claim,
    dead,
    enqueue,
    failure,
    lease,
    report,
    requeue,
    returned,
    success,
    time_of,
    unroutable,
)

from tidelog_events.wire import WireObject


def leased(**fields: object) -> Script:
    """A script in which w holds q/a since 0."""
    script = Script()
    script.do(0, enqueue("q/a", **fields))
    script.do(0, claim("q", "w", lease_seconds=1_000))
    return script


class TestSuccess:
    def test_the_output_may_be_of_exactly_the_bound(self) -> None:
        script = leased()
        over = script.do(1, report("w", success("q/a", output="x" * 65_535)))
        assert (over.reply["results"], over.transitions) == (["OutputTooLarge"], [])
        within = script.do(1, report("w", success("q/a", output="x" * 65_534)))
        assert within.reply["results"] == ["Applied"]

    def test_the_fence_comes_before_the_size(self) -> None:
        printed = leased().do(1, report("v", success("q/a", output="x" * 70_000)))
        assert printed.reply["results"] == ["StaleLease"]

    def test_an_oversized_output_leaves_the_other_rows_alone(self) -> None:
        script = leased()
        script.do(0, enqueue("q/b"))
        script.do(0, claim("q", "w"))
        printed = script.do(1, report("w", success("q/a", output="x" * 70_000), success("q/b", output=1)))
        assert printed.reply["results"] == ["OutputTooLarge", "Applied"]
        assert script.record("q/a")["state"] == "Leased"

    def test_tags_are_added_in_order_of_first_appearance(self) -> None:
        script = leased(tags=["b", {"k": "v"}])
        script.do(1, report("w", success("q/a", add_tags=["a", "b", {"k": "w"}])))
        assert script.record("q/a")["tags"] == ["b", {"k": "v"}, "a", {"k": "w"}]


class TestFailure:
    def test_the_policy_of_the_job_decides(self) -> None:
        script = leased(retry={"max_attempts": 3, "delays": [2, 30]})
        event = script.do(1, report("w", failure("q/a", failure_detail="why"))).event
        assert (event["type"], event["due_time"]) == ("retry_scheduled", time_of(3))
        assert (event["error"], event["failure_detail"], event["worker_id"]) == ("broken", "why", "w")
        script.do(3, claim("q", "w"))
        assert script.do(4, report("w", failure("q/a", 2))).event["due_time"] == time_of(34)
        script.do(34, claim("q", "w"))
        event = script.do(35, report("w", failure("q/a", 3))).event
        assert (event["type"], event["terminal_cause"]) == ("dead_lettered", "broken")
        assert (event["error"], event["terminal_at"]) == ("broken", time_of(35))

    def test_the_default_policy_doubles_up_to_five_minutes_and_ends_at_ten(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        now = 0
        for attempt, delay in enumerate([2, 4, 8, 16, 32, 64, 128, 256, 300], 1):
            script.do(now, claim("q", "w"))
            event = script.do(now, report("w", failure("q/a", attempt))).event
            assert event["due_time"] == time_of(now + delay)
            now += delay
        script.do(now, claim("q", "w"))
        assert script.do(now, report("w", failure("q/a", 10))).event["type"] == "dead_lettered"

    def test_a_named_time_wins_over_the_ceiling_and_may_be_past(self) -> None:
        script = leased(retry={"max_attempts": 1})
        past = script.do(9, report("w", failure("q/a", next_due=time_of(3)))).event
        assert (past["type"], past["due_time"]) == ("retry_scheduled", time_of(3))
        assert script.do(9, claim("q", "w")).granted == ["q/a"]
        future = script.do(10, report("w", failure("q/a", 2, next_due=time_of(99)))).event
        assert future["due_time"] == time_of(99)

    def test_null_means_no_other_try(self) -> None:
        assert leased().do(1, report("w", dead("q/a"))).event["type"] == "dead_lettered"

    def test_a_returned_try_is_not_charged(self) -> None:
        script = leased(retry={"max_attempts": 2, "delays": [7, 50]})
        script.do(1, report("w", returned("q/a")))
        script.do(1, claim("q", "w"))
        script.do(2, report("w", returned("q/a", 2)))
        assert script.record("q/a")["returned"] == 2
        script.do(2, claim("q", "w"))
        first = script.do(3, report("w", failure("q/a", 3))).event
        assert (first["type"], first["due_time"]) == ("retry_scheduled", time_of(10))
        script.do(10, claim("q", "w"))
        assert script.do(11, report("w", failure("q/a", 4))).event["type"] == "dead_lettered"

    def test_texts_are_cut_to_8192_bytes_between_characters(self) -> None:
        script = leased()
        text = "x" + "é" * 5_000
        event = script.do(1, report("w", failure("q/a", error=text, failure_detail=text))).event
        assert event["failure_detail"] == event["error"] == "x" + "é" * 4_095
        exact = "é" * 4_096
        script.do(10, claim("q", "w"))
        event = script.do(10, report("w", failure("q/a", 2, failure_detail=exact))).event
        assert event["failure_detail"] == exact

    def test_tags_over_a_whole_life_are_bounded(self) -> None:
        script = leased(retry={"delays": [0]})
        for attempt in range(1, 7):
            tags = [f"{attempt}-{number}" for number in range(32)]
            script.do(attempt, report("w", failure("q/a", attempt, add_tags=tags)))
            script.do(attempt, claim("q", "w"))
        tags = script.record("q/a")["tags"]
        assert (len(tags), tags[0], tags[-1]) == (128, "1-0", "4-31")


class TestReturned:
    def test_it_is_due_now_and_keeps_its_attempt(self) -> None:
        script = leased()
        event = script.do(5, report("w", returned("q/a"))).event
        assert (event["state"], event["attempt"], event["due_time"]) == ("Scheduled", 1, time_of(5))
        record = script.record("q/a")
        assert (record["attempt"], record["returned"], record["lease_owner"]) == (1, 1, None)

    def test_a_requeue_forgets_the_returns(self) -> None:
        script = leased(retry={"max_attempts": 1})
        script.do(1, report("w", returned("q/a")))
        script.do(1, claim("q", "w"))
        script.do(2, report("w", failure("q/a", 2)))
        script.do(3, requeue("q/a"))
        assert (script.record("q/a")["attempt"], script.record("q/a")["returned"]) == (0, 0)
        script.do(3, claim("q", "w"))
        assert script.do(4, report("w", failure("q/a"))).event["type"] == "dead_lettered"


class TestEnds:
    def test_a_cancelled_outcome_needs_no_request(self) -> None:
        event = leased().do(1, report("w", lease("q/a", outcome="Cancelled"))).event
        assert (event["type"], event["terminal_cause"]) == ("cancelled", "operator-cancel")

    def test_a_cancelled_outcome_says_its_cause(self) -> None:
        event = leased().do(1, report("w", lease("q/a", outcome="Cancelled", cause="ann"))).event
        assert event["terminal_cause"] == "ann"

    def test_an_unroutable_job_is_quarantined_with_the_reason(self) -> None:
        event = leased().do(1, report("w", unroutable("q/a"))).event
        assert (event["type"], event["terminal_cause"], event["state"]) == (
            "quarantined",
            "nobody",
            "Quarantined",
        )

    def test_success_has_no_cause(self) -> None:
        script = leased()
        script.do(1, report("w", success("q/a", output=[1])))
        record = script.record("q/a")
        assert (record["terminal_cause"], record["terminal_at"]) == (None, time_of(1))
        assert (record["output"], record["lease_owner"]) == ([1], None)


class TestCancelFlag:
    @pytest.mark.parametrize("row", [failure("q/a"), returned("q/a"), None])
    def test_it_survives_a_retry_a_return_and_an_expiry(self, row: WireObject | None) -> None:
        script = Script()
        script.do(0, enqueue("q/a", retry={"delays": [0]}))
        script.do(0, claim("q", "w", lease_seconds=5))
        script.do(1, cancel("q/a"))
        if row is None:
            assert script.wait(5).steps == ["lease_expired q/a"]
        else:
            script.do(5, report("w", row))
        assert script.record("q/a")["cancel_requested"] is True
        assert script.do(5, claim("q", "v")).reply["jobs"][0]["cancel_requested"] is True

    @pytest.mark.parametrize(
        "row", [success("q/a"), dead("q/a"), unroutable("q/a"), lease("q/a", outcome="Cancelled")]
    )
    def test_every_end_clears_it(self, row: WireObject) -> None:
        script = leased()
        script.do(1, cancel("q/a"))
        script.do(2, report("w", row))
        assert script.record("q/a")["cancel_requested"] is False

    def test_an_expiry_at_the_ceiling_clears_it(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a", retry={"max_attempts": 1}))
        script.do(0, claim("q", "w", lease_seconds=5))
        script.do(1, cancel("q/a"))
        script.wait(5)
        assert script.record("q/a")["cancel_requested"] is False
        script.do(6, requeue("q/a"))
        assert script.record("q/a")["cancel_requested"] is False


class TestRows:
    def test_each_row_is_followed_by_its_cascade(self) -> None:
        script = Script()
        for key in "ab":
            script.do(0, enqueue(f"q/{key}"))
            script.do(0, enqueue(f"q/child-of-{key}", parents=[f"q/{key}"]))
        script.do(0, claim("q", "w", max_jobs=2))
        printed = script.do(1, report("w", success("q/a"), dead("q/b"), command_id="r"))
        assert printed.steps == [
            "succeeded q/a",
            "released q/child-of-a",
            "dead_lettered q/b",
            "cancelled q/child-of-b",
        ]
        assert {event["cause_command_id"] for event in printed.transitions} == {"r"}
        assert printed.reply["sequence"] == printed.transitions[-1]["sequence"]

    def test_no_rows_are_no_harm(self) -> None:
        assert Script().do(0, report("w")).reply["results"] == []

    def test_rows_of_several_partitions_are_refused_whole(self) -> None:
        script = Script(partitions=4)
        queues = [f"queue-{number}" for number in range(8)]
        for queue in queues:
            script.do(0, enqueue(f"{queue}/a"))
            script.do(0, claim(queue, "w"))
        printed = script.do(1, report("w", *(success(f"{queue}/a") for queue in queues)))
        assert (printed.reply["result"], printed.reply["field"]) == ("Invalid", "outcomes")
        assert printed.transitions == []

    def test_a_bad_row_refuses_the_command_before_its_first_row(self) -> None:
        printed = leased().do(1, report("w", success("q/a"), {"job_id": "q/a", "outcome": "Success"}))
        assert (printed.reply["field"], printed.transitions) == ("outcomes[1].attempt", [])
