"""What operators do: cancel, requeue, pause, resume, limit (contract section 3)."""

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
    limit,
    pause,
    report,
    requeue,
    resume,
    success,
    time_of,
    unroutable,
)


class TestCancel:
    def test_a_scheduled_job_is_cancelled_by_whoever_asked(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        printed = script.do(1, cancel("q/a", actor="ann"))
        assert printed.reply["result"] == "CancelledImmediately"
        assert (printed.event["terminal_cause"], printed.event["actor"]) == ("ann", "ann")
        assert script.do(2, claim("q", "w")).granted == []

    def test_without_an_actor_it_was_an_operator(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        event = script.do(1, cancel("q/a")).event
        assert event["terminal_cause"] == "operator-cancel"
        assert "actor" not in event

    def test_a_waiting_job_is_cancelled_and_no_longer_waited_with(self) -> None:
        script = Script()
        script.do(0, enqueue("q/p"))
        script.do(0, enqueue("q/c", parents=["q/p"]))
        script.do(1, cancel("q/c"))
        assert script.record("q/c")["parents_remaining"] == 0
        assert script.do(2, cancel("q/p")).steps == ["cancelled q/p"]

    def test_the_owner_of_a_leased_job_is_told_at_once(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        granted = script.do(0, claim("q", "w", reply_to="inbox")).reply["jobs"][0]
        printed = script.do(1, cancel("q/a", actor="ann", command_id="c"))
        assert printed.steps == ["cancel_requested q/a"]
        assert printed.event["actor"] == "ann"
        assert "ordinal" not in printed.event
        answer, push = printed.replies
        assert (answer["command_id"], answer["result"]) == ("c", "CancellationRequested")
        assert push == {
            "command_id": None,
            "type": "cancel_requested",
            "worker_id": "w",
            "job_id": "q/a",
            "attempt": 1,
            "lease": granted["lease"],
            "partition": 0,
            "sequence": printed.event["sequence"],
        }
        beat = script.do(2, heartbeat("w", lease("q/a")))
        assert beat.reply["leases"][0]["cancel_requested"] is True

    def test_a_repeated_request_is_written_and_told_again(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        script.do(0, claim("q", "w"))
        for at in (1, 2):
            printed = script.do(at, cancel("q/a"))
            assert printed.steps == ["cancel_requested q/a"]
            assert len(printed.replies) == 2

    def test_a_handler_that_finishes_all_the_same_has_succeeded(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        script.do(0, claim("q", "w"))
        script.do(1, cancel("q/a"))
        assert script.do(2, report("w", success("q/a"))).event["type"] == "succeeded"
        assert script.do(3, cancel("q/a")).reply["result"] == "NotCancellable"

    @pytest.mark.parametrize("job_id", ["q/unknown", "q/ended"])
    def test_what_has_ended_or_never_was_is_not_cancellable(self, job_id: str) -> None:
        script = Script()
        script.do(0, enqueue("q/ended"))
        script.do(0, cancel("q/ended"))
        printed = script.do(1, cancel(job_id))
        assert (printed.reply["result"], printed.transitions) == ("NotCancellable", [])

    def test_a_retry_that_waits_for_its_time_is_cancelled_at_once(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        script.do(0, claim("q", "w"))
        script.do(1, report("w", failure("q/a", next_due=time_of(50))))
        assert script.do(2, cancel("q/a")).reply["result"] == "CancelledImmediately"
        assert script.do(60, claim("q", "w")).granted == []


class TestRequeue:
    @pytest.mark.parametrize("row", [dead("q/a"), unroutable("q/a")])
    def test_a_dead_lettered_or_quarantined_job_starts_again(self, row: dict[str, object]) -> None:
        script = Script()
        script.do(0, enqueue("q/a", due_time=time_of(0), tags=["t"]))
        script.do(0, claim("q", "w"))
        script.do(1, report("w", row))
        printed = script.do(5, requeue("q/a", actor="ann"))
        event = printed.event
        assert (printed.reply["result"], event["state"], event["attempt"]) == ("Requeued", "Scheduled", 0)
        assert (event["due_time"], event["actor"], event["ordinal"]) == (time_of(5), "ann", 3)
        record = script.record("q/a")
        assert (record["terminal_at"], record["terminal_cause"], record["tags"]) == (None, None, ["t"])

    def test_nothing_else_is_requeueable(self) -> None:
        script = Script()
        script.do(0, enqueue("q/scheduled", due_time=time_of(99)))
        script.do(0, enqueue("q/waiting", parents=["q/scheduled"]))
        script.do(0, enqueue("q/cancelled"))
        script.do(0, cancel("q/cancelled"))
        script.do(0, enqueue("q/succeeded"))
        script.do(0, claim("q", "w"))
        script.do(0, report("w", success("q/succeeded")))
        script.do(0, enqueue("q/leased"))
        script.do(0, claim("q", "w"))
        for key in ("scheduled", "waiting", "cancelled", "succeeded", "leased", "unknown"):
            printed = script.do(1, requeue(f"q/{key}"))
            assert (printed.reply["result"], printed.transitions) == ("NotRequeueable", [])

    def test_earlier_children_are_not_revisited(self) -> None:
        script = Script()
        script.do(0, enqueue("q/p"))
        script.do(0, enqueue("q/c", parents=["q/p"]))
        script.do(0, claim("q", "w"))
        script.do(1, report("w", dead("q/p")))
        assert script.do(2, requeue("q/p")).steps == ["requeued q/p"]
        script.do(2, claim("q", "w"))
        assert script.do(3, report("w", success("q/p"))).steps == ["succeeded q/p"]
        assert script.record("q/c")["state"] == "Cancelled"

    def test_a_parked_claim_gets_it(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        script.do(0, claim("q", "w"))
        script.do(1, report("w", dead("q/a")))
        script.do(2, claim("q", "w", wait_seconds=9))
        assert script.do(3, requeue("q/a")).steps == ["requeued q/a", "leased q/a"]


class TestQueueControls:
    def test_every_repeat_is_written(self) -> None:
        script = Script()
        for command, step in [
            (pause("q", actor="ann"), "queue_paused q"),
            (resume("q", actor="ann"), "queue_resumed q"),
            (limit("q", 3, actor="ann"), "concurrency_limit_set q"),
            (limit("q", None, actor="ann"), "concurrency_limit_set q"),
        ]:
            for _ in range(2):
                printed = script.do(0, command)
                assert (printed.steps, printed.reply["result"]) == ([step], "Ok")
                assert printed.event["actor"] == "ann"

    def test_a_paused_queue_goes_on_with_what_is_leased(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        script.do(0, claim("q", "w"))
        script.do(1, pause("q"))
        assert script.do(2, heartbeat("w", lease("q/a"))).reply["leases"][0]["renewed"] is True
        assert script.do(3, report("w", success("q/a"))).reply["results"] == ["Applied"]

    def test_a_pause_and_a_limit_hold_together(self) -> None:
        script = Script()
        for number in range(3):
            script.do(0, enqueue(f"q/{number}"))
        script.do(0, pause("q"))
        script.do(0, limit("q", 2))
        assert script.do(1, claim("q", "w", max_jobs=9)).granted == []
        script.do(2, resume("q"))
        assert len(script.do(2, claim("q", "w", max_jobs=9)).granted) == 2

    def test_the_limit_must_be_said(self) -> None:
        script = Script()
        printed = script.do(0, {"type": "set_concurrency_limit", "queue": "q"})
        assert (printed.reply["result"], printed.reply["field"]) == ("Invalid", "limit")
        assert script.do(0, limit("q", 0)).reply["field"] == "limit"
