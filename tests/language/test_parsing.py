"""Which commands are `Invalid`, and which field is named: contract section 3, in its order."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.language.samples import COMMANDS

from tidelog_events.commands import (
    COMMANDS_BY_TYPE,
    CancelledOutcome,
    Claim,
    Command,
    Enqueue,
    Failure,
    Heartbeat,
    Report,
    SetConcurrencyLimit,
    Success,
)
from tidelog_events.identity import partition_of
from tidelog_events.instants import parse_instant
from tidelog_events.jsontext import Json, loads
from tidelog_events.parsing import NotACommand, Refusal, parse_command, read_object
from tidelog_events.states import DependencyMode

JsonObject = dict[str, Json]
TWO_POW_53 = 2**53


def enqueue(**fields: Json) -> JsonObject:
    return {"type": "enqueue", "wire_name": "w", **fields}


def claim(**fields: Json) -> JsonObject:
    return {"type": "claim", "worker_id": "w1", "queue": "q", **fields}


def heartbeat(*rows: Json, **fields: Json) -> JsonObject:
    return {"type": "heartbeat", "worker_id": "w1", "leases": list(rows), **fields}


def report(*rows: Json, **fields: Json) -> JsonObject:
    return {"type": "report", "worker_id": "w1", "outcomes": list(rows), **fields}


def put_schedule(**fields: Json) -> JsonObject:
    return {"type": "put_schedule", "schedule_id": "q/s", "cron": "* * * * *", "wire_name": "w", **fields}


def lease(**fields: Json) -> JsonObject:
    return {"job_id": "q/1", "attempt": 1, **fields}


def success(**fields: Json) -> JsonObject:
    return lease(outcome="Success", **fields)


def failure(**fields: Json) -> JsonObject:
    return lease(**{"outcome": "Failure", "error": "e", **fields})


def limit(**fields: Json) -> JsonObject:
    return {"type": "set_concurrency_limit", "queue": "q", **fields}


def without(fields: JsonObject, name: str) -> JsonObject:
    return {key: value for key, value in fields.items() if key != name}


def parse(fields: JsonObject) -> Command | Refusal:
    """As the engine does it, from bytes."""
    return parse_command(read_object(json.dumps(fields).encode()))


def accepted(fields: JsonObject) -> Command:
    command = parse(fields)
    assert not isinstance(command, Refusal), command
    return command


def refused(fields: JsonObject) -> Refusal:
    refusal = parse(fields)
    assert isinstance(refusal, Refusal), refusal
    return refusal


def deep(levels: int) -> Json:
    value: Json = 1
    for _ in range(levels):
        value = [value]
    return value


INVALID: list[tuple[str, JsonObject]] = [
    # the type
    ("type", {}),
    ("type", {"type": None}),
    ("type", {"type": 5}),
    ("type", {"type": ["enqueue"]}),
    ("type", {"type": "frobnicate"}),
    ("type", {"type": "Enqueue", "wire_name": "w"}),
    ("type", {"type": "frobnicate", "zone": 1, "command_id": 5}),
    # unknown fields, as sent, before every other
    ("priority", enqueue(priority=5)),
    ("priority", enqueue(priority=None)),
    ("zone", enqueue(zone=1, payload_=2, command_id=5, wire_name="")),
    ("payload_", enqueue(payload_=2, zone=1)),
    ("Queue", claim(Queue="q")),
    ("", enqueue(**{"": 1})),
    ("cause", {"type": "cancel", "job_id": "q/1", "cause": "x"}),
    # what every command may carry
    ("command_id", enqueue(command_id=5, reply_to="", actor=5)),
    ("command_id", enqueue(command_id="c" * 101)),
    ("command_id", enqueue(command_id="a\nb")),
    ("command_id", enqueue(command_id="a\x00b")),
    ("command_id", enqueue(command_id="a\x85b")),
    ("command_id", enqueue(command_id="\ud800")),
    ("reply_to", enqueue(reply_to="", actor=5)),
    ("reply_to", enqueue(reply_to="r" * 201)),
    ("reply_to", enqueue(reply_to="a\tb")),
    ("reply_to", enqueue(reply_to=7)),
    ("actor", enqueue(actor=["ann"], wire_name=5)),
    ("actor", enqueue(actor="a" * 201)),
    ("actor", enqueue(actor="\udfff")),
    # enqueue
    ("queue", enqueue(queue="", wire_name=5)),
    ("queue", enqueue(queue="a b")),
    ("queue", enqueue(queue="a/b")),
    ("queue", enqueue(queue="q" * 101)),
    ("queue", enqueue(queue="q\n")),
    ("queue", enqueue(queue="ü")),
    ("queue", enqueue(queue=5)),
    ("wire_name", {"type": "enqueue"}),
    ("wire_name", enqueue(wire_name=None, job_id="x")),
    ("wire_name", enqueue(wire_name="")),
    ("wire_name", enqueue(wire_name=7)),
    ("wire_name", enqueue(wire_name="\ud800")),
    ("payload", enqueue(payload=["\ud800"], job_id="x")),
    ("payload", enqueue(payload={"\ud800": 1})),
    ("payload", enqueue(payload=deep(513))),
    ("job_id", enqueue(job_id="plain", due_time=5)),
    ("job_id", enqueue(job_id="q/")),
    ("job_id", enqueue(job_id="/1")),
    ("job_id", enqueue(job_id="q/a/b")),
    ("job_id", enqueue(job_id="q/a b")),
    ("job_id", enqueue(job_id="q/" + "k" * 101)),
    ("job_id", enqueue(job_id="q" * 101 + "/k")),
    ("job_id", enqueue(job_id=5)),
    ("due_time", enqueue(due_time="2026-01-01T10:00:00", parents=5)),
    ("due_time", enqueue(due_time="2026-01-01")),
    ("due_time", enqueue(due_time="2026-01-01T10:00:00.1234567Z")),
    ("due_time", enqueue(due_time="2026-01-01T24:00:00Z")),
    ("due_time", enqueue(due_time="2026-12-31T23:59:60Z")),
    ("due_time", enqueue(due_time=60)),
    ("parents", enqueue(parents="q/1", mode="x")),
    ("parents", enqueue(parents={})),
    ("parents[1]", enqueue(parents=["q/1", "plain"])),
    ("parents[0]", enqueue(parents=[None])),
    ("parents[0]", enqueue(parents=["q/" + "k" * 256])),
    ("mode", enqueue(mode="onsuccess", tags=5)),
    ("mode", enqueue(mode=1)),
    ("tags", enqueue(tags="a", retry=5)),
    ("tags", enqueue(tags={"a": "b"})),
    ("tags", enqueue(tags=[f"t{n}" for n in range(33)])),
    ("tags[1]", enqueue(tags=["a", ""])),
    ("tags[0]", enqueue(tags=[5])),
    ("tags[0]", enqueue(tags=[None])),
    ("tags[0]", enqueue(tags=[{}])),
    ("tags[0]", enqueue(tags=[{"a": "b", "c": "d"}])),
    ("tags[0]", enqueue(tags=[{"a": 1}])),
    ("tags[0]", enqueue(tags=[{"a": ""}])),
    ("tags[0]", enqueue(tags=[{"": "a"}])),
    ("tags[0]", enqueue(tags=["t" * 201])),
    ("tags[0]", enqueue(tags=[{"a": "t" * 201}])),
    ("tags[0]", enqueue(tags=["\ud800"])),
    ("retry", enqueue(retry=5, trace_context=5)),
    ("retry", enqueue(retry=[])),
    ("retry.zone", enqueue(retry={"max_attempts": 0, "zone": 1})),
    ("retry.max_attempts", enqueue(retry={"max_attempts": 0, "delays": 5})),
    ("retry.max_attempts", enqueue(retry={"max_attempts": 1001})),
    ("retry.max_attempts", enqueue(retry={"max_attempts": 3.0})),
    ("retry.max_attempts", enqueue(retry={"max_attempts": True})),
    ("retry.max_attempts", enqueue(retry={"max_attempts": "3"})),
    ("retry.delays", enqueue(retry={"delays": []})),
    ("retry.delays", enqueue(retry={"delays": [1] * 21})),
    ("retry.delays", enqueue(retry={"delays": 5})),
    ("retry.delays[1]", enqueue(retry={"delays": [5, -1]})),
    ("retry.delays[0]", enqueue(retry={"delays": [True]})),
    ("retry.delays[0]", enqueue(retry={"delays": ["5"]})),
    ("retry.delays[0]", enqueue(retry={"delays": [None]})),
    ("retry.delays[0]", enqueue(retry={"delays": [1_000_000_001]})),
    ("trace_context", enqueue(trace_context="t" * 451, workflow_id=5)),
    ("trace_context", enqueue(trace_context={})),
    ("workflow_id", enqueue(workflow_id="w" * 201, schedule_id=5)),
    ("schedule_id", enqueue(schedule_id="plain")),
    ("schedule_id", enqueue(schedule_id=5)),
    # contradictions come last
    ("job_id", enqueue(queue="billing", job_id="mail/x")),
    ("schedule_id", enqueue(schedule_id="billing/nightly")),
    ("schedule_id", enqueue(job_id="mail/1", schedule_id="billing/nightly")),
    ("workflow_id", enqueue(queue="billing", job_id="mail/x", workflow_id=5)),
    # claim
    ("worker_id", without(claim(queue=5), "worker_id")),
    ("worker_id", claim(worker_id="")),
    ("worker_id", claim(worker_id="w" * 201)),
    ("worker_id", claim(worker_id="a\nb")),
    ("worker_id", claim(worker_id=None)),
    ("queue", without(claim(max_jobs=0), "queue")),
    ("queue", claim(queue=None)),
    ("max_jobs", claim(max_jobs=0, lease_seconds=0)),
    ("max_jobs", claim(max_jobs="5")),
    ("max_jobs", claim(max_jobs=1.0)),
    ("max_jobs", claim(max_jobs=True)),
    ("lease_seconds", claim(lease_seconds=0, wait_seconds=-1)),
    ("lease_seconds", claim(lease_seconds=-0.0)),
    ("lease_seconds", claim(lease_seconds=-1)),
    ("lease_seconds", claim(lease_seconds=1_000_000_000.000001)),
    ("lease_seconds", claim(lease_seconds=True)),
    ("lease_seconds", claim(lease_seconds="60")),
    ("wait_seconds", claim(wait_seconds=-0.000001)),
    ("wait_seconds", claim(wait_seconds=1_000_000_001)),
    ("wait_seconds", claim(wait_seconds=False)),
    # heartbeat
    ("worker_id", without(heartbeat(5), "worker_id")),
    ("leases", without(heartbeat(lease_seconds=0), "leases")),
    ("leases", heartbeat(leases=None)),
    ("leases", heartbeat(leases={})),
    ("leases[0]", heartbeat(5)),
    ("leases[0]", heartbeat(None)),
    ("leases[1].worker", heartbeat(lease(), lease(worker=1, job_id=5))),
    ("leases[0].job_id", heartbeat({"attempt": True})),
    ("leases[0].job_id", heartbeat(lease(job_id="plain"))),
    ("leases[1].attempt", heartbeat(lease(), without(lease(lease="x"), "attempt"))),
    ("leases[0].attempt", heartbeat(lease(attempt=1.0))),
    ("leases[0].attempt", heartbeat(lease(attempt=True))),
    ("leases[0].lease", heartbeat(lease(lease="5"))),
    ("leases[0].job_id", heartbeat(lease(job_id=5), lease_seconds=0)),
    ("lease_seconds", heartbeat(lease_seconds=0)),
    # report
    ("worker_id", without(report(5), "worker_id")),
    ("outcomes", without(report(), "outcomes")),
    ("outcomes", report(outcomes={})),
    ("outcomes[0]", report(5)),
    ("outcomes[0]", report([])),
    ("outcomes[0].outcome", report({"zone": 1})),
    ("outcomes[0].outcome", report(lease(outcome=None, job_id=5))),
    ("outcomes[0].outcome", report(lease(outcome="Done"))),
    ("outcomes[0].outcome", report(lease(outcome=5))),
    ("outcomes[0].zone", report(success(zone=1, job_id=5))),
    ("outcomes[0].job_id", report(success(job_id=5), success(zone=1))),
    ("outcomes[1].attempt", report(success(), without(success(), "attempt"))),
    ("outcomes[0].attempt", report(success(attempt=1.5, add_tags=5))),
    ("outcomes[0].lease", report(success(lease=True))),
    ("outcomes[0].output", report(success(output=["\ud800"]))),
    ("outcomes[0].output", report(success(output=deep(513)))),
    ("outcomes[0].add_tags", report(success(add_tags=[f"t{n}" for n in range(33)]))),
    ("outcomes[0].add_tags[0]", report(success(add_tags=[""]))),
    ("outcomes[0].error", report(lease(outcome="Failure", next_due=5))),
    ("outcomes[0].error", report(failure(error=None))),
    ("outcomes[0].error", report(failure(error=5))),
    ("outcomes[0].failure_detail", report(failure(failure_detail=5, next_due=5))),
    ("outcomes[0].next_due", report(failure(next_due="tomorrow", add_tags=5))),
    ("outcomes[0].next_due", report(failure(next_due=5))),
    ("outcomes[0].add_tags", report(failure(add_tags="a"))),
    ("outcomes[0].cause", report(lease(outcome="Cancelled", cause=5))),
    ("outcomes[0].reason", report(lease(outcome="Unroutable"))),
    ("outcomes[0].reason", report(lease(outcome="Unroutable", reason=5))),
    # a field of another outcome is an unknown one
    ("outcomes[0].error", report(success(error="e"))),
    ("outcomes[0].next_due", report(success(next_due=None))),
    ("outcomes[0].output", report(failure(output=1))),
    ("outcomes[0].reason", report(lease(outcome="Cancelled", reason="r"))),
    ("outcomes[0].cause", report(lease(outcome="Unroutable", reason="r", cause="c"))),
    ("outcomes[0].add_tags", report(lease(outcome="Returned", add_tags=[]))),
    # the others
    ("job_id", {"type": "cancel"}),
    ("job_id", {"type": "cancel", "job_id": 5}),
    ("job_id", {"type": "requeue", "job_id": "q/" + "k" * 256}),
    ("queue", {"type": "pause_queue"}),
    ("queue", {"type": "resume_queue", "queue": "a b"}),
    ("queue", {"type": "set_concurrency_limit", "limit": 0}),
    ("limit", limit()),
    ("limit", limit(limit=0)),
    ("limit", limit(limit=-3)),
    ("limit", limit(limit=1.0)),
    ("limit", limit(limit=True)),
    ("limit", limit(limit="5")),
    ("limit", limit(limit=TWO_POW_53)),
    # schedules
    ("schedule_id", put_schedule(schedule_id="plain", cron=5)),
    ("schedule_id", {"type": "put_schedule", "cron": "* * * * *", "wire_name": "w"}),
    ("schedule_id", {"type": "remove_schedule", "schedule_id": "q/" + "k" * 101}),
    ("schedule_id", {"type": "trigger_schedule", "schedule_id": None}),
    ("priority", put_schedule(priority=1, cron="x")),
    ("cron", put_schedule(cron=5, time_zone=5)),
    ("cron", put_schedule(cron=None)),
    ("cron", put_schedule(cron="60 * * * *", time_zone="Nowhere")),
    ("cron", put_schedule(cron="\ud800 * * * *")),
    ("time_zone", put_schedule(time_zone="Nowhere", wire_name="")),
    ("time_zone", put_schedule(time_zone=2)),
    ("time_zone", put_schedule(time_zone="\ud800")),
    ("wire_name", put_schedule(wire_name="w" * 129, payload="p" * 65_535)),
    ("wire_name", put_schedule(wire_name="")),
    ("payload", put_schedule(payload="p" * 65_535, tags=5)),
    ("payload", put_schedule(payload="\udfff")),
    ("tags[0]", put_schedule(tags=[""], retry=5)),
    ("retry.max_attempts", put_schedule(retry={"max_attempts": 0}, catch_up="Never")),
    ("catch_up", put_schedule(catch_up="skip", no_overlap=1)),
    ("no_overlap", put_schedule(no_overlap=1)),
    ("no_overlap", put_schedule(no_overlap="true")),
]


@pytest.mark.parametrize(
    ("field", "command"), INVALID, ids=[f"{n}-{field}" for n, (field, _) in enumerate(INVALID)]
)
def test_the_first_wrong_field_is_named(field: str, command: JsonObject) -> None:
    refusal = refused(command)

    assert refusal.field == field
    assert refusal.message.startswith(field)
    assert len(refusal.message) > len(field) + 5
    json.dumps(refusal.message, ensure_ascii=False).encode()


VALID: list[JsonObject] = [
    put_schedule(),
    put_schedule(time_zone=None, payload=None, tags=None, retry=None, catch_up=None, no_overlap=None),
    put_schedule(cron=" 0/20\t*  3-5 * JAN  sun#1 ", time_zone="EST", catch_up="Coalesce", no_overlap=True),
    put_schedule(wire_name="w" * 128, payload="p" * 65_534, tags=["a", {"b": "c"}]),
    put_schedule(cron="0 0 29 2 *", time_zone="Etc/GMT-2", retry={"max_attempts": 1}),
    {"type": "remove_schedule", "schedule_id": "q/" + "k" * 100},
    {"type": "trigger_schedule", "schedule_id": "q/s", "command_id": "a b"},
    enqueue(),
    enqueue(queue="q" * 100, job_id="q" * 100 + "/" + "k" * 100),
    enqueue(job_id="default/A.b_C:d@e+f=g-9"),
    enqueue(command_id="c" * 100, reply_to="r" * 200, actor="a" * 200),
    enqueue(command_id="", actor="", workflow_id="", trace_context=""),
    enqueue(actor="a\x00\n\x85", wire_name="\x00", tags=["\x00", {"\n": "\x1b"}]),
    enqueue(payload=deep(512)),
    enqueue(payload={"type": "enqueue", "n": None}),
    enqueue(parents=["q/" + "k" * 255, "q/1", "q/1"]),
    enqueue(parents=[f"q/{n}" for n in range(17)]),  # TooManyParents is a result, no form
    enqueue(wire_name="w" * 10_000),  # so is WireNameTooLong
    enqueue(tags=[*(f"t{n}" for n in range(32)), "t0", "t31"]),
    enqueue(tags=["t" * 200, {"k" * 200: "v" * 200}]),
    enqueue(retry={}),
    enqueue(retry={"max_attempts": 1000, "delays": [0] * 20}),
    enqueue(retry={"max_attempts": 1, "delays": [1_000_000_000, 0.5]}),
    enqueue(retry={"max_attempts": None, "delays": None}),
    enqueue(trace_context="t" * 450, workflow_id="w" * 200, schedule_id="default/nightly"),
    claim(max_jobs=10**40, lease_seconds=1_000_000_000, wait_seconds=0.25),
    claim(worker_id="w" * 200, lease_seconds=0.0000001),
    heartbeat(),
    heartbeat(lease(attempt=-5, lease=-(10**40)), lease(lease=None)),
    report(),
    report(success(output=None, add_tags=None), failure(next_due=None), failure(failure_detail=None)),
    report(lease(outcome="Cancelled", cause=None), lease(outcome="Returned", lease=0)),
    limit(limit=None),
    limit(limit=TWO_POW_53 - 1),
]


@pytest.mark.parametrize("command", VALID, ids=map(str, range(len(VALID))))
def test_exactly_the_bounds_are_accepted(command: JsonObject) -> None:
    accepted(command)


@pytest.mark.parametrize("kind", COMMANDS_BY_TYPE)
def test_null_for_an_optional_field_means_absent(kind: str) -> None:
    model = COMMANDS_BY_TYPE[kind]
    sample = next(command for command in COMMANDS.values() if command["type"] == kind)
    required = {
        name: sample[name]
        for name, field in model.model_fields.items()
        if field.is_required() or name == "type"
    }
    nulls = dict.fromkeys(model.model_fields.keys() - required.keys())

    assert accepted({**required, **nulls}) == accepted(required)


def test_the_defaults_of_an_enqueue() -> None:
    command = accepted(enqueue())

    assert isinstance(command, Enqueue)
    assert (command.target_queue, command.payload, command.job_id, command.due_time) == (
        "default",
        b"null",
        None,
        None,
    )
    assert (command.parents, command.mode, command.tags) == ((), DependencyMode.ON_SUCCESS, ())
    assert (command.retry_policy.max_attempts, command.retry_policy.delays) == (10, None)
    assert (command.trace_context, command.workflow_id, command.schedule_id) == (None, None, None)


def test_the_queue_is_that_of_the_job_id() -> None:
    command = accepted(enqueue(job_id="billing/1", schedule_id="billing/nightly"))

    assert isinstance(command, Enqueue)
    assert command.target_queue == "billing"


def test_the_defaults_of_a_claim_and_of_a_heartbeat() -> None:
    asked, beat = accepted(claim()), accepted(heartbeat())

    assert isinstance(asked, Claim)
    assert isinstance(beat, Heartbeat)
    assert (asked.max_jobs, asked.lease_seconds, asked.wait_seconds) == (1, 60_000_000, 0)
    assert beat.lease_seconds == 60_000_000


@pytest.mark.parametrize(
    ("seconds", "micros"), [(1.5, 1_500_000), (0.0000006, 1), (0.0000001, 1), (3, 3_000_000)]
)
def test_a_lease_lasts_at_least_a_microsecond(seconds: float, micros: int) -> None:
    command = accepted(claim(lease_seconds=seconds))

    assert isinstance(command, Claim)
    assert command.lease_seconds == micros


def test_next_due_tells_null_from_absent() -> None:
    command = accepted(
        report(failure(), failure(next_due=None), failure(next_due="2026-01-31T10:00:00+01:00"))
    )

    assert isinstance(command, Report)
    absent, null, time = (row for row in command.outcomes if isinstance(row, Failure))
    assert absent.follows_policy
    assert (null.follows_policy, null.next_due) == (False, None)
    assert (time.follows_policy, time.next_due) == (False, parse_instant("2026-01-31T09:00:00Z"))


def test_tags_are_a_set_in_order_of_first_appearance() -> None:
    command = accepted(enqueue(tags=["b", {"k": "v"}, "a", "b", {"k": "v"}, {"k": "w"}]))

    assert isinstance(command, Enqueue)
    assert command.tags == ("b", ("k", "v"), "a", ("k", "w"))


def test_texts_of_an_outcome_are_cut() -> None:
    long = "é" * 5_000
    command = accepted(
        report(
            failure(error=long, failure_detail=long),
            lease(outcome="Cancelled", cause=long),
            lease(outcome="Unroutable", reason=long),
        )
    )

    assert isinstance(command, Report)
    failed, cancelled, unroutable = command.outcomes
    assert isinstance(failed, Failure)
    assert isinstance(cancelled, CancelledOutcome)
    assert failed.error == failed.failure_detail == cancelled.cause == "é" * 4_096
    assert unroutable.model_dump()["reason"] == "é" * 4_096


def test_numbers_of_any_length_are_whole_numbers() -> None:
    huge = "9" * 6_000
    asked = parse_command(
        read_object(f'{{"type":"claim","worker_id":"w","queue":"q","max_jobs":{huge}}}'.encode())
    )
    beat = parse_command(
        read_object(
            f'{{"type":"heartbeat","worker_id":"w","leases":[{{"job_id":"q/1","attempt":-{huge}}}]}}'.encode()
        )
    )
    limited = parse_command(
        read_object(f'{{"type":"set_concurrency_limit","queue":"q","limit":{huge}}}'.encode())
    )

    assert isinstance(asked, Claim)
    assert asked.max_jobs > 500
    assert isinstance(beat, Heartbeat)
    assert beat.leases[0].attempt < 0
    assert isinstance(limited, Refusal)
    assert limited.field == "limit"


def test_a_payload_is_kept_digit_for_digit_and_without_spaces() -> None:
    raw = b'{"type": "enqueue", "wire_name": "w", "payload": {"n": [ %s, 1.50 ], "n2": "\\u00e9"}}' % (
        b"7" * 6_000
    )
    command = parse_command(read_object(raw))

    assert isinstance(command, Enqueue)
    assert command.payload == b'{"n":[%s,1.5],"n2":"\xc3\xa9"}' % (b"7" * 6_000)


def test_of_a_key_that_stands_twice_the_last_counts() -> None:
    command = parse_command(
        read_object(b'{"type":"enqueue","queue":5,"queue":"b","wire_name":"","wire_name":"w"}')
    )

    assert isinstance(command, Enqueue)
    assert (command.queue, command.wire_name) == ("b", "w")


@pytest.mark.parametrize(
    ("command", "told"),
    [
        (enqueue(command_id="c", reply_to="r", zone=1), ("enqueue", "c", "r")),
        (enqueue(zone=1), ("enqueue", None, None)),
        (enqueue(command_id="c" * 101, reply_to="r"), ("enqueue", None, "r")),
        (enqueue(command_id="c", reply_to=""), ("enqueue", "c", None)),
        (enqueue(command_id="\ud800", reply_to="\ud800"), ("enqueue", None, None)),
        ({"type": "frobnicate", "command_id": "c"}, ("frobnicate", "c", None)),
        ({"type": 5, "command_id": 5}, (None, None, None)),
        ({"type": "\ud800"}, ("?", None, None)),
    ],
)
def test_whom_a_refusal_tells(command: JsonObject, told: tuple[str | None, str | None, str | None]) -> None:
    refusal = refused(command)

    assert (refusal.type, refusal.command_id, refusal.reply_to) == told


def test_a_refusal_is_small_however_long_the_names_are() -> None:
    for command in (enqueue(**{"z" * 900_000: 1}), claim(type="t" * 900_000), enqueue(**{"\ud800": 1})):
        refusal = refused(command)

        assert len(f"{refusal.type}{refusal.field}{refusal.message}".encode()) < 40_000


def test_nesting_counts_within_one_field() -> None:
    row = success(output=deep(512))

    assert isinstance(accepted(report(row)), Report)


@pytest.mark.parametrize(
    "raw", [None, b"", b"\xff", b"{", b"[]", b'"enqueue"', b"null", b"1", b'{"a":NaN}', b'{"a":1e999}']
)
def test_what_is_no_json_object_is_no_command(raw: bytes | None) -> None:
    with pytest.raises(NotACommand):
        read_object(raw)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_samples_are_accepted(name: str) -> None:
    command = accepted(COMMANDS[name])

    assert command.type == COMMANDS[name]["type"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(COMMANDS)), st.data())
def test_one_field_turned_into_anything_is_accepted_or_named(name: str, data: st.DataObject) -> None:
    sample = COMMANDS[name]
    field = data.draw(st.sampled_from(sorted(sample)))
    outcome = parse_command(read_object(json.dumps({**sample, field: data.draw(json_values)}).encode()))

    if isinstance(outcome, Refusal):
        assert (
            outcome.field == field or outcome.field.startswith((f"{field}[", f"{field}.")) or field == "type"
        )
    else:
        assert partition_of(str(getattr(outcome, "queue", "default")), 12) in range(12)


def test_a_success_keeps_its_output_as_sent() -> None:
    command = accepted(report(success(output={"a": [1, None]}), success()))

    assert isinstance(command, Report)
    with_output, without_output = command.outcomes
    assert isinstance(with_output, Success)
    assert isinstance(without_output, Success)
    assert loads(with_output.output) == {"a": [1, None]}
    assert without_output.output == b"null"


def test_a_limit_of_null_is_no_limit() -> None:
    command = accepted(limit(limit=None))

    assert isinstance(command, SetConcurrencyLimit)
    assert command.limit is None
