"""What a client raises: refusals, which nothing is left of, and unknown outcomes, which may be repeated.

`Duplicate` is not among them: a job that is there already is what the caller wanted, so its id is returned.
"""

from __future__ import annotations

from typing import ClassVar, Final

from tidelog_events.bounds import MAX_PARENTS, MAX_PAYLOAD_BYTES, MAX_WIRE_NAME_CHARS
from tidelog_events.errors import TidelogError
from tidelog_events.identity import CommandId, JobId, Partition, ScheduleId
from tidelog_events.record import JobRecord
from tidelog_events.replies import InvalidReply, Reply, Result

DEFAULT_TIMEOUT: Final = 10.0
"""Seconds that a call waits, where it is not said."""
_SHOWN = 60


def shown(text: str) -> str:
    """A text for a message: quoted, and cut when it is long."""
    return repr(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


class CommandRefused(TidelogError):
    """A command was refused, here or by an engine. It changed nothing (contract section 3)."""

    result: ClassVar[Result]
    """What the contract calls the refusal."""


class InvalidCommand(CommandRefused):
    """A field of a command is malformed.

    Attributes:
        field: the path of the field, such as `tags[3]`.
        message: what is wrong with it.
    """

    result = Result.INVALID

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"The command is invalid and was not decided: {message}")
        self.field = field
        self.message = message


class PayloadTooLarge(CommandRefused):
    """A payload is over the bound.

    Attributes:
        size: bytes of compact UTF-8 JSON.
        bound: how many are allowed.
    """

    result = Result.PAYLOAD_TOO_LARGE

    def __init__(self, job_id: JobId, size: int) -> None:
        super().__init__(
            f"The payload of {job_id} has {size} bytes of compact JSON; at most {MAX_PAYLOAD_BYTES} are "
            "allowed. Keep the data elsewhere and enqueue a reference to it."
        )
        self.job_id = job_id
        self.size = size
        self.bound = MAX_PAYLOAD_BYTES


class WireNameTooLong(CommandRefused):
    """A wire name is over the bound.

    Attributes:
        bound: how many characters are allowed.
    """

    result = Result.WIRE_NAME_TOO_LONG

    def __init__(self, job_id: JobId, wire_name: str) -> None:
        super().__init__(
            f"The wire name {shown(wire_name)} of {job_id} has {len(wire_name)} characters; "
            f"at most {MAX_WIRE_NAME_CHARS} are allowed."
        )
        self.job_id = job_id
        self.wire_name = wire_name
        self.bound = MAX_WIRE_NAME_CHARS


class TooManyParents(CommandRefused):
    """A job names more distinct parents than the bound.

    Attributes:
        count: how many it names.
        bound: how many are allowed.
    """

    result = Result.TOO_MANY_PARENTS

    def __init__(self, job_id: JobId, count: int) -> None:
        super().__init__(
            f"{job_id} names {count} distinct parents; at most {MAX_PARENTS} are allowed. "
            "Gather them under intermediate jobs."
        )
        self.job_id = job_id
        self.count = count
        self.bound = MAX_PARENTS


class UnknownParent(CommandRefused):
    """A job names a parent that does not exist (any more), itself, or one that waits for the job."""

    result = Result.UNKNOWN_PARENT

    def __init__(self, job_id: JobId, reason: str) -> None:
        super().__init__(f"{job_id} was not enqueued, for want of a parent: {reason}")
        self.job_id = job_id


class NotCancellable(CommandRefused):
    """The job has ended already, or there is no such job."""

    result = Result.NOT_CANCELLABLE

    def __init__(self, job_id: JobId) -> None:
        super().__init__(f"{job_id} cannot be cancelled: it has ended already, or there is no such job.")
        self.job_id = job_id


class NotRequeueable(CommandRefused):
    """The job is neither dead-lettered nor quarantined, or there is no such job."""

    result = Result.NOT_REQUEUEABLE

    def __init__(self, job_id: JobId) -> None:
        super().__init__(
            f"{job_id} cannot be requeued: it is neither DeadLettered nor Quarantined, or there is no such "
            "job."
        )
        self.job_id = job_id


class ScheduleNotFound(CommandRefused):
    """There is no such schedule."""

    result = Result.SCHEDULE_NOT_FOUND

    def __init__(self, schedule_id: ScheduleId) -> None:
        super().__init__(f"There is no schedule {schedule_id}: it was never put, or it was removed.")
        self.schedule_id = schedule_id


class UnexpectedReply(TidelogError):
    """An engine answered with a result that this release does not expect. Upgrade this client."""


def unexpected_reply(reply: Reply, what: str) -> TidelogError:
    """A refusal of the form, which every command may have; else something of a later release."""
    if isinstance(reply, InvalidReply):
        return InvalidCommand(reply.field, reply.message)
    return UnexpectedReply(
        f"The answer to {what} is {reply.result}, which this release does not expect. Upgrade this client."
    )


class ReplyTimeout(TidelogError):
    """No engine answered in time: whether the command was decided is unknown.

    An enqueue may be repeated with the same key and `command_id`: the job exists at most once, and the
    answer is that of the first time.

    Attributes:
        job_id: the job in question; None for a command about a queue.
        command_id: the id to repeat the command with.
    """

    def __init__(
        self, what: str, *, job_id: JobId | None, command_id: CommandId, partition: Partition, timeout: float
    ) -> None:
        super().__init__(
            f"No answer to {what} within {timeout:g} s; whether it was decided is unknown. An enqueue may be "
            f"repeated with the same key and command_id={command_id!r}; of anything else, look at the job or "
            f"the queue first. Check that `tidelog engine` runs for partition {partition}."
        )
        self.job_id = job_id
        self.command_id = command_id


class SendUnconfirmed(TidelogError):
    """The log did not confirm a command in time: it may stand in the log or not.

    To send it again with the same key and `command_id` is safe: the job exists at most once.

    Attributes:
        job_id: the job in question.
        command_id: the id to repeat the command with.
    """

    def __init__(self, job_id: JobId, command_id: CommandId, timeout: float) -> None:
        super().__init__(
            f"The log did not confirm the enqueue of {job_id} within {timeout:g} s; whether it stands there "
            f"is unknown. It is safe to send it again with the same key and command_id={command_id!r}."
        )
        self.job_id = job_id
        self.command_id = command_id


class ClientClosed(TidelogError):
    """The client was closed, or had to stop, before or during a call; the message names the call."""


class WaitTimeout(TidelogError):
    """A job did not end in time. It goes on; only the waiting has ended.

    Attributes:
        record: the job as last seen in Postgres; None when it was never there.
    """

    def __init__(self, job_id: JobId, timeout: float, record: JobRecord | None) -> None:
        if record is None:
            state = (
                "Postgres does not know it (it was purged, never enqueued, or `tidelog projector` is behind)"
            )
        else:
            state = f"it is {record.state}"
        super().__init__(f"{job_id} did not end within {timeout:g} s: {state}.")
        self.job_id = job_id
        self.record = record


class ProjectionBehind(TidelogError):
    """Postgres does not show in time what this client has done before; an answer would have been stale."""

    def __init__(self, partition: Partition, timeout: float) -> None:
        super().__init__(
            f"Postgres did not catch up with this client's own commands on partition {partition} within "
            f"{timeout:g} s. Check that `tidelog projector` runs."
        )
        self.partition = partition


class NoProjection(TidelogError):
    """A read needs Postgres, and this client was opened without it."""
