"""Events, answers and commands as bytes and back: contract sections 3 to 5."""

from __future__ import annotations

import json

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.language.samples import ANSWERS, COMMANDS, JOB, LIFE, TRANSITIONS, WORKER

from tidelog_events.codec import (
    Undecodable,
    UnknownVersion,
    decode_answer,
    decode_transition,
    encode_answer,
    encode_command,
    encode_transition,
)
from tidelog_events.commands import COMMANDS_BY_TYPE, Failure, Report, Success
from tidelog_events.jsontext import Json
from tidelog_events.parsing import parse_command, read_object
from tidelog_events.replies import Answer, EnqueueReply, Hello
from tidelog_events.transitions import TRANSITION_CLASSES, Enqueued, Leased, Succeeded, Transition
from tidelog_events.wire import to_wire


def written(event: Transition) -> dict[str, Json]:
    value: dict[str, Json] = json.loads(encode_transition(event))
    return value


@pytest.mark.parametrize("event", TRANSITIONS.values(), ids=list(TRANSITIONS))
def test_transitions_there_and_back(event: Transition) -> None:
    assert decode_transition(encode_transition(event)) == event
    assert orjson.dumps(to_wire(event)) == encode_transition(event)


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=list(ANSWERS))
def test_answers_there_and_back(answer: Answer) -> None:
    assert decode_answer(encode_answer(answer)) == answer
    assert orjson.dumps(to_wire(answer)) == encode_answer(answer)


@pytest.mark.parametrize("sample", COMMANDS.values(), ids=list(COMMANDS))
def test_commands_there_and_back(sample: dict[str, Json]) -> None:
    command = COMMANDS_BY_TYPE[str(sample["type"])].model_validate(sample)

    assert parse_command(read_object(encode_command(command))) == command


def test_a_command_made_in_python_names_its_type_and_its_outcomes() -> None:
    command = Report(
        worker_id=WORKER,
        outcomes=[
            Success(job_id=JOB, attempt=1),
            Failure(job_id=JOB, attempt=1, error="e", next_due=None),
            Failure(job_id=JOB, attempt=1, error="e"),
        ],
    )

    again = parse_command(read_object(encode_command(command)))

    assert isinstance(again, Report)
    assert [row.outcome for row in again.outcomes] == ["Success", "Failure", "Failure"]
    assert [row.follows_policy for row in again.outcomes if isinstance(row, Failure)] == [False, True]


def test_what_has_no_value_is_left_out_only_where_the_contract_says_so() -> None:
    first = written(LIFE[2])

    assert not {"actor", "cause_command_id", "worker_id"} & first.keys()
    born = written(TRANSITIONS["enqueued-cancelled-at-once"])
    assert (born["trace_context"], born["tags"], born["payload"]) == (None, [], None)
    assert written(TRANSITIONS["concurrency_limit_set-none"])["limit"] is None
    refused = json.loads(encode_answer(ANSWERS["enqueue-refused"]))
    assert "job_id" not in refused
    assert "more" not in json.loads(encode_answer(ANSWERS["claim"]))


def test_a_payload_stays_as_it_is_to_the_letter() -> None:
    event = TRANSITIONS["enqueued"]
    assert isinstance(event, Enqueued)

    again = decode_transition(encode_transition(event))

    assert isinstance(again, Enqueued)
    assert again.payload == event.payload
    assert event.payload in encode_transition(event)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 10**6))
def test_any_text_survives(text: str, attempt: int) -> None:
    event = TRANSITIONS["succeeded"]
    assert isinstance(event, Succeeded)
    told = Succeeded(
        at=event.at,
        partition=event.partition,
        sequence=event.sequence,
        job_id=event.job_id,
        queue=event.queue,
        wire_name=text,
        state=event.state,
        attempt=attempt,
        ordinal=event.ordinal,
        actor=text,
        output=orjson.dumps(text),
        add_tags=(("k", text), text),
        terminal_at=event.terminal_at,
    )

    assert decode_transition(encode_transition(told)) == told


