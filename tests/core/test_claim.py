"""Claims: their order, what they are answered, parking (contract section 3, Claim order)."""

from __future__ import annotations

import orjson
import pytest
from tests.core.playing import (
    Script,
    cancel,
    claim,
    enqueue,
    failure,
    limit,
    pause,
    report,
    resume,
    returned,
    success,
    time_of,
)

from tidelog.core.decide import decide
from tidelog.core.decision import Addressed
from tidelog.core.state import PartitionState
from tidelog_events.bounds import MAX_REPLY_BYTES
from tidelog_events.codec import encode_answer
from tidelog_events.commands import COMMANDS_BY_TYPE
from tidelog_events.identity import Partition
from tidelog_events.instants import Instant
from tidelog_events.replies import ClaimReply
from tidelog_events.wire import WireObject


def parked(script: Script, at: float, queue: str, worker: str, **fields: object) -> None:
    """Park a claim, and see that it was."""
    assert script.do(at, claim(queue, worker, **{"wait_seconds": 100, **fields})).lines == []


def test_work_is_granted_by_due_time_then_by_enqueue_order() -> None:
    script = Script()
    for key, due in [("late", 3), ("first", 1), ("second", 1), ("past", 0)]:
        script.do(0, enqueue(f"q/{key}", due_time=time_of(due)))
    granted = script.do(3, claim("q", "w", max_jobs=10)).granted
    assert granted == ["q/past", "q/first", "q/second", "q/late"]


def test_a_retry_takes_its_place_by_its_due_time_and_first_enqueue() -> None:
    script = Script()
    script.do(0, enqueue("q/a"))
    script.do(0, claim("q", "w"))
    script.do(0, enqueue("q/b", due_time=time_of(5)))
    script.do(1, report("w", failure("q/a", next_due=time_of(5))))
    assert script.do(5, claim("q", "w", max_jobs=2)).granted == ["q/a", "q/b"]


def test_only_a_claim_raises_the_attempt() -> None:
    script = Script()
    script.do(0, enqueue("q/a", retry={"max_attempts": 9, "delays": [0]}))
    for attempt in (1, 2, 3):
        printed = script.do(0, claim("q", "w"))
        assert (printed.event["attempt"], printed.reply["jobs"][0]["attempt"]) == (attempt, attempt)
        ended = script.do(0, report("w", failure("q/a", attempt) if attempt < 3 else returned("q/a", 3)))
        assert ended.event["attempt"] == attempt
    assert script.record("q/a")["attempt"] == 3


def test_a_grant_carries_all_that_a_handler_needs() -> None:
    script = Script()
    script.do(
        0,
        enqueue(
            "q/a",
            payload={"n": 10**30},
            tags=["x", {"k": "v"}],
            retry={"max_attempts": 2, "delays": [0.5]},
            trace_context="00-1",
            workflow_id="flow",
            schedule_id="q/s",
        ),
    )
    printed = script.do(1, claim("q", "w", lease_seconds=9))
    assert printed.reply["jobs"] == [
        {
            "job_id": "q/a",
            "queue": "q",
            "wire_name": "work",
            "payload": {"n": orjson.loads(str(10**30))},
            "attempt": 1,
            "lease": printed.event["sequence"],
            "lease_expiry": time_of(10),
            "cancel_requested": False,
            "due_time": time_of(0),
            "tags": ["x", {"k": "v"}],
            "retry": {"max_attempts": 2, "delays": [0.5]},
            "trace_context": "00-1",
            "workflow_id": "flow",
            "schedule_id": "q/s",
        }
    ]


def test_at_most_500_jobs_are_granted_whatever_is_asked_for() -> None:
    script = Script()
    for number in range(502):
        script.do(0, enqueue(f"q/{number}"))
    printed = script.do(0, claim("q", "w", max_jobs=10**400))
    assert len(printed.granted) == 500
    assert printed.replies[-1]["next_due"] == time_of(0)


