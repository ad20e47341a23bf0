"""Answers of the engine: replies, job grants, pushes and the `hello` of a takeover (contract section 5)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Literal

from tidelog_events.identity import CommandId, JobId, Partition, QueueName, ScheduleId, Sequence, WorkerId
from tidelog_events.wire import OmittedWhenNone, WireInstant, WireJson, WireRetry, WireTags, wire_rows

Absent = OmittedWhenNone()


class Result(StrEnum):
    """What became of a command."""

    OK = "Ok"
    DUPLICATE = "Duplicate"
    PAYLOAD_TOO_LARGE = "PayloadTooLarge"
    WIRE_NAME_TOO_LONG = "WireNameTooLong"
    UNKNOWN_PARENT = "UnknownParent"
    TOO_MANY_PARENTS = "TooManyParents"
    INVALID = "Invalid"
    CANCELLED_IMMEDIATELY = "CancelledImmediately"
    CANCELLATION_REQUESTED = "CancellationRequested"
    NOT_CANCELLABLE = "NotCancellable"
    REQUEUED = "Requeued"
    NOT_REQUEUEABLE = "NotRequeueable"
    TRIGGERED = "Triggered"
    SCHEDULE_NOT_FOUND = "ScheduleNotFound"


class RowResult(StrEnum):
    """What became of one row of a report."""

    APPLIED = "Applied"
    STALE_LEASE = "StaleLease"
    OUTPUT_TOO_LARGE = "OutputTooLarge"


@dataclass(slots=True, kw_only=True)
class Reply:
    """Common to all answers to a command.

    `sequence` is the last event of the partition once the decision was written (-1 when there is none), so
    that a reader can wait for the projection to reach it.
    """

    command_id: CommandId | None
    type: str | None
    result: Result
    partition: Partition
    sequence: Sequence


@dataclass(slots=True, kw_only=True)
class InvalidReply(Reply):
    """A command was refused for its form: the first field that is wrong, and why."""

    field: str
    message: str


@dataclass(slots=True, kw_only=True)
class EnqueueReply(Reply):
    """`job_id` with `Ok` and `Duplicate`; `message` names the value and the bound of every other result."""

    job_id: Annotated[JobId | None, Absent] = None
    message: Annotated[str | None, Absent] = None


@dataclass(slots=True, kw_only=True)
class TriggerReply(Reply):
    """`job_id` with `Triggered`."""

    job_id: Annotated[JobId | None, Absent] = None


@dataclass(slots=True, kw_only=True)
class Grant:
    """A job handed to a worker. `lease` is the number that every report and heartbeat about it carries."""

    job_id: JobId
    queue: QueueName
    wire_name: str
    payload: WireJson
    attempt: int
    lease: Sequence
    lease_expiry: WireInstant
    cancel_requested: bool
    due_time: WireInstant
    tags: WireTags
    retry: WireRetry
    trace_context: str | None
    workflow_id: str | None
    schedule_id: ScheduleId | None


@dataclass(slots=True, kw_only=True)
class ClaimReply(Reply):
    """A grant, perhaps an empty one. With `more` the rest follows under the same `command_id`."""

    jobs: Annotated[tuple[Grant, ...], wire_rows(Grant)]
    next_due: WireInstant | None
    more: Annotated[Literal[True] | None, Absent] = None


@dataclass(slots=True, kw_only=True)
class LeaseAnswer:
    """One row of the answer to a heartbeat."""

    job_id: JobId
    renewed: bool
    cancel_requested: bool


@dataclass(slots=True, kw_only=True)
class HeartbeatReply(Reply):
    """One row for each lease, in the order of the command. With `more` the rest follows, as with a grant."""

    leases: Annotated[tuple[LeaseAnswer, ...], wire_rows(LeaseAnswer)]
    more: Annotated[Literal[True] | None, Absent] = None


@dataclass(slots=True, kw_only=True)
class ReportReply(Reply):
    """One result for each outcome, in the order of the command."""

    results: tuple[RowResult, ...]


@dataclass(slots=True, kw_only=True)
class CancelRequestedPush:
    """Tells the owner of a leased job that somebody asks it to stop."""

    command_id: None = None
    type: Literal["cancel_requested"] = "cancel_requested"
    worker_id: WorkerId
    job_id: JobId
    attempt: int
    lease: Sequence
    partition: Partition
    sequence: Sequence


@dataclass(slots=True, kw_only=True)
class Hello:
    """An engine has taken over a partition: claims that were parked there are to be sent again.

    Attributes:
        position: the offset in `commands` at which it goes on: what stands before it was handled already.
    """

    type: Literal["hello"] = "hello"
    partition: Partition
    position: Annotated[int | None, Absent] = None


Answer = Reply | CancelRequestedPush | Hello
"""Anything that stands on the replies topic."""
