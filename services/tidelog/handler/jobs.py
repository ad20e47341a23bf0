"""Jobs as code declares them (contract section 8).

`declare` makes the decorator behind `App.job`. The decorated function stays callable as it was; `.job(...)`
on it describes a job to enqueue, with the function's own parameters, type-checked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import update_wrapper
from math import isfinite
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

from tidelog.handler.context import JobContext
from tidelog.handler.signature import DefinitionError, HandlerSignature
from tidelog_events.bounds import MAX_WIRE_NAME_CHARS
from tidelog_events.identity import DEFAULT_QUEUE, InvalidName, QueueName, queue_name
from tidelog_events.instants import MAX_SECONDS, from_seconds
from tidelog_events.jsontext import JsonBytes
from tidelog_events.retry import DEFAULT_MAX_ATTEMPTS, DEFAULT_RETRY, RetryPolicy

CallP = ParamSpec("CallP")
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Retry:
    """How often a job is tried and how long it waits after a failure.

    Attributes:
        max_attempts: tries in all, 1 to 1,000.
        delays: seconds to wait after the 1st, 2nd … failure; the last one repeats. None: 2, 4, 8 …
            up to 300.

    Raises:
        ValueError: a number is outside its bounds.
    """

    max_attempts: int = DEFAULT_MAX_ATTEMPTS
    delays: Sequence[float] | None = None

    def __post_init__(self) -> None:
        _retry_policy(self.max_attempts, self.delays)  # refuses numbers outside their bounds here and now

    @property
    def policy(self) -> RetryPolicy:
        """The same in the form that commands and rules use."""
        return _retry_policy(self.max_attempts, self.delays)


def policy_of(retry: object, otherwise: RetryPolicy) -> RetryPolicy:
    """What a `retry=` argument says; `otherwise` when it is None. Raises `TypeError`."""
    if retry is None:
        return otherwise
    if not isinstance(retry, Retry):
        raise TypeError(f"retry is {retry!r}; write Retry(max_attempts=…, delays=[…])")
    return retry.policy


def _retry_policy(max_attempts: int, delays: Sequence[float] | None) -> RetryPolicy:
    for delay in delays or ():
        if not isfinite(delay):
            raise ValueError(f"a delay is {delay}; it must be 0 to {MAX_SECONDS} s")
    return RetryPolicy(
        max_attempts, None if delays is None else tuple(from_seconds(delay) for delay in delays)
    )


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A job to enqueue, as `.job(...)` describes it. When, under which key and after which parents it runs is
    said to the client.

    Attributes:
        payload: a JSON object of the arguments by name, as compact text.
    """

    wire_name: str
    payload: JsonBytes
    queue: QueueName
    retry: RetryPolicy


class JobDefinition(Generic[CallP, P, R_co]):
    """A handler and what its declaration says. Calling it calls the function itself.

    Attributes:
        wire_name: the name that commands carry.
        queue: where `.job(...)` enqueues.
        retry: the policy of jobs that `.job(...)` describes.
        timeout: seconds that one attempt may take; None for no bound.
        function: the handler as it was written.
        signature: its arguments and its result as JSON.
    """

    def __init__(
        self,
        function: Callable[CallP, Any],
        *,
        wire_name: str,
        queue: QueueName = DEFAULT_QUEUE,
        retry: RetryPolicy = DEFAULT_RETRY,
        timeout: float | None = None,
    ) -> None:
        self.wire_name = wire_name
        self.queue = queue
        self.retry = retry
        self.timeout = timeout
        self.function = function
        self.signature = HandlerSignature(function, f"job {wire_name!r}")
        update_wrapper(self, function, updated=())  # a function's own attributes must not overwrite ours

    def __call__(self, *args: CallP.args, **kwargs: CallP.kwargs) -> R_co:
        """Call the function itself, in place, as if it were not a job."""
        result: R_co = self.function(*args, **kwargs)
        return result

    def job(self, *args: P.args, **kwargs: P.kwargs) -> JobRequest:
        """Describe a job to enqueue, with the function's arguments but its context.

        Raises:
            TypeError: an argument is missing or unknown.
            InvalidArguments: an argument does not fit its type hint, or has no JSON form.
        """
        payload = self.signature.encode_arguments(args, kwargs)
        return JobRequest(self.wire_name, payload, self.queue, self.retry)

    def __repr__(self) -> str:
        return f"<job {self.wire_name!r} on {self.queue}>"


AnyJobDefinition: TypeAlias = JobDefinition[Any, Any, object]
"""A definition of whatever signature."""


class JobDecorator(Protocol):
    """Turns a handler into a `JobDefinition`; parameters and result keep their types."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[JobContext, P], R], /
    ) -> JobDefinition[Concatenate[JobContext, P], P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> JobDefinition[P, P, R]: ...


def declare(
    wire_name: str,
    *,
    queue: str = DEFAULT_QUEUE,
    retry: Retry | None = None,
    timeout: float | None = None,
    register: Callable[[AnyJobDefinition], None],
) -> JobDecorator:
    """The decorator of `App.job`.

    Args:
        wire_name: 1 to 128 characters; what commands name the job by. Keep it when you rename the function.
        queue: where the job is enqueued unless a call says otherwise.
        retry: None for ten attempts with growing delays.
        timeout: seconds that one attempt may take.
        register: takes the finished definition, and refuses a wire name that stands twice.

    Raises:
        DefinitionError: here or by the decorator; the message says what to change.
    """
    what = f"job {wire_name!r}"
    if not isinstance(wire_name, str):
        raise DefinitionError(
            f"{wire_name!r} is no wire name. Say what the job is called on the log, as in "
            '@app.job("send-invoice").'
        )
    if not wire_name or len(wire_name) > MAX_WIRE_NAME_CHARS:
        raise DefinitionError(
            f"{what} cannot be: a wire name has 1 to {MAX_WIRE_NAME_CHARS} characters, not {len(wire_name)}."
        )
    try:
        checked_queue = queue_name(queue)
    except InvalidName as error:
        raise DefinitionError(f"The queue of {what}: {error}") from None
    if timeout is not None and not 0 < timeout <= MAX_SECONDS:
        raise DefinitionError(f"The timeout of {what} is {timeout} s; it must be more than 0 s, or None.")
    try:
        policy = policy_of(retry, DEFAULT_RETRY)
    except TypeError as error:
        raise DefinitionError(f"The retry policy of {what}: {error}.") from None

    def decorate(function: Callable[..., Any], /) -> JobDefinition[Any, Any, Any]:
        if isinstance(function, JobDefinition):
            raise DefinitionError(f"{what} must decorate a function; {function!r} is a job already.")
        definition: JobDefinition[Any, Any, Any] = JobDefinition(
            function, wire_name=wire_name, queue=checked_queue, retry=policy, timeout=timeout
        )
        register(definition)
        return definition

    return decorate
