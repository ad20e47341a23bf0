"""Pending admissions and edges as entries of the changelog."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import orjson

from tidelog.core.link import LinkParent, decode_link, encode_link
from tidelog.core.state import Admission, Edge, ParentAnswer
from tidelog.core.versioned import VERSION, UnreadableState, versioned
from tidelog_events.codec import encode_command
from tidelog_events.commands import Cancel, Enqueue
from tidelog_events.identity import JobId, Sequence
from tidelog_events.instants import Instant, NotAnInstant, format_instant, parse_instant
from tidelog_events.jsontext import Json, dumps
from tidelog_events.parsing import parse_command
from tidelog_events.states import JobState

PENDING_MARK: Final = "?"
"""Before the job id in the key of a pending admission."""
EDGE_MARK: Final = ">"
"""Before the name of an edge in its key."""


@dataclass(frozen=True, slots=True)
class RestoredAdmission:
    """A pending admission, and until when others wait for it if any do."""

    admission: Admission
    contested_until: Instant | None


def encode_admission(pending: Admission, contested_until: Instant | None) -> bytes:
    """A pending admission as an entry."""
    return orjson.dumps(
        {
            "version": VERSION,
            "job_id": pending.job_id,
            "number": pending.number,
            "command": orjson.Fragment(encode_command(pending.command)),
            "answers": {
                parent_id: None if answer is None else [answer.state, answer.sequence]
                for parent_id, answer in pending.answers.items()
            },
            "held": [orjson.Fragment(encode_command(command)) for command in pending.held],
            "held_parents": list(pending.held_parents),
            "contested_until": None if contested_until is None else format_instant(contested_until),
        }
    )


def decode_admission(raw: bytes) -> RestoredAdmission:
    """The pending admission of an entry. Raises `UnreadableState`."""
    written = versioned(raw, "a pending admission")
    match written:
        case {
            "job_id": str(job_id),
            "number": int(number),
            "command": dict(command),
            "answers": dict(answers),
            "held": list(held),
            "held_parents": list(held_parents),
        }:
            commands = [_held(one) for one in held]
            admission = Admission(
                job_id=JobId(job_id),
                number=number,
                command=_enqueue(command),
                answers={JobId(parent_id): _answer(answer) for parent_id, answer in answers.items()},
                held=commands,
                held_bytes=sum(len(encode_command(one)) for one in commands),
                held_parents={JobId(str(one)): None for one in held_parents},
            )
            return RestoredAdmission(admission, _instant(written.get("contested_until")))
    raise UnreadableState("a pending admission in the state topic cannot be read")


def encode_edge(edge: Edge) -> bytes:
    """An edge as an entry."""
    return orjson.dumps(
        {
            "version": VERSION,
            "message": orjson.Fragment(encode_link(edge.message)),
            "until": edge.until,
            "parent_sequence": edge.parent_sequence,
            "is_awaited": edge.is_awaited,
        }
    )


def decode_edge(raw: bytes) -> Edge:
    """The edge of an entry. Raises `UnreadableState`."""
    match versioned(raw, "an edge"):
        case {
            "message": message,
            "until": int() | None as until,
            "parent_sequence": int() | None as sequence,
            "is_awaited": bool(is_awaited),
        }:
            return Edge(_link(message), until, None if sequence is None else Sequence(sequence), is_awaited)
    raise UnreadableState("an edge in the state topic cannot be read")


def _link(written: Json) -> LinkParent:
    message = decode_link(dumps(written))
    if not isinstance(message, LinkParent):
        raise UnreadableState(f"a {message.TYPE!r} stands in the state topic where a link should")
    return message


def _enqueue(written: dict[str, Json]) -> Enqueue:
    command = _held(written)
    if not isinstance(command, Enqueue):
        raise UnreadableState(f"a {command.type!r} stands in the state topic where an enqueue should")
    return command


def _held(written: Json) -> Enqueue | Cancel:
    command = parse_command(written) if isinstance(written, dict) else None
    if not isinstance(command, Enqueue | Cancel):
        raise UnreadableState("a held command in the state topic cannot be read")
    return command


def _answer(written: Json) -> ParentAnswer | None:
    match written:
        case None:
            return None
        case [str(state), int(sequence)]:
            return ParentAnswer(JobState(state), Sequence(sequence))
        case [None, None]:
            return ParentAnswer(None, None)
    raise UnreadableState("the answer of a parent in the state topic cannot be read")


def _instant(written: Json) -> Instant | None:
    if written is None:
        return None
    try:
        return parse_instant(str(written))
    except NotAnInstant as error:
        raise UnreadableState(f"a pending admission in the state topic has a time that is {error}") from None
