"""Decisions without any service: a script of commands under virtual time (contract section 6).

The script goes through the very code that the engine runs, so what it prints is what an engine would do.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import orjson

from tidelog.core.decide import decide, end_parked_waits, fire_timers, home_partition, receive
from tidelog.core.decision import Decision
from tidelog.core.link import LinkMessage, target_of
from tidelog.core.state import PartitionState
from tidelog_events.errors import TidelogError
from tidelog_events.identity import Partition
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
from tidelog_events.parsing import Refusal, parse_command
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
        self._partitions = [
            PartitionState(Partition(number), partitions, now=FIRST_INSTANT) for number in range(partitions)
        ]
        self._now = FIRST_INSTANT
        self._messages: deque[LinkMessage] = deque()

    def run(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """One JSON line for each transition and each reply.

        Raises:
            BadInput: after the output of the lines before the bad one.
        """
        for number, raw in enumerate(lines, 1):
            line = read_line(number, raw)
            if line is not None:
                for written in self._play(line):
                    yield orjson.dumps(written)

    def records(self) -> Iterator[bytes]:
        """One JSON line for each job that is not purged, sorted by id."""
        jobs = {job_id: job for state in self._partitions for job_id, job in state.jobs.items()}
        for job_id in sorted(jobs):
            yield orjson.dumps({"job": record_to_wire(jobs[job_id])})

    def _play(self, line: Line) -> Iterator[WireObject]:
        if line.at < self._now:
            raise BadInput(f"line {line.number}: its time is before that of the line above")
        yield from self._pass_time(line.at)
        if line.down_until is not None:
            self._now = line.down_until
            yield from self._settle()
        elif line.command is not None:
            yield from self._command(line)

    def _pass_time(self, until: Instant) -> Iterator[WireObject]:
        """Let every timer fire at its own instant, up to and with that one."""
        while True:
            timers = [timer for state in self._partitions if (timer := state.next_timer()) is not None]
            due = min(timers, default=None)
            if due is None or due > until:
                break
            self._now = max(self._now, due)
            yield from self._settle()
        self._now = until

    def _settle(self) -> Iterator[WireObject]:
        """All that is due at this instant, until nothing is; last the waits that end."""
        busy = True
        while busy:
            busy = False
            for state in self._partitions:
                decision = fire_timers(state, self._now)
                busy = busy or bool(decision.outputs or decision.messages)
                yield from self._written(decision)
            yield from self._deliver()
        for state in self._partitions:
            yield from self._written(end_parked_waits(state, self._now))

    def _deliver(self) -> Iterator[WireObject]:
        """The messages between partitions, first in first out, each a decision of its own."""
        while self._messages:
            message = self._messages.popleft()
            state = self._partitions[target_of(message, len(self._partitions))]
            yield from self._written(receive(state, message, self._now))

    def _written(self, decision: Decision) -> Iterator[WireObject]:
        self._messages.extend(decision.messages)
        return _written(decision)

    def _command(self, line: Line) -> Iterator[WireObject]:
        command = parse_command(_with_command_id(line))
        home = None if isinstance(command, Refusal) else home_partition(command, len(self._partitions))
        if isinstance(home, Refusal):
            command, home = home, None
        state = self._partitions[home or 0]
        yield from self._written(decide(state, command, self._now, (line.number,)))
        yield from self._deliver()


def _with_command_id(line: Line) -> dict[str, Json]:
    if not isinstance(line.command, dict):
        return {"type": None, "command_id": str(line.number)}
    if line.command.get("command_id") is None:
        return {**line.command, "command_id": str(line.number)}
    return line.command


def _written(decision: Decision) -> Iterator[WireObject]:
    for output in decision.outputs:
        if isinstance(output, Transition):
            yield {"transition": to_wire(output)}
        else:
            yield {"reply": to_wire(output.answer)}


def record_to_wire(job: JobRecord) -> WireObject:
    """The fields of the JobRecord alone, of a job of which more is known."""
    written = to_wire(job)
    return {name: written[name] for name in RECORD_FIELDS}
