"""Decisions without any service: a script of commands under virtual time (contract section 6).

The script goes through the very code that the engine runs, so what it prints is what an engine would do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import orjson

from tidelog.core.decision import Output
from tidelog.core.installation import Installation
from tidelog_events.errors import TidelogError
from tidelog_events.instants import (
    FIRST_INSTANT,
    LAST_INSTANT,
    SECOND,
    Instant,
    NotAnInstant,
    from_seconds,
    parse_instant,
)
from tidelog_events.jsontext import Json, NotJson, loads
from tidelog_events.parsing import parse_command
from tidelog_events.record import RECORD_FIELDS, JobRecord
from tidelog_events.transitions import Transition
from tidelog_events.wire import WireObject, to_wire

START = Instant(1_767_225_600 * SECOND)
"""2026-01-01T00:00:00Z, from which seconds are counted."""

_KEYS = frozenset({"at", "command", "down_until"})


class BadInput(TidelogError):
    """A line of the script is no line of a script."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: a command at an instant, time that passes, or an engine that is away until `down_until`."""

    number: int
    at: Instant
    command: Json = None
    down_until: Instant | None = None


def read_line(number: int, raw: bytes) -> Line | None:
    """One line of a script; None for a blank one. Raises `BadInput`."""
    if not raw.strip():
        return None
    try:
        written = loads(raw)
    except NotJson as error:
        raise BadInput(f"line {number}: {error}") from None
    if not isinstance(written, dict):
        raise BadInput(f"line {number}: must be a JSON object with `at`")
    for key in written:
        if key not in _KEYS:
            raise BadInput(f"line {number}: the key {key!r} is none of at, command, down_until")
    at = _instant(number, "at", written.get("at"))
    command = written.get("command")
    if "down_until" not in written:
        return Line(number, at, command)
    if "command" in written:
        raise BadInput(f"line {number}: down_until and command exclude each other")
    down_until = _instant(number, "down_until", written["down_until"])
    if down_until < at:
        raise BadInput(f"line {number}: down_until is before at")
    return Line(number, at, down_until=down_until)


def _instant(number: int, key: str, value: Json) -> Instant:
    if isinstance(value, str):
        try:
            return parse_instant(value)
        except NotAnInstant as error:
            raise BadInput(f"line {number}: {key} is {error}") from None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadInput(f"line {number}: {key} must be a time, or seconds after 2026-01-01T00:00:00Z")
    if not FIRST_INSTANT <= START + value * SECOND <= LAST_INSTANT:
        raise BadInput(f"line {number}: {key} is outside the calendar")
    return Instant(START + from_seconds(value))


class Replay:
    """Partitions under virtual time. Feed it lines, in order of time, and print what comes out."""

    def __init__(self, partitions: int = 1) -> None:
        self._installation = Installation(partitions)

    def run(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """One JSON line for each transition and each reply.

        Raises:
            BadInput: after the output of the lines before the bad one.
        """
        for number, raw in enumerate(lines, 1):
            line = read_line(number, raw)
            if line is not None:
                for output in self._play(line):
                    yield orjson.dumps(_written(output))

    def records(self) -> Iterator[bytes]:
        """One JSON line for each job that is not purged, sorted by id."""
        for job in self._installation.jobs().values():
            yield orjson.dumps({"job": record_to_wire(job)})

    def _play(self, line: Line) -> Iterator[Output]:
        if line.at < self._installation.now:
            raise BadInput(f"line {line.number}: its time is before that of the line above")
        yield from self._installation.pass_time(line.at)
        if line.down_until is not None:
            yield from self._installation.skip_to(line.down_until)
        elif line.command is not None:
            yield from self._installation.command(parse_command(_with_command_id(line)), (line.number,))


def _with_command_id(line: Line) -> dict[str, Json]:
    if not isinstance(line.command, dict):
        return {"type": None, "command_id": str(line.number)}
    if line.command.get("command_id") is None:
        return {**line.command, "command_id": str(line.number)}
    return line.command


def _written(output: Output) -> WireObject:
    if isinstance(output, Transition):
        return {"transition": to_wire(output)}
    return {"reply": to_wire(output.answer)}


def record_to_wire(job: JobRecord) -> WireObject:
    """The fields of the JobRecord alone, of a job of which more is known."""
    written = to_wire(job)
    return {name: written[name] for name in RECORD_FIELDS}
