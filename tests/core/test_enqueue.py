"""Enqueue: repeats, the order of the checks, bounds, births (contract section 3)."""

from __future__ import annotations

import pytest
from tests.core.playing import Script, cancel, claim, enqueue, report, success, time_of

from tidelog_events.wire import WireObject

DAY = 24 * 3_600


def test_a_resent_enqueue_is_answered_as_the_first_time_until_the_purge() -> None:
    script = Script()
    first = script.do(0, enqueue("q/a", command_id="c"))
    assert (first.reply["result"], first.reply["job_id"]) == ("Ok", "q/a")
    script.do(1, claim("q", "w"))
    assert script.do(2, enqueue("q/a", command_id="c")).reply["result"] == "Ok"
    script.do(3, report("w", success("q/a")))
    resent = script.do(4, enqueue("q/a", command_id="c", wire_name="other", payload=1))
    assert (resent.transitions, resent.reply["result"], resent.reply["job_id"]) == ([], "Ok", "q/a")
    purged = script.do(DAY + 3, enqueue("q/a", command_id="c"))
    assert purged.steps == ["purged q/a", "enqueued q/a"]
    assert purged.transitions[1]["ordinal"] == 0


@pytest.mark.parametrize("repeat", [enqueue("q/a", command_id="d"), enqueue("q/a")])
def test_any_other_repeat_is_a_duplicate_and_leaves_no_trace(repeat: WireObject) -> None:
    script = Script()
    script.do(0, enqueue("q/a", command_id="c", payload=1))
    repeated = script.do(1, {**repeat, "payload": 2, "parents": ["q/unknown"]})
    assert repeated.transitions == []
    assert (repeated.reply["result"], repeated.reply["job_id"]) == ("Duplicate", "q/a")
    assert script.record("q/a")["payload"] == 1


def test_a_cancelled_birth_is_remembered_as_any_other() -> None:
    script = Script()
    script.do(0, enqueue("q/p"))
    script.do(0, cancel("q/p"))
    assert script.do(1, enqueue("q/c", parents=["q/p"], command_id="c")).event["state"] == "Cancelled"
    assert script.do(2, enqueue("q/c", parents=["q/p"], command_id="c")).reply["result"] == "Ok"
    assert script.do(2, enqueue("q/c", command_id="d")).reply["result"] == "Duplicate"


def test_the_checks_come_in_their_order() -> None:
    script = Script()
    script.do(0, enqueue("q/a"))
    wrong: WireObject = {
        "type": "enqueue",
        "payload": "x" * 65_536,
        "wire_name": "w" * 129,
        "parents": [f"q/unknown-{number}" for number in range(17)],
        "job_id": "q/a",
    }
    steps: list[tuple[WireObject, str]] = [
        ({}, "PayloadTooLarge"),
        ({"payload": "x" * 65_534}, "WireNameTooLong"),
        ({"wire_name": "w" * 128}, "TooManyParents"),
        ({"parents": ["q/unknown"]}, "Duplicate"),
        ({"job_id": "q/b"}, "UnknownParent"),
        ({"parents": ["q/a"]}, "Ok"),
    ]
    for mend, result in steps:
        wrong |= mend
        printed = script.do(1, wrong)
        assert printed.reply["result"] == result
        assert bool(printed.transitions) is (result == "Ok")


def test_invalid_comes_before_every_bound() -> None:
    printed = Script().do(0, enqueue("q/a", payload="x" * 70_000, mode="Sometimes"))
    assert (printed.reply["result"], printed.reply["field"]) == ("Invalid", "mode")


def test_a_refusal_names_the_value_and_the_bound() -> None:
    script = Script()
    assert "65537" in script.do(0, enqueue("q/a", payload="x" * 65_535)).reply["message"]
    assert "129" in script.do(0, enqueue("q/a", wire_name="w" * 129)).reply["message"]
    assert "q/p" in script.do(0, enqueue("q/a", parents=["q/p"])).reply["message"]
    assert script.records() == {}


