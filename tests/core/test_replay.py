"""`tidelog replay`: its input, virtual time, and sameness (contract section 6)."""

from __future__ import annotations

import json

import orjson
import pytest
from tests.core.playing import Script, claim, enqueue, failure, report, success, time_of

from tidelog.core.replay import BadInput, Replay


def run(*lines: str, partitions: int = 1) -> list[bytes]:
    return list(Replay(partitions).run(line.encode() for line in lines))


def lines_of(*commands: tuple[float, object]) -> list[str]:
    return [json.dumps({"at": at, "command": command}) for at, command in commands]


@pytest.mark.parametrize(
    "bad",
    [
        "{",
        "[]",
        "{}",
        '{"command": {}}',
        '{"at": 1, "extra": 1}',
        '{"at": null}',
        '{"at": true}',
        '{"at": "2026-01-01"}',
        '{"at": "2026-01-01T00:00:00"}',
        '{"at": "2026-01-01T24:00:00Z"}',
        '{"at": NaN}',
        '{"at": 1e308}',
        '{"at": -1e308}',
        f'{{"at": {10**400}}}',
        f'{{"at": -{"9" * 5_000}}}',
        '{"at": 9, "down_until": 8}',
        '{"at": 9, "down_until": null}',
        '{"at": 9, "down_until": 10, "command": {"type": "claim"}}',
        '{"at": 4}',
    ],
)
def test_bad_input_names_its_line_after_what_came_before(bad: str) -> None:
    replay = Replay()
    good = lines_of((5, enqueue("q/a")))[0]
    printed = replay.run([good.encode(), b"  ", bad.encode()])
    assert [next(printed), next(printed)] == list(Replay().run([good.encode()]))
    with pytest.raises(BadInput, match=r"^line 3: "):
        next(printed)


def test_lines_before_the_end_of_an_absence_are_bad_input() -> None:
    script = Script()
    script.away(5, 10)
    with pytest.raises(BadInput, match="line 2"):
        script.wait(9)


@pytest.mark.parametrize("command", [[], "claim", 7, {}, {"type": None}, {"type": "nothing"}])
def test_a_malformed_command_is_a_reply_and_no_bad_input(command: object) -> None:
    reply = Script().do(0, command).reply
    assert (reply["result"], reply["field"], reply["command_id"]) == ("Invalid", "type", "1")


def test_a_command_without_an_id_gets_the_number_of_its_line() -> None:
    printed = run("", *lines_of((0, enqueue("q/a"))))
    assert orjson.loads(printed[1])["reply"]["command_id"] == "2"


def test_every_reply_is_printed_whether_somebody_asked_for_it_or_not() -> None:
    assert len(Script().do(0, claim("q", "w", reply_to="inbox")).replies) == 1
    assert len(Script().do(0, claim("q", "w")).replies) == 1


