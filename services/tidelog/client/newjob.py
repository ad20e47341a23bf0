"""A job that is about to be enqueued: its id and its command, checked as far as can be without an engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypeAlias, TypedDict

from tidelog.client.checking import check_command, mint, now
from tidelog.client.errors import InvalidCommand, PayloadTooLarge, TooManyParents, WireNameTooLong
from tidelog.jobs import JobRequest, Retry
from tidelog_events import identity
from tidelog_events.bounds import MAX_PARENTS, MAX_PAYLOAD_BYTES, MAX_WIRE_NAME_CHARS
from tidelog_events.codec import encode_command
from tidelog_events.commands import Enqueue
from tidelog_events.identity import DEFAULT_QUEUE, ClientId, CommandId, InvalidName, JobId
from tidelog_events.instants import (
    MAX_SECONDS,
    Instant,
    NotAnInstant,
    format_instant,
    from_datetime,
    from_seconds,
    later,
)
from tidelog_events.jsontext import Json, JsonBytes, NotStorable, dumps, from_python, loads
from tidelog_events.retry import DEFAULT_RETRY
from tidelog_events.states import DependencyMode
from tidelog_events.wire import write_retry

TagLike: TypeAlias = str | tuple[str, str] | Mapping[str, str]
"""A label, or a key with its value: `"urgent"`, `("customer", "42")`, `{"customer": "42"}`."""


class JobOptions(TypedDict, total=False):
    """The keyword arguments of `NewJob`, where they are said."""

    queue: str | None
    key: str | None
    delay: float | None
    due: datetime | None
    parents: Sequence[str]
    mode: DependencyMode | str
    tags: Sequence[TagLike]
    retry: Retry | None
    trace_context: str | None
    workflow_id: str | None
    actor: str | None
    command_id: str | None


class NewJob:
    """A job with everything that `Client.enqueue` takes, for `Client.enqueue_many`.

    The key and the command id are minted here, not when it is sent: so another job can name this one as its
    parent (`parents=[first.job_id]`), and to send the same object again is the same job.

    Args:
        job: what `handler.job(...)` returned, or a wire name when the handler lives elsewhere.
        payload: any JSON value, for a wire name only; a job description has its own.
        queue: instead of the description's, or of `default`.
        key: makes the enqueue idempotent: with the queue it is the job's id. Minted when absent.
        delay: seconds from now until the job is due; not together with `due`.
        due: when the job is due, with a time zone; now when absent.
        parents: ids of the jobs to wait for, at most 16 different ones.
        mode: `OnSuccess` (a parent that ends otherwise cancels the job) or `OnAnyTerminal`.
        tags: labels and key-value pairs, at most 32.
        retry: instead of the description's policy.
        trace_context: carried along, at most 450 characters.
        workflow_id: carried along, at most 200 characters.
        actor: who asks for it, at most 200 characters.
        command_id: names this very call, so that a repetition is answered like the first time; minted.

    Attributes:
        job_id: `<queue>/<key>`.

    Raises:
        InvalidCommand: a field is malformed; it is named.
        PayloadTooLarge, WireNameTooLong, TooManyParents: over a bound; the value and the bound are named.
        ValueError: `delay` and `due` together, a negative delay, a time without a zone, or a payload beside
            a description.
    """

    __slots__ = ("_command", "command_id", "job_id")

    def __init__(
        self,
        job: JobRequest | str,
        payload: object = None,
        *,
        queue: str | None = None,
        key: str | None = None,
        delay: float | None = None,
        due: datetime | None = None,
        parents: Sequence[str] = (),
        mode: DependencyMode | str = DependencyMode.ON_SUCCESS,
        tags: Sequence[TagLike] = (),
        retry: Retry | None = None,
        trace_context: str | None = None,
        workflow_id: str | None = None,
        actor: str | None = None,
        command_id: str | None = None,
    ) -> None:
        if isinstance(job, str):
            described = JobRequest(job, _payload(payload), DEFAULT_QUEUE, DEFAULT_RETRY)
        elif payload is None:
            described = job
        else:
            raise ValueError(f"{job.wire_name!r} is described with its payload; give no other one")
        policy = described.retry if retry is None else retry.policy
        minted = mint()
        self.job_id = _job_id(described.queue if queue is None else queue, minted if key is None else key)
        # A minted key names this very call as well as any other new name would.
        self.command_id = CommandId(minted if command_id is None else command_id)
        due_time = _due_time(delay, due)
        given: dict[str, Json] = {  # a null is a field that is absent
            "command_id": self.command_id,
            "actor": actor,
            "wire_name": described.wire_name,
            "job_id": self.job_id,
            "due_time": None if due_time is None else format_instant(due_time),
            "parents": list(dict.fromkeys(parents)) or None,
            "mode": None if mode == DependencyMode.ON_SUCCESS else mode,
            "tags": [_tag(tag) for tag in tags] or None,
            "retry": None if policy == DEFAULT_RETRY else write_retry(policy),
            "trace_context": trace_context,
            "workflow_id": workflow_id,
        }
        self._command = _checked(self.job_id, given, described.payload)

    @property
    def payload_size(self) -> int:
        """Bytes of compact JSON."""
        return len(self._command.payload)

    @property
    def wire_name(self) -> str:
        """Which handler the job is for."""
        return self._command.wire_name

    @property
    def parents(self) -> Sequence[JobId]:
        """The distinct jobs that this one waits for."""
        return self._command.parents

    def encoded(self, reply_to: ClientId | None) -> bytes:
        """The command that asks for the job, and for an answer to that client if there is one."""
        # It is written at once, so two clients that send the same job do not meet here; a copy costs more
        # than all the writing.
        self._command.reply_to = reply_to
        return encode_command(self._command)

    def __repr__(self) -> str:
        return f"NewJob({self.wire_name!r}, job_id={self.job_id!r})"


def _payload(value: object) -> JsonBytes:
    try:
        return from_python(value)
    except NotStorable as error:
        raise InvalidCommand("payload", f"payload is {error}") from None


def _respelled(payload: JsonBytes) -> JsonBytes:
    try:
        return dumps(loads(payload))
    except NotStorable as error:
        raise InvalidCommand("payload", f"payload has {error}") from None


def _job_id(queue: str, key: str) -> JobId:
    try:
        name = identity.queue_name(queue)
    except InvalidName as error:
        raise InvalidCommand("queue", f"queue {error}") from None
    try:
        return identity.job_id(name, key)
    except InvalidName as error:
        raise InvalidCommand("key", f"key {error}") from None


def _due_time(delay: float | None, due: datetime | None) -> Instant | None:
    if delay is not None and due is not None:
        raise ValueError(f"delay ({delay}) and due ({due}) exclude each other; give one of them")
    if due is not None:
        try:
            return from_datetime(due)
        except NotAnInstant as error:
            raise ValueError(f"due: {error}") from None
    if delay is None:
        return None
    if not 0 <= delay <= MAX_SECONDS:  # false for NaN too
        raise ValueError(f"delay is {delay} s; it must be 0 to {MAX_SECONDS} s")
    return later(now(), from_seconds(delay))


def _tag(tag: TagLike) -> Json:
    if isinstance(tag, tuple):
        return dict([tag])
    return tag if isinstance(tag, str) else dict(tag)


def _checked(job_id: JobId, given: dict[str, Json], payload: JsonBytes) -> Enqueue:
    """The command, after the checks that need no engine, in the contract's order (section 3, Bounds)."""
    command = check_command(Enqueue, given)
    command.payload = payload
    if len(payload) > MAX_PAYLOAD_BYTES:
        # Engines measure the value as they write it; ours may spell a number with more characters.
        command.payload = _respelled(payload)
        if len(command.payload) > MAX_PAYLOAD_BYTES:
            raise PayloadTooLarge(job_id, len(command.payload))
    if len(command.wire_name) > MAX_WIRE_NAME_CHARS:
        raise WireNameTooLong(job_id, command.wire_name)
    if len(command.parents) > MAX_PARENTS:
        raise TooManyParents(job_id, len(command.parents))
    return command
