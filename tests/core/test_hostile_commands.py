"""Whatever is sent: it is decided or refused, and what is written fits into the log."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.core.playing import claim, enqueue, failure, heartbeat, lease, report, success

from tidelog.core.changelog import take_changes
from tidelog.core.decide import decide, home_partition
from tidelog.core.state import PartitionState
from tidelog_events.bounds import MAX_REPLY_BYTES
from tidelog_events.codec import encode_answer, encode_transition
from tidelog_events.commands import COMMANDS_BY_TYPE
from tidelog_events.identity import Partition
from tidelog_events.instants import Instant
from tidelog_events.parsing import NotACommand, Refusal, parse_command, read_object
from tidelog_events.replies import HeartbeatReply, InvalidReply, Reply, Result
from tidelog_events.transitions import Transition
from tidelog_events.wire import WireObject

# What a log takes; the core does not know it, and must keep to it all the same.
RECORD_BYTES = 1_000_000
FRAME_BYTES = 1_000


def written_by(state: PartitionState, raw: bytes) -> list[Transition | Reply]:
    """Send bytes to a partition as an engine does, and see that all it leads to can be written."""
    try:
        command = parse_command(read_object(raw))
    except NotACommand:
        return []
    if not isinstance(command, Refusal):
        home = home_partition(command, 1)
        assert home in (0, None)
    outputs: list[Transition | Reply] = []
    for output in decide(state, command, Instant(state.now + 1), (state.sequence,)).outputs:
        if isinstance(output, Transition):
            assert len(encode_transition(output)) < RECORD_BYTES - FRAME_BYTES
            outputs.append(output)
        else:
            assert len(encode_answer(output.answer)) <= MAX_REPLY_BYTES
            if isinstance(output.answer, Reply):
                outputs.append(output.answer)
    for change in take_changes(state):
        assert len(change.value or b"") < RECORD_BYTES - FRAME_BYTES
    return outputs


def new_partition() -> PartitionState:
    return PartitionState(Partition(0), 1)


def answer(command: WireObject, state: PartitionState | None = None) -> Reply:
    """The last answer to a command that is written as other programs would write it."""
    outputs = written_by(state or new_partition(), json.dumps(command).encode())
    replies = [output for output in outputs if isinstance(output, Reply)]
    return replies[-1]


def refused_field(command: WireObject) -> str:
    reply = answer(command)
    assert isinstance(reply, InvalidReply), reply
    return reply.field


TEXTS = st.one_of(
    st.sampled_from(
        ["q/a", "q", "w", "", "\x00", "\ud800", "😀" * 300, "a" * 20_000, "2026-01-01T00:00:00Z"]
    ),
    st.text(max_size=5),
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, 1, -1, 0.5, 1e300, 5e-324, 2**63, 2**64, -(2**64), 10**400, 10**4_000]),
    TEXTS,
)
NAMES = sorted(
    {name for model in COMMANDS_BY_TYPE.values() for name in model.model_fields}
    | {"outcome", "output", "error", "attempt", "lease", "next_due", "reason", "max_attempts", "delays"}
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.one_of(st.sampled_from(NAMES), TEXTS), inner, max_size=4),
    ),
    max_leaves=8,
)


@settings(deadline=None, max_examples=300)
@given(
    st.sampled_from([*COMMANDS_BY_TYPE, "nothing", "\ud800"]),
    st.dictionaries(st.one_of(st.sampled_from(NAMES), TEXTS), VALUES, max_size=6),
)
def test_no_object_is_more_than_refused(kind: str, fields: WireObject) -> None:
    written_by(new_partition(), json.dumps({"type": kind, **fields}).encode())


@settings(deadline=None, max_examples=300)
@given(st.data())
def test_one_wild_field_in_a_good_command_is_named_or_harmless(data: st.DataObject) -> None:
    row = {"job_id": "q/a", "attempt": 1}
    good = data.draw(
        st.sampled_from(
            [
                enqueue("q/a", retry={"max_attempts": 1, "delays": [1]}, tags=["t"]),
                claim("q", "w"),
                heartbeat("w", row),
                report("w", {**row, "outcome": "Failure", "error": "e", "add_tags": ["t"]}),
                {"type": "set_concurrency_limit", "queue": "q", "limit": 1},
            ]
        )
    )
    name = data.draw(st.sampled_from(sorted(good)))
    inner = good[name]
    if isinstance(inner, list) and inner and isinstance(inner[0], dict) and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(inner[0])))
        wild = {**good, name: [{**inner[0], key: data.draw(VALUES)}]}
    else:
        wild = {**good, name: data.draw(VALUES)}
    reply = answer(wild)
    if isinstance(reply, InvalidReply):
        assert name in reply.field or name == "job_id" or "type" in (name, reply.field)


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=40))
def test_no_bytes_are_more_than_no_command(raw: bytes) -> None:
    written_by(new_partition(), raw)


@pytest.mark.parametrize("levels", [510, 512, 513, 10_000, 200_000])
@pytest.mark.parametrize("pair", [("[", "]"), ('{"":', "}")])
def test_payloads_of_any_depth_are_accepted_or_refused_by_name(levels: int, pair: tuple[str, str]) -> None:
    opening, closing = pair
    deep = opening * levels + ("1" if opening != "[" else "") + closing * levels
    command = json.dumps(enqueue("q/a", payload="@")).replace('"@"', deep).encode()
    (*_, reply) = written_by(new_partition(), command)
    assert isinstance(reply, Reply)
    if levels <= 512:
        assert reply.result is Result.OK
    else:
        assert isinstance(reply, InvalidReply)
        assert reply.field == "payload"


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"payload": {"\ud800": 1}}, "payload"),
        ({"payload": ["x", {"y": "\udfff"}]}, "payload"),
        ({"tags": [{"\ud800": "v"}]}, "tags[0]"),
        ({"tags": [{"k": "\ud800"}]}, "tags[0]"),
        ({"tags": ["\ud800"]}, "tags[0]"),
        ({"wire_name": "\ud800"}, "wire_name"),
        ({"actor": "\ud800"}, "actor"),
        ({"command_id": "\ud800"}, "command_id"),
        ({"reply_to": "\ud800"}, "reply_to"),
        ({"trace_context": "\ud800"}, "trace_context"),
        ({"mode": "\ud800"}, "mode"),
        ({"due_time": "\ud800"}, "due_time"),
        ({"parents": ["q/\ud800"]}, "parents[0]"),
        ({"\ud800": 1}, "?"),
        ({"tags": ["😀" * 201]}, "tags[0]"),
        ({"tags": [f"{number}" for number in range(33)]}, "tags"),
        ({"retry": {"max_attempts": 10**30}}, "retry.max_attempts"),
        ({"retry": {"delays": [10**400]}}, "retry.delays[0]"),
    ],
)
def test_what_cannot_be_written_is_refused_by_name(fields: WireObject, field: str) -> None:
    assert refused_field(enqueue("q/a") | fields) == field


def test_tags_of_two_hundred_emoji_are_tags() -> None:
    tags = [f"{number:02}" + "😀" * 198 for number in range(32)]
    assert answer(enqueue("q/a", tags=tags)).result is Result.OK


def test_the_largest_job_there_can_be_can_be_written_in_every_state() -> None:
    state = new_partition()
    wild = "\x01" * 199
    parents = [f"{'q' * 100}/{number:0100}" for number in range(16)]
    for parent in parents:
        answer(enqueue(parent), state)
    key = f"{'q' * 100}/{'k' * 100}"
    largest = enqueue(
        key,
        wire_name="\x01" * 128,
        payload="x" * 65_534,
        parents=parents,
        mode="OnAnyTerminal",
        tags=[{f"{number:02}" + wild[:198]: wild} for number in range(32)],
        retry={"max_attempts": 1_000, "delays": [999_999_999.123456] * 20},
        trace_context="\x01" * 450,
        workflow_id="\x01" * 200,
        schedule_id=f"{'q' * 100}/{'s' * 100}",
        actor="\x01" * 200,
        command_id="c" * 100,
        reply_to="r" * 200,
    )
    assert answer(largest, state).result is Result.OK
    for parent in parents:
        answer({"type": "cancel", "job_id": parent}, state)
    worker = "😀" * 200
    for attempt in range(1, 6):
        granted = answer(claim("q" * 100, worker, reply_to="😀" * 200), state)
        assert granted.result is Result.OK
        row = failure(
            key,
            attempt,
            error="\x01" * 8_192,
            failure_detail="\x01" * 8_192,
            next_due="1970-01-01T00:00:00Z" if attempt < 5 else None,
            add_tags=[{f"{attempt}-{number:02}" + wild[:195]: wild} for number in range(32)],
        )
        reported = answer(report(worker, row, actor="\x01" * 200), state)
        assert reported.result is Result.OK
    assert state.jobs[largest["job_id"]].state == "DeadLettered"
    assert len(state.jobs[largest["job_id"]].tags) == 128


@pytest.mark.parametrize("attempt", [2**31, 2**63, 2**64, 10**19, 10**400, 10**4_000, -(10**4_000)])
def test_numbers_of_any_length_are_stale_and_no_harm(attempt: int) -> None:
    state = new_partition()
    answer(enqueue("q/a"), state)
    answer(claim("q", "w"), state)
    for row in (lease("q/a", attempt), lease("q/a", 1, lease=attempt)):
        assert answer(heartbeat("w", row), state).result is Result.OK
        assert answer(report("w", {**row, "outcome": "Returned"}), state).result is Result.OK
    assert state.jobs[enqueue("q/a")["job_id"]].state == "Leased"


def test_a_hundred_thousand_parents_are_too_many() -> None:
    parents = [f"q/{number}" for number in range(100_000)]
    assert answer(enqueue("q/a", parents=parents)).result is Result.TOO_MANY_PARENTS


def test_a_heartbeat_of_many_rows_is_answered_in_pieces() -> None:
    """Its rows are shorter than their answers: what fits into a record has an answer that does not."""
    rows = [lease("q/a") for _ in range(28_000)]
    outputs = written_by(new_partition(), json.dumps(heartbeat("w", *rows)).encode())
    pieces = [output for output in outputs if isinstance(output, HeartbeatReply)]
    assert [piece.more for piece in pieces] == [True] * (len(pieces) - 1) + [None]
    assert sum(len(piece.leases) for piece in pieces) == 28_000


def test_a_report_of_many_rows_is_answered_row_by_row() -> None:
    rows = [success("q/a") for _ in range(15_000)]
    assert answer(report("w", *rows)).result is Result.OK


@pytest.mark.parametrize(
    ("command", "field"),
    [
        (enqueue("q/a", parents=[0] * 300_000), "parents[0]"),
        (enqueue("q/a", tags=[0] * 300_000), "tags[0]"),
        (heartbeat("w", *([{}] * 200_000)), "leases[0].job_id"),
        (report("w", *([{}] * 200_000)), "outcomes[0].outcome"),
    ],
)
def test_only_the_first_of_many_faults_is_looked_for(command: WireObject, field: str) -> None:
    assert refused_field(command) == field


def test_a_long_unknown_field_is_named_in_short() -> None:
    reply = answer({**claim("q", "w"), "x" * 500_000: 1})
    assert isinstance(reply, InvalidReply)
    assert len(reply.field) == 8_192