def test_minted_ids_are_uuids_of_version_7_and_the_same_in_every_run() -> None:
    lines = lines_of(*[(number // 3, {"type": "enqueue", "wire_name": "w"}) for number in range(9)])
    first, second = run(*lines), run(*lines)
    assert first == second
    ids = [orjson.loads(line)["reply"]["job_id"] for line in first if b'"reply"' in line]
    assert len(set(ids)) == 9
    for job_id in ids:
        queue, key = job_id.split("/")
        assert (queue, len(key), key[12]) == ("default", 32, "7")
        assert key[16] in "89ab"
    assert ids[0].startswith("default/" + f"{1_767_225_600_000:012x}")


def test_time_is_read_in_all_its_forms() -> None:
    script = Script()
    assert script.do(0.5, enqueue("q/a")).event["at"] == "2026-01-01T00:00:00.500000Z"
    at = script.do("2026-01-01T02:00:01.25+02:00", enqueue("q/b")).event["at"]
    assert at == "2026-01-01T00:00:01.250000Z"
    assert Script().do(-1, enqueue("q/a")).event["at"] == "2025-12-31T23:59:59Z"


def test_timers_after_the_last_line_do_not_fire() -> None:
    script = Script()
    script.do(0, enqueue("q/a"))
    script.do(0, claim("q", "w", lease_seconds=1))
    assert script.record("q/a")["state"] == "Leased"


def test_between_lines_each_timer_fires_at_its_own_instant() -> None:
    script = Script()
    script.do(0, enqueue("q/a", retry={"max_attempts": 2, "delays": [3]}))
    script.do(0, claim("q", "w", lease_seconds=2))
    script.do(0, claim("q", "v", wait_seconds=10, lease_seconds=4))
    printed = script.wait(1_000)
    assert [(event["type"], event["at"]) for event in printed.transitions] == [
        ("lease_expired", time_of(2)),
        ("leased", time_of(5)),
        ("lease_expired", time_of(9)),
    ]


def test_timers_fire_before_a_command_of_the_same_instant() -> None:
    script = Script()
    script.do(0, enqueue("q/a"))
    script.do(0, claim("q", "w", lease_seconds=2))
    printed = script.do(2, report("w", success("q/a")))
    assert printed.steps == ["lease_expired q/a"]
    assert printed.reply["results"] == ["StaleLease"]


class TestAbsence:
    def test_what_fell_due_in_between_is_handled_at_its_end(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a", retry={"delays": [3]}))
        script.do(0, claim("q", "w", lease_seconds=2))
        assert script.away(1, 60).event["at"] == time_of(60)
        assert script.do(60, claim("q", "w")).reply["next_due"] == time_of(63)

    def test_what_is_due_at_its_very_beginning_is_handled_then(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        script.do(0, claim("q", "w", lease_seconds=2))
        assert script.away(2, 60).event["at"] == time_of(2)

    def test_a_wait_that_ended_meanwhile_is_first_offered_what_is_due(self) -> None:
        script = Script()
        script.do(0, claim("q", "w", wait_seconds=5, command_id="gets"))
        script.do(0, claim("q", "v", wait_seconds=5, command_id="nothing"))
        script.do(0, enqueue("q/a", due_time=time_of(30)))
        printed = script.away(1, 60)
        assert [(reply["command_id"], len(reply["jobs"])) for reply in printed.replies] == [
            ("gets", 1),
            ("nothing", 0),
        ]

    def test_an_empty_absence_is_allowed(self) -> None:
        assert Script().away(5, 5).lines == []


def test_queues_are_spread_over_partitions_each_with_its_own_sequence() -> None:
    script = Script(partitions=4)
    seen: dict[int, list[int]] = {}
    for number in range(40):
        event = script.do(0, enqueue(f"queue-{number % 8}/{number}")).event
        seen.setdefault(event["partition"], []).append(event["sequence"])
    assert len(seen) > 1
    assert all(sequences == list(range(len(sequences))) for sequences in seen.values())


def test_records_are_sorted_by_id_and_have_every_field() -> None:
    script = Script(partitions=3)
    for key in ("b/1", "a/2", "a/1"):
        script.do(0, enqueue(key))
    records = script.records()
    assert list(records) == ["a/1", "a/2", "b/1"]
    assert records["a/1"] == {
        "job_id": "a/1",
        "queue": "a",
        "wire_name": "work",
        "state": "Scheduled",
        "attempt": 0,
        "returned": 0,
        "enqueue_sequence": records["a/1"]["sequence"],
        "due_time": time_of(0),
        "mode": "OnSuccess",
        "parents_remaining": 0,
        "lease_owner": None,
        "lease_expiry": None,
        "cancel_requested": False,
        "terminal_at": None,
        "terminal_cause": None,
        "payload": None,
        "output": None,
        "tags": [],
        "retry": {"max_attempts": 10, "delays": None},
        "trace_context": None,
        "workflow_id": None,
        "schedule_id": None,
        "enqueued_at": time_of(0),
        "updated_at": time_of(0),
        "partition": records["a/1"]["partition"],
        "sequence": records["a/1"]["sequence"],
    }


def test_a_reply_carries_the_last_event_or_minus_one() -> None:
    script = Script()
    assert script.do(0, claim("q", "w")).reply["sequence"] == -1
    script.do(0, enqueue("q/a"))
    assert script.do(0, enqueue("q/a")).reply["sequence"] == 0


def test_payloads_keep_every_digit() -> None:
    script = "".join(lines_of((0, {**enqueue("q/a"), "payload": "@"}))).replace(
        '"@"', '[123456789012345678901234567890, 1.0, "\\u0000", {"a": 1, "a": 2}]'
    )
    printed = b"".join(run(script))
    assert b'[123456789012345678901234567890,1.0,"\\u0000",{"a":2}]' in printed


def test_a_failure_far_in_time_is_still_a_time() -> None:
    script = Script()
    script.do(0, enqueue("q/a"))
    script.do(0, claim("q", "w"))
    event = script.do(0, report("w", failure("q/a", next_due="9999-12-31T23:59:59.999999Z"))).event
    assert event["due_time"] == "9999-12-31T23:59:59.999999Z"