class TestNextDue:
    def test_nothing_is_scheduled(self) -> None:
        script = Script()
        assert script.do(0, claim("q", "w")).reply["next_due"] is None
        script.do(0, enqueue("q/a"))
        assert script.do(0, claim("q", "w")).reply["next_due"] is None

    def test_work_falls_due_later(self) -> None:
        script = Script()
        script.do(0, enqueue("q/b", due_time=time_of(9)))
        script.do(0, enqueue("q/a", due_time=time_of(7)))
        assert script.do(1, claim("q", "w")).reply["next_due"] == time_of(7)

    def test_due_work_is_left_over_because_of_max_jobs(self) -> None:
        script = Script()
        for key in "ab":
            script.do(0, enqueue(f"q/{key}"))
        assert script.do(5, claim("q", "w")).reply["next_due"] == time_of(5)

    def test_due_work_is_left_over_because_of_the_limit(self) -> None:
        script = Script()
        script.do(0, limit("q", 1))
        for key in "ab":
            script.do(0, enqueue(f"q/{key}"))
        script.do(0, claim("q", "w"))
        printed = script.do(5, claim("q", "w"))
        assert (printed.granted, printed.reply["next_due"]) == ([], time_of(5))

    def test_the_queue_is_paused(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        script.do(0, pause("q"))
        assert script.do(1, claim("q", "w")).reply["next_due"] is None

    def test_a_cancelled_job_does_not_count(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a", due_time=time_of(3)))
        script.do(0, enqueue("q/b", due_time=time_of(8)))
        script.do(0, cancel("q/a"))
        assert script.do(1, claim("q", "w")).reply["next_due"] == time_of(8)


class TestLimit:
    def test_it_bounds_the_leases_of_all_workers_together(self) -> None:
        script = Script()
        script.do(0, limit("q", 2))
        for number in range(4):
            script.do(0, enqueue(f"q/{number}"))
        assert len(script.do(0, claim("q", "w", max_jobs=9)).granted) == 2
        assert script.do(0, claim("q", "v", max_jobs=9)).granted == []
        script.do(0, report("w", success("q/0")))
        assert script.do(0, claim("q", "v", max_jobs=9)).granted == ["q/2"]

    def test_a_lowered_one_takes_nothing_away_and_grants_nothing_until_there_is_room(self) -> None:
        script = Script()
        for number in range(4):
            script.do(0, enqueue(f"q/{number}"))
        script.do(0, claim("q", "w", max_jobs=3))
        script.do(1, limit("q", 1))
        assert script.record("q/2")["state"] == "Leased"
        script.do(2, report("w", success("q/0"), success("q/1")))
        assert script.do(2, claim("q", "w")).granted == []
        script.do(3, report("w", success("q/2")))
        assert script.do(3, claim("q", "w")).granted == ["q/3"]

    def test_other_queues_are_not_bounded(self) -> None:
        script = Script()
        script.do(0, limit("q", 1))
        for key in ("q/a", "r/a", "r/b"):
            script.do(0, enqueue(key))
        assert script.do(0, claim("r", "w", max_jobs=9)).granted == ["r/a", "r/b"]


class TestParking:
    def test_an_enqueue_serves_it_after_its_own_reply(self) -> None:
        script = Script()
        parked(script, 0, "q", "w", command_id="c")
        printed = script.do(5, enqueue("q/a", command_id="e"))
        assert printed.steps == ["enqueued q/a", "leased q/a"]
        assert [reply["command_id"] for reply in printed.replies] == ["e", "c"]
        assert printed.to("e")["sequence"] == 0, "the events of a served claim are not the enqueue's"
        assert printed.to("c")["sequence"] == 1
        assert printed.transitions[1]["cause_command_id"] == "c", "a lease goes back to its claim"

    def test_claims_are_served_in_the_order_of_parking_each_once(self) -> None:
        script = Script()
        for worker in "xyz":
            parked(script, 0, "q", worker, max_jobs=2, command_id=worker)
        for number in range(3):
            script.do(1, enqueue(f"q/{number}", due_time=time_of(5)))
        printed = script.wait(5)
        assert [reply["command_id"] for reply in printed.replies] == ["x", "y"]
        assert [len(reply["jobs"]) for reply in printed.replies] == [2, 1]
        assert script.do(6, enqueue("q/3")).to("z")["jobs"][0]["job_id"] == "q/3"

    def test_over_several_queues_the_order_of_parking_holds(self) -> None:
        script = Script()
        for queue in "bac":
            parked(script, 0, queue, "w", command_id=queue)
        for queue in "abc":
            script.do(1, enqueue(f"{queue}/1", due_time=time_of(5)))
        assert [reply["command_id"] for reply in script.wait(5).replies] == ["b", "a", "c"]

    def test_a_newer_claim_of_the_worker_and_queue_replaces_it_answered_empty_first(self) -> None:
        script = Script()
        parked(script, 0, "q", "w", command_id="old")
        parked(script, 0, "q", "v", command_id="other")
        printed = script.do(1, claim("q", "w", wait_seconds=100, command_id="new"))
        assert [(reply["command_id"], reply["jobs"]) for reply in printed.replies] == [("old", [])]
        served = script.do(2, enqueue("q/a"))
        assert served.to("other")["jobs"], "the newer claim stands at the end of the line"
        assert script.do(3, enqueue("q/b")).to("new")["jobs"]

    def test_a_replacement_without_a_wait_answers_both(self) -> None:
        script = Script()
        parked(script, 0, "q", "w", command_id="old")
        printed = script.do(1, claim("q", "w", command_id="new"))
        assert [reply["command_id"] for reply in printed.replies] == ["old", "new"]
        assert script.do(2, enqueue("q/a")).granted == []

    def test_an_invalid_claim_replaces_nothing(self) -> None:
        script = Script()
        parked(script, 0, "q", "w", command_id="old")
        assert script.do(1, claim("q", "w", max_jobs=0)).reply["result"] == "Invalid"
        assert script.do(2, enqueue("q/a")).to("old")["jobs"]

    def test_a_claim_on_another_queue_replaces_nothing(self) -> None:
        script = Script()
        parked(script, 0, "q", "w")
        parked(script, 0, "r", "w")
        assert script.do(1, enqueue("q/a")).granted == ["q/a"]
        assert script.do(1, enqueue("r/a")).granted == ["r/a"]

    def test_it_is_answered_empty_at_the_end_of_its_wait(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a", due_time=time_of(50)))
        parked(script, 0, "q", "w", wait_seconds=2.5)
        assert script.wait("2026-01-01T00:00:02.499999Z").lines == []
        ended = script.wait("2026-01-01T00:00:02.500000Z")
        assert (ended.reply["jobs"], ended.reply["next_due"]) == ([], time_of(50))
        assert script.wait(60).lines == []

    def test_work_due_at_the_very_end_of_the_wait_is_granted(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a", due_time=time_of(5)))
        parked(script, 0, "q", "w", wait_seconds=5)
        printed = script.wait(5)
        assert printed.granted == ["q/a"]
        assert len(printed.replies) == 1

    def test_a_command_at_the_end_of_the_wait_comes_too_late(self) -> None:
        script = Script()
        parked(script, 0, "q", "w", wait_seconds=5, command_id="c")
        printed = script.do(5, enqueue("q/a", command_id="e"))
        assert [reply["command_id"] for reply in printed.replies] == ["c", "e"]
        assert printed.granted == []

    def test_waits_that_end_together_end_in_the_order_of_parking(self) -> None:
        script = Script()
        parked(script, 0, "r", "w", wait_seconds=5, command_id="first")
        parked(script, 2, "q", "w", wait_seconds=3, command_id="second")
        assert [reply["command_id"] for reply in script.wait(5).replies] == ["first", "second"]

    @pytest.mark.parametrize("opener", [limit("q", 2), limit("q", None), resume("q")])
    def test_more_room_or_a_resumed_queue_serves_it(self, opener: WireObject) -> None:
        script = Script()
        script.do(0, limit("q", 1))
        script.do(0, enqueue("q/held"))
        script.do(0, claim("q", "w"))
        if opener["type"] == "resume_queue":
            script.do(0, limit("q", None))
            script.do(0, pause("q"))
        script.do(0, enqueue("q/a"))
        parked(script, 1, "q", "w", command_id="c")
        printed = script.do(2, {**opener, "command_id": "o"})
        assert [reply["command_id"] for reply in printed.replies] == ["o", "c"]
        assert printed.granted == ["q/a"]

    def test_a_retry_that_falls_due_serves_it(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a", retry={"delays": [7]}))
        script.do(0, claim("q", "w"))
        script.do(0, report("w", failure("q/a")))
        parked(script, 1, "q", "w")
        assert script.wait(6.9).lines == []
        assert script.wait(7).granted == ["q/a"]

    def test_a_lease_that_expires_serves_it(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a", retry={"delays": [0]}))
        script.do(0, claim("q", "w", lease_seconds=3))
        parked(script, 1, "q", "v")
        assert script.wait(3).steps == ["lease_expired q/a", "leased q/a"]

    def test_the_end_of_a_lease_under_a_limit_serves_it(self) -> None:
        script = Script()
        script.do(0, limit("q", 1))
        for key in "ab":
            script.do(0, enqueue(f"q/{key}"))
        script.do(0, claim("q", "w", lease_seconds=3))
        parked(script, 1, "q", "v", command_id="c")
        printed = script.do(2, report("w", success("q/a"), command_id="r"))
        assert printed.steps == ["succeeded q/a", "leased q/b"]
        assert [reply["command_id"] for reply in printed.replies] == ["r", "c"]

    def test_a_paused_queue_keeps_it_waiting_until_its_end(self) -> None:
        script = Script()
        script.do(0, pause("q"))
        parked(script, 0, "q", "w", wait_seconds=5)
        script.do(1, enqueue("q/a"))
        ended = script.wait(5)
        assert (ended.granted, ended.reply["next_due"]) == ([], None)

    def test_a_returned_job_goes_to_the_claim_that_waits(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        script.do(0, claim("q", "w"))
        parked(script, 1, "q", "v")
        printed = script.do(2, report("w", returned("q/a")))
        assert printed.steps == ["returned q/a", "leased q/a"]
        assert printed.transitions[1]["attempt"] == 2


class TestLargeGrants:
    @staticmethod
    def _pieces(jobs: int, **fields: object) -> list[ClaimReply]:
        state = PartitionState(Partition(0), 1)

        def do(command: WireObject) -> list[ClaimReply]:
            parsed = COMMANDS_BY_TYPE[command["type"]].model_validate({**command, "command_id": "c" * 100})
            outputs = decide(state, parsed, Instant(0), (0,)).outputs
            answers = [output.answer for output in outputs if isinstance(output, Addressed)]
            return [answer for answer in answers if isinstance(answer, ClaimReply)]

        for number in range(jobs):
            do(enqueue(f"q/{number}", **fields))
        return do(claim("q", "w" * 200, max_jobs=500))

    @pytest.mark.parametrize(
        "fields",
        [
            {"payload": "x" * 65_534},
            {"payload": "é" * 32_000, "trace_context": "\x01" * 450, "workflow_id": "\x01" * 200},
            {"tags": [{f"{number:03}" + "\x01" * 197: "\x02" * 200} for number in range(32)]},
            {"wire_name": "\x00" * 128, "tags": [f"{number:02}" + "😀" * 198 for number in range(32)]},
            {"retry": {"delays": [999_999_999.123456] * 20}},
        ],
    )
    def test_no_piece_is_over_the_bound_and_nothing_is_lost(self, fields: WireObject) -> None:
        pieces = self._pieces(40, **fields)
        assert all(len(encode_answer(piece)) <= MAX_REPLY_BYTES for piece in pieces)
        assert [job.job_id for piece in pieces for job in piece.jobs] == [
            f"q/{number}" for number in range(40)
        ]
        assert all(piece.more for piece in pieces[:-1])
        assert pieces[-1].more is None
        assert {piece.command_id for piece in pieces} == {"c" * 100}

    def test_a_grant_is_not_cut_smaller_than_needed(self) -> None:
        assert len(self._pieces(7, payload="x" * 65_534)) == 1
        assert len(self._pieces(8, payload="x" * 65_534)) == 2