def test_the_payload_is_measured_in_bytes_without_spaces() -> None:
    script = Script()
    assert script.do(0, enqueue("q/a", payload="é" * 32_767)).reply["result"] == "Ok"
    assert script.do(0, enqueue("q/b", payload="é" * 32_768)).reply["result"] == "PayloadTooLarge"
    assert script.do(0, enqueue("q/c", payload=[1] * 32_767)).reply["result"] == "Ok"
    assert script.do(0, enqueue("q/d", payload=[1] * 32_768)).reply["result"] == "PayloadTooLarge"


def test_equal_parents_count_once() -> None:
    script = Script()
    for number in range(16):
        script.do(0, enqueue(f"q/p{number}"))
    parents = [f"q/p{number}" for number in range(16)]
    born = script.do(1, enqueue("q/c", parents=parents * 20))
    assert (born.event["parents"], born.event["parents_remaining"]) == (parents, 16)
    assert script.do(1, enqueue("q/d", parents=[*parents, "q/c"])).reply["result"] == "TooManyParents"


def test_a_job_that_names_itself_has_an_unknown_parent() -> None:
    script = Script()
    printed = script.do(0, enqueue("q/a", parents=["q/a"]))
    assert (printed.reply["result"], printed.transitions) == ("UnknownParent", [])
    assert script.do(1, enqueue("q/a")).reply["result"] == "Ok"
    assert script.do(2, enqueue("q/a", parents=["q/a"])).reply["result"] == "Duplicate"


def test_an_unknown_parent_comes_before_a_failed_one() -> None:
    script = Script()
    script.do(0, enqueue("q/p"))
    script.do(0, cancel("q/p"))
    assert script.do(1, enqueue("q/c", parents=["q/p", "q/x"])).reply["result"] == "UnknownParent"


def test_only_open_parents_are_counted_at_birth() -> None:
    script = Script()
    for key in ("q/done", "q/live"):
        script.do(0, enqueue(key))
    script.do(0, claim("q", "w"))
    script.do(0, report("w", success("q/done")))
    born = script.do(1, enqueue("q/c", parents=["q/done", "q/live"], due_time=time_of(5)))
    assert (born.event["state"], born.event["parents_remaining"]) == ("AwaitingParent", 1)
    due_now = script.do(1, enqueue("q/d", parents=["q/done"], due_time=time_of(0)))
    assert (due_now.event["state"], due_now.event["due_time"]) == ("Scheduled", time_of(0))


def test_the_first_failed_parent_of_the_list_is_the_cause() -> None:
    script = Script()
    for key in ("q/a", "q/b"):
        script.do(0, enqueue(key))
    script.do(0, claim("q", "w", max_jobs=2))
    script.do(0, report("w", {"job_id": "q/a", "attempt": 1, "outcome": "Unroutable", "reason": "r"}))
    script.do(0, report("w", {"job_id": "q/b", "attempt": 1, "outcome": "Cancelled"}))
    for parents, cause in [(["q/b", "q/a"], "Cancelled"), (["q/a", "q/b"], "Quarantined")]:
        born = script.do(1, enqueue(f"q/{cause}", parents=parents, due_time=time_of(99))).event
        assert (born["state"], born["terminal_cause"]) == ("Cancelled", f"parent-failure:{cause}")
        assert (born["terminal_at"], born["parents_remaining"]) == (time_of(1), 0)


def test_the_queue_is_said_or_comes_with_the_id() -> None:
    script = Script()
    assert script.do(0, {"type": "enqueue", "wire_name": "w"}).event["queue"] == "default"
    assert script.do(0, enqueue("billing/a")).event["queue"] == "billing"
    assert script.do(0, enqueue("billing/b", queue="billing")).event["queue"] == "billing"
    refused = script.do(0, enqueue("billing/c", queue="mail"))
    assert (refused.reply["result"], refused.reply["field"]) == ("Invalid", "job_id")


def test_an_actor_is_written_down_and_no_absent_one() -> None:
    script = Script()
    assert script.do(0, enqueue("q/a", actor="ann")).event["actor"] == "ann"
    assert "actor" not in script.do(0, enqueue("q/b")).event
