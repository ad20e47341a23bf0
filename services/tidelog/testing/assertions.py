"""What a test says about jobs, with messages that list what was there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.client.checking import check_job_id
from tidelog.testing.ledger import Ledger
from tidelog_events.identity import JobId
from tidelog_events.instants import format_instant
from tidelog_events.jsontext import Json, loads
from tidelog_events.record import JobRecord
from tidelog_events.states import JobState
from tidelog_events.transitions import DeadLettered, Enqueued, JobTransition, RetryScheduled

_LISTED = 20
_SHOWN_CHARS = 200


class Assertions:
    """Assertions about the jobs of a ledger. Each raises `AssertionError` when it does not hold."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    def enqueued(
        self, wire_name: str, *, queue: str | None, payload: Mapping[str, Json] | None, count: int | None
    ) -> list[JobId]:
        """As `Harness.assert_enqueued`."""
        __tracebackhide__ = True  # pytest shows the test's line, not this one
        found = self._find(wire_name, queue, payload)
        if count is None and found:
            return found
        if count is not None and len(found) == count:
            return found
        wanted = "at least one job" if count is None else f"{count} job{'s' * (count != 1)}"
        raise AssertionError(
            f"Expected {wanted} {_described(wire_name, queue, payload)}; {len(found)} "
            f"{'was' if len(found) == 1 else 'were'} enqueued. {self._all_enqueued(wire_name)}"
        )

    def not_enqueued(
        self, wire_name: str | None, *, queue: str | None, payload: Mapping[str, Json] | None
    ) -> None:
        """As `Harness.assert_not_enqueued`."""
        __tracebackhide__ = True
        found = self._find(wire_name, queue, payload)
        if found:
            raise AssertionError(
                f"Expected no job {_described(wire_name, queue, payload)}; there is {found[0]}"
                f"{f' and {len(found) - 1} more' if len(found) > 1 else ''}. {self._all_enqueued(wire_name)}"
            )

    def state(self, job_id: str, state: JobState | str) -> JobRecord:
        """As `Harness.assert_state`."""
        __tracebackhide__ = True
        record = self._known(job_id)
        if record.state != JobState(state):
            raise AssertionError(
                f"Expected {job_id} to be {JobState(state)}; it is {record.state}.\n{self._story(record)}"
            )
        return record

    def output(self, job_id: str, output: Json) -> JobRecord:
        """As `Harness.assert_output`."""
        __tracebackhide__ = True
        record = self.state(job_id, JobState.SUCCEEDED)
        if record.output_value != output:
            raise AssertionError(
                f"Expected {job_id} to return {_cut(repr(output))}; "
                f"it returned {_cut(repr(record.output_value))}."
            )
        return record

    def _known(self, job_id: str) -> JobRecord:
        __tracebackhide__ = True
        record = self._ledger.last_known(check_job_id(job_id))
        if record is None:
            raise AssertionError(f"There is no job {job_id}. {self._all_enqueued(None)}")
        return record

    def _find(
        self, wire_name: str | None, queue: str | None, payload: Mapping[str, Json] | None
    ) -> list[JobId]:
        return [
            event.job_id
            for event in self._ledger.enqueued()
            if wire_name in (None, event.wire_name)
            and queue in (None, event.queue)
            and (payload is None or contains(loads(event.payload), payload))
        ]

    def _all_enqueued(self, wire_name: str | None) -> str:
        # Those of the wire name come first: a schedule's ticks could crowd them out of what is shown.
        events = sorted(self._ledger.enqueued(), key=lambda event: event.wire_name != wire_name)
        lines = [_line(event) for event in events]
        return _list("What was enqueued:", lines) if lines else "Nothing was enqueued."

    def _story(self, record: JobRecord) -> str:
        """What happened to a job."""
        lines = [
            f"{format_instant(step.at)}  {step.TYPE}, attempt {step.attempt}{_why(step)}"
            for step in self._ledger.steps(record.job_id)
        ]
        cause = f"\nIts cause: {_cut(record.terminal_cause)}" if record.terminal_cause else ""
        return _list(f"What happened to it ({record.wire_name}, on {record.queue}):", lines) + cause


def _why(step: JobTransition) -> str:
    match step:
        case RetryScheduled() | DeadLettered():
            return f": {_cut(step.error)}"
        case _:
            return ""


def contains(value: Json, part: Json | Mapping[str, Json]) -> bool:
    """Whether a JSON value has all that `part` names: of objects the keys named, everything else whole."""
    if isinstance(value, dict) and isinstance(part, Mapping):
        return all(key in value and contains(value[key], wanted) for key, wanted in part.items())
    return value == part


def _described(wire_name: str | None, queue: str | None, payload: Mapping[str, Json] | None) -> str:
    parts = [] if wire_name is None else [f"of wire name {wire_name!r}"]
    parts += [] if queue is None else [f"on queue {queue!r}"]
    parts += [] if payload is None else [f"with {_cut(repr(dict(payload)))} in its payload"]
    return " ".join(parts) or "at all"


def _line(event: Enqueued) -> str:
    return f"{event.job_id}  {event.wire_name}  {_cut(event.payload.decode())}"


def _list(headline: str, lines: Iterable[str]) -> str:
    lines = list(lines)
    more = [f"  … and {len(lines) - _LISTED} more"] if len(lines) > _LISTED else []
    return "\n".join([headline, *(f"  {line}" for line in lines[:_LISTED]), *more])


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}…"