def test_a_reader_ignores_fields_that_it_does_not_know() -> None:
    event = TRANSITIONS["leased"]

    assert decode_transition(json.dumps(written(event) | {"weather": "fair", "version": 1}).encode()) == event
    hello = json.dumps({"type": "hello", "partition": 1, "mood": "good"}).encode()
    assert decode_answer(hello) == ANSWERS["hello"]


@pytest.mark.parametrize("kind", ["schedule_moved", "weather_changed", "Leased", ""])
def test_a_reader_passes_over_types_that_it_does_not_know(kind: str) -> None:
    assert decode_transition(json.dumps({"type": kind, "version": 7}).encode()) is None


@pytest.mark.parametrize("kind", [cls.TYPE for cls in TRANSITION_CLASSES])
def test_a_reader_stops_at_a_version_that_it_does_not_know(kind: str) -> None:
    later = json.dumps(written(TRANSITIONS[kind]) | {"version": 2}).encode()

    with pytest.raises(UnknownVersion, match=f"'{kind}' event has version 2.*Upgrade"):
        decode_transition(later)


@pytest.mark.parametrize("name", TRANSITIONS)
def test_a_missing_field_is_named(name: str) -> None:
    fields = written(TRANSITIONS[name])
    for field in fields.keys() - {"type", "actor", "cause_command_id", "worker_id", "failure_detail"}:
        rest = {key: value for key, value in fields.items() if key != field}
        with pytest.raises(Undecodable, match=f"'{field}' is missing"):
            decode_transition(json.dumps(rest).encode())


@pytest.mark.parametrize(
    "raw",
    [
        None,
        b"",
        b"{",
        b"[]",
        b"5",
        b"\xff",
        b"{}",
        b'{"type":5}',
        json.dumps(written(TRANSITIONS["leased"]) | {"at": "yesterday"}).encode(),
        json.dumps(written(TRANSITIONS["leased"]) | {"at": 5}).encode(),
        json.dumps(written(TRANSITIONS["leased"]) | {"state": "Asleep"}).encode(),
        json.dumps(
            written(TRANSITIONS["enqueued"]) | {"retry": {"max_attempts": 0, "delays": None}}
        ).encode(),
        json.dumps(written(TRANSITIONS["enqueued"]) | {"retry": 5}).encode(),
        json.dumps(written(TRANSITIONS["enqueued"]) | {"parents": 5}).encode(),
        json.dumps(written(TRANSITIONS["enqueued"]) | {"tags": [{}]}).encode(),
        json.dumps(written(TRANSITIONS["enqueued"]) | {"payload": ["\ud800"]}).encode(),
    ],
)
def test_what_is_no_transition(raw: bytes | None) -> None:
    with pytest.raises(Undecodable):
        decode_transition(raw)


@pytest.mark.parametrize("raw", [None, b"{", b"[]", b'{"type":"hello"}', b'{"type":"claim","result":"Ok"}'])
def test_what_is_no_answer(raw: bytes | None) -> None:
    with pytest.raises(Undecodable):
        decode_answer(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"{}",
        b'{"type":"enqueue"}',
        b'{"type":"enqueue","result":"Perhaps"}',
        b'{"type":"weather","partition":1}',
        b'{"type":5,"result":5}',
    ],
)
def test_answers_of_later_releases_are_passed_over(raw: bytes) -> None:
    assert decode_answer(raw) is None


def test_the_reply_to_a_command_of_a_later_release_is_read_for_what_it_shares() -> None:
    raw = b'{"command_id":"c","type":"hold_job","result":"Ok","partition":1,"sequence":4,"held":true}'

    answer = decode_answer(raw)

    assert answer is not None
    assert not isinstance(answer, Hello | EnqueueReply)
    assert answer.partition == 1


def test_the_sequence_of_the_leased_event_is_the_lease() -> None:
    event = TRANSITIONS["leased"]

    assert isinstance(event, Leased)
    assert json.loads(encode_answer(ANSWERS["claim"]))["jobs"][0]["lease"] == event.sequence
