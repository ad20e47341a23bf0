"""A job that is about to be enqueued: its id and its command, checked as far as can be without an engine."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TypeAlias, TypedDict

import orjson

from tidelog.client.checking import check_command, check_queue
from tidelog.client.errors import (
    CommandRefused,
    InvalidCommand,
    PayloadTooLarge,
    TooManyParents,
    WireNameTooLong,
)
from tidelog.client.minting import mint, now
from tidelog.handler.jobs import JobDefinition, JobRequest, Retry, policy_of
from tidelog_events import identity
from tidelog_events.bounds import MAX_KEY_CHARS, MAX_PARENTS, MAX_PAYLOAD_BYTES, MAX_WIRE_NAME_CHARS
from tidelog_events.codec import encode_command
from tidelog_events.commands import Enqueue
from tidelog_events.identity import DEFAULT_QUEUE, ClientId, CommandId, InvalidName, JobId, QueueName
from tidelog_events.instants import (
    MAX_SECONDS,
    Instant,
    NotAnInstant,
    format_instant,
    from_datetime,
    from_seconds,
    later,
)
from tidelog_events.jsontext import NULL, Json, JsonBytes, NotStorable, dumps, from_python, loads
from tidelog_events.retry import DEFAULT_RETRY, RetryPolicy
from tidelog_events.states import DependencyMode
from tidelog_events.wire import write_retry

TagLike: TypeAlias = str | tuple[str, str] | Mapping[str, str]
"""A label, or a key with its value: `"urgent"`, `("customer", "42")`, `{"customer": "42"}`."""


class JobOptions(TypedDict, total=False):
    """The keyword arguments of `NewJob`, where they are said."""

    queue: str | None
    key: str | None
    delay: float | timedelta | None
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
        delay: seconds from now until the job is due, or a timedelta; not together with `due`.
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
        command_id: as given, or minted.
        wire_name: which handler the job is for.
        parents: the distinct jobs that this one waits for.

    Raises:
        InvalidCommand: a field is malformed; it is named.
        PayloadTooLarge, WireNameTooLong, TooManyParents: over a bound; the value and the bound are named.
        TypeError: `job` is no description of one (the handler itself, or what a call of it gave), or `retry`
            is no `Retry`.
        ValueError: `delay` and `due` together, a negative delay, a time without a zone, or a payload beside
            a description.
    """

    __slots__ = ("_fields", "_payload", "command_id", "job_id", "parents", "wire_name")

    def __init__(
        self,
        job: JobRequest | str,
        payload: object = None,
        *,
        queue: str | None = None,
        key: str | None = None,
        delay: float | timedelta | None = None,
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
        described = describe(job, payload)
        policy = policy_of(retry, described.retry)
        minted = mint()
        self.job_id = _job_id(described.queue if queue is None else queue, key, minted)
        # A minted key names this very call as well as any other new name would.
        self.command_id = CommandId(minted if command_id is None else command_id)
        self.wire_name = described.wire_name
        given: dict[str, Json] = {}
        if tags or actor is not None or trace_context is not None or workflow_id is not None:
            given = {"tags": written_tags(tags) or None, "actor": actor}
            given |= {"trace_context": trace_context, "workflow_id": workflow_id}
        if parents or mode != DependencyMode.ON_SUCCESS:
            given |= {"parents": _distinct(parents) or None, "mode": mode}
        due_time = _due_time(delay, due)
        if due_time is not None:
            given["due_time"] = format_instant(due_time)
        self.parents: Sequence[JobId] = ()
        if given or command_id is not None or len(self.wire_name) > MAX_WIRE_NAME_CHARS:
            given |= {"command_id": self.command_id, "job_id": self.job_id}
            command = check_command(Enqueue, given | _common_fields(self.wire_name, policy))
            self.parents = command.parents
            self._fields = encode_command(command)[1:-1]
        else:
            # Nearly all jobs say nothing that their definition does not say of all of them: that is checked
            # and written once, and an id is made of characters that JSON writes as they are.
            self._fields = b'"command_id":"%b","job_id":"%b",%b' % (
                self.command_id.encode(),
                self.job_id.encode(),
                _definition(self.wire_name, policy),
            )
        self._payload = _bounded(self, described.payload)

    @property
    def payload_size(self) -> int:
        """Bytes of compact JSON."""
        return len(self._payload)

    def encoded(self, reply_to: ClientId | None) -> bytes:
        """The command that asks for the job, and for an answer to that client if there is one."""
        return b'{%b,"payload":%b%b}' % (self._fields, self._payload, _reply_to(reply_to))

    def __repr__(self) -> str:
        return f"NewJob({self.wire_name!r}, job_id={self.job_id!r})"


def is_plain(request: object) -> bool:
    """Whether a job of that description, without anything more said, is sure to pass all checks made here.

    False only says that `NewJob` must tell.
    """
    return (
        isinstance(request, JobRequest)
        and len(request.payload) <= MAX_PAYLOAD_BYTES
        and _is_sound(request.wire_name, request.queue, request.retry)
    )


@lru_cache(maxsize=1_024)  # few definitions serve all jobs
def _is_sound(wire_name: str, queue: QueueName, retry: RetryPolicy) -> bool:
    try:
        NewJob(JobRequest(wire_name, NULL, queue, retry))
    except CommandRefused:
        return False
    return True


def _common_fields(wire_name: str, retry: RetryPolicy) -> dict[str, Json]:
    """What the definition of a job says of all its jobs."""
    return {"wire_name": wire_name, "retry": None if retry == DEFAULT_RETRY else write_retry(retry)}


@lru_cache(maxsize=1_024)
def _definition(wire_name: str, retry: RetryPolicy) -> bytes:
    """The same as part of the text of a command."""
    return encode_command(check_command(Enqueue, _common_fields(wire_name, retry)))[1:-1]


@lru_cache(maxsize=64)
def _reply_to(client_id: ClientId | None) -> bytes:
    return b"" if client_id is None else b',"reply_to":%b' % orjson.dumps(client_id)


def describe(job: object, payload: object) -> JobRequest:
    """The job that is meant: a description as it is, a wire name with its payload.

    Raises:
        InvalidCommand: the payload has no form in JSON.
        TypeError: the handler itself, what a call of it gave, or anything else that describes no job.
        ValueError: a payload beside a description.
    """
    if isinstance(job, str):
        return JobRequest(job, _payload_of(payload), DEFAULT_QUEUE, DEFAULT_RETRY)
    if isinstance(job, JobDefinition):
        raise TypeError(f"{job!r} is a handler; describe the job with its arguments, by its .job(...)")
    if not isinstance(job, JobRequest):
        raise TypeError(
            f"{reprlib.repr(job)} describes no job. Give what handler.job(...) returns (handler(...) calls "
            "the function itself), or a wire name and a payload"
        )
    if payload is not None:
        raise ValueError(f"{job.wire_name!r} is described with its payload; give no other one")
    return job


def _payload_of(value: object) -> JsonBytes:
    """A Python value as compact JSON. Raises `InvalidCommand`."""
    try:
        return from_python(value)
    except NotStorable as error:
        raise InvalidCommand("payload", f"payload is {error}") from None


def _respelled(payload: JsonBytes) -> JsonBytes:
    try:
        return dumps(loads(payload))
    except NotStorable as error:
        raise InvalidCommand("payload", f"payload has {error}") from None


def _job_id(queue: str, key: str | None, minted: str) -> JobId:
    name = check_queue(queue)
    if key is None:
        return JobId(f"{name}/{minted}")
    try:
        return identity.job_id(name, key)
    except InvalidName:
        raise InvalidCommand(
            "key", f"key {key!r} must be 1 to {MAX_KEY_CHARS} characters of A-Z a-z 0-9 . _ : @ + = -"
        ) from None


def _distinct(parents: Sequence[str]) -> list[Json]:
    if isinstance(parents, str):
        raise InvalidCommand("parents", f"parents is {parents!r}, and must be a list: [{parents!r}]")
    return list(dict.fromkeys(parents))


def _due_time(delay: float | timedelta | None, due: datetime | None) -> Instant | None:
    if delay is not None and due is not None:
        raise ValueError(f"delay ({delay}) and due ({due}) exclude each other; give one of them")
    if due is not None:
        try:
            return from_datetime(due)
        except NotAnInstant as error:
            raise ValueError(f"due: {error}") from None
    if delay is None:
        return None
    seconds = delay.total_seconds() if isinstance(delay, timedelta) else delay
    if not 0 <= seconds <= MAX_SECONDS:  # false for NaN too
        raise ValueError(f"delay is {seconds} s; it must be 0 to {MAX_SECONDS} s")
    return later(now(), from_seconds(seconds))


def written_tags(tags: Sequence[TagLike]) -> list[Json]:
    """Tags as commands carry them. Raises `InvalidCommand` for one that stands without its list."""
    if isinstance(tags, str | Mapping):  # read as a list it would be a tag for each letter, or for each key
        raise InvalidCommand("tags", f"tags is {tags!r}, and must be a list: [{tags!r}]")
    return [_written_tag(tag) for tag in tags]


def _written_tag(tag: TagLike) -> Json:
    if isinstance(tag, tuple):
        return dict([tag])
    return tag if isinstance(tag, str) else dict(tag)


def _bounded(job: NewJob, payload: JsonBytes) -> JsonBytes:
    """The payload of a job that is well formed, after the checks of the bounds in the contract's order."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        # Engines measure the value as they write it; ours may spell a number with more characters.
        payload = _respelled(payload)
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise PayloadTooLarge(job.job_id, len(payload))
    if len(job.wire_name) > MAX_WIRE_NAME_CHARS:
        raise WireNameTooLong(job.job_id, job.wire_name)
    if len(job.parents) > MAX_PARENTS:
        raise TooManyParents(job.job_id, len(job.parents))
    return payload
