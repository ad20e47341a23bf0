"""Transitions, answers and commands as bytes, and back.

Events are for ever: a released `(type, version)` stays readable. Version 1 is what contract section 4 lists
and is written without a `version` field; a later one would carry it. A reader passes over types that it does
not know, and stops at a version that it does not know, since to guess at a known event would be to lie.
"""

from __future__ import annotations

from typing import Final

import orjson

from tidelog_events.commands import Command, Enqueue, PutSchedule, Report
from tidelog_events.errors import TidelogError
from tidelog_events.jsontext import Json, NotJson, loads
from tidelog_events.replies import (
    Answer,
    CancelRequestedPush,
    ClaimReply,
    EnqueueReply,
    HeartbeatReply,
    Hello,
    InvalidReply,
    Reply,
    ReportReply,
    Result,
    TriggerReply,
)
from tidelog_events.transitions import TRANSITION_CLASSES, Transition
from tidelog_events.wire import Unreadable, from_wire, to_wire

_TRANSITIONS: Final = {cls.TYPE: cls for cls in TRANSITION_CLASSES}
_REPLIES: Final[dict[str, type[Reply]]] = {
    "enqueue": EnqueueReply,
    "claim": ClaimReply,
    "heartbeat": HeartbeatReply,
    "report": ReportReply,
    "trigger_schedule": TriggerReply,
}

_RESULTS: Final = frozenset(map(str, Result))


class Undecodable(TidelogError):
    """A record is not what its topic holds."""


class UnknownVersion(TidelogError):
    """A known event in a version that this release does not read. Upgrade the reader."""


def encode_transition(event: Transition) -> bytes:
    """A transition as the value of a record."""
    return orjson.dumps(to_wire(event))


def decode_transition(raw: bytes | None) -> Transition | None:
    """The transition in a record's value; None for a type that this release does not know.

    Raises:
        Undecodable: not JSON, no object, or a field is missing or of another form.
        UnknownVersion: a known type in a later version.
    """
    written = _object(raw)
    cls = _TRANSITIONS.get(_type(written))
    if cls is None:
        return None
    version = written.get("version", 1)
    if version != 1:
        raise UnknownVersion(
            f"a {cls.TYPE!r} event has version {version}; this release reads version 1. Upgrade this reader"
        )
    try:
        return from_wire(cls, written)
    except Unreadable as error:
        raise Undecodable(f"a {cls.TYPE!r} event cannot be read: {error}") from None


def encode_answer(answer: Answer) -> bytes:
    """An answer as the value of a record."""
    return orjson.dumps(to_wire(answer))


def decode_answer(raw: bytes | None) -> Answer | None:
    """The answer in a record's value; None for a kind that this release does not know.

    Raises:
        Undecodable: not JSON, no object, or a field is missing or of another form.
    """
    written = _object(raw)
    cls = _answer_class(written)
    if cls is None:
        return None
    try:
        return from_wire(cls, written)
    except Unreadable as error:
        raise Undecodable(f"an answer cannot be read: {error}") from None


def _answer_class(written: dict[str, Json]) -> type[Answer] | None:
    kind = written.get("type")
    if kind == "hello":
        return Hello
    result = written.get("result")
    if not isinstance(result, str):
        return CancelRequestedPush if kind == "cancel_requested" else None
    if result not in _RESULTS:
        return None
    if result == Result.INVALID:
        return InvalidReply
    return _REPLIES.get(kind, Reply) if isinstance(kind, str) else Reply


def encode_command(command: Command) -> bytes:
    """A command as the value of a record; fields that were not given are left out."""
    written = command.model_dump(exclude_unset=True)
    written["type"] = command.type
    if isinstance(command, Enqueue | PutSchedule) and "payload" in written:
        written["payload"] = orjson.Fragment(written["payload"])
    if isinstance(command, Report):
        for row, outcome in zip(written["outcomes"], command.outcomes, strict=True):
            row["outcome"] = outcome.outcome
            if "output" in row:
                row["output"] = orjson.Fragment(row["output"])
    return orjson.dumps(written)


def _object(raw: bytes | None) -> dict[str, Json]:
    try:
        value = loads(raw or b"")
    except NotJson as error:
        raise Undecodable(f"a record is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Undecodable("a record is no JSON object")
    return value


def _type(written: dict[str, Json]) -> str:
    kind = written.get("type")
    if not isinstance(kind, str):
        raise Undecodable("a transition has no type")
    return kind
