"""Commands: what anybody may ask of an engine (contract section 3), and the refusal of what is malformed.

The order of the fields is the order in which they are checked. null for an optional field means absent,
except where it says something of its own (`limit`, `next_due`).
"""

from __future__ import annotations

import re
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    PlainSerializer,
    PlainValidator,
    StrictBool,
    StrictInt,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tidelog_events import bounds
from tidelog_events.cron import BUNDLED, NotACron, UnknownZone, cron_fields
from tidelog_events.identity import (
    DEFAULT_QUEUE,
    JOB_ID_PATTERN,
    KNOWN_JOB_ID_PATTERN,
    QUEUE_PATTERN,
    ClientId,
    CommandId,
    JobId,
    QueueName,
    ScheduleId,
    WorkerId,
    queue_of,
)
from tidelog_events.instants import (
    MAX_SECONDS,
    TIME_PATTERN,
    Instant,
    Micros,
    NotAnInstant,
    format_instant,
    from_seconds,
    parse_instant,
    to_seconds,
)
from tidelog_events.jsontext import NULL, HugeInt, JsonBytes, NotStorable, dumps
from tidelog_events.retry import DEFAULT_MAX_ATTEMPTS, DEFAULT_RETRY, RetryPolicy
from tidelog_events.states import CatchUp, DependencyMode
from tidelog_events.wire import TIME_SCHEMA, Tag, write_tag


def _refuse(message: str) -> PydanticCustomError:
    return PydanticCustomError("refused", "{message}", {"message": message})


_FAR = 1 << 63


def _within_reach(value: Any) -> Any:
    """A whole number too long to convert is outside of every bound, and equal to no attempt and no lease."""
    if isinstance(value, HugeInt):
        return -_FAR if value.digits.startswith("-") else _FAR
    return value


def _read_json(value: Any) -> JsonBytes:
    try:
        return dumps(value)
    except NotStorable as error:
        raise _refuse(
            f"must be a JSON value without {error}".replace("without a string has", "without")
        ) from None


def _read_time(value: Any) -> Instant:
    if not isinstance(value, str):
        raise _refuse("must be a time as text, such as 2026-01-31T09:00:00Z")
    try:
        return parse_instant(value)
    except NotAnInstant as error:
        raise _refuse(str(error)) from None


def _read_seconds(value: Any) -> Micros:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _refuse("must be a number of seconds")
    if not 0 <= value <= MAX_SECONDS:
        raise _refuse(f"must be 0 to {MAX_SECONDS} seconds")
    return from_seconds(value)


def _more_than_nothing(duration: Micros) -> Micros:
    """A duration that must last; what would round to nothing lasts a microsecond."""
    return Micros(max(duration, 1))


def _read_positive_seconds(value: Any) -> Micros:
    duration = _read_seconds(value)
    if value <= 0:
        raise _refuse("must be more than 0 seconds")
    return _more_than_nothing(duration)


def _read_tag(value: Any) -> Tag:
    texts: tuple[Any, ...]
    if isinstance(value, str):
        texts = (value,)
    elif isinstance(value, dict) and len(value) == 1:
        texts = next(iter(value.items()))
    else:
        raise _refuse("must be a text or an object of exactly one pair of texts")
    for text in texts:
        if not isinstance(text, str) or not text:
            raise _refuse("must be made of texts that are not empty")
        if len(text) > bounds.MAX_TAG_CHARS:
            raise _refuse(f"has a text of {len(text)} characters; at most {bounds.MAX_TAG_CHARS} are allowed")
        _no_surrogate(text)
    return texts[0] if len(texts) == 1 else (texts[0], texts[1])


def _no_surrogate(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _refuse("must not hold a lone surrogate") from None


def _distinct(parents: tuple[JobId, ...]) -> tuple[JobId, ...]:
    """Duplicates collapse before anything is kept: a command may name a parent thousands of times."""
    return tuple(dict.fromkeys(parents))


def _tag_set(tags: tuple[Tag, ...]) -> tuple[Tag, ...]:
    distinct = tuple(dict.fromkeys(tags))
    if len(distinct) > bounds.MAX_TAGS:
        raise _refuse(f"there are {len(distinct)} tags; at most {bounds.MAX_TAGS} are allowed")
    return distinct


_CONTROL_CHARACTER: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def _no_control_characters(text: str) -> str:
    if not text.isprintable() and _CONTROL_CHARACTER.search(text) is not None:
        raise _refuse("must not hold control characters")
    return text


def _a_cron(text: str) -> str:
    try:
        cron_fields(text)
    except NotACron as error:
        raise _refuse(str(error)) from None
    return text


def _a_time_zone(text: str) -> str:
    try:
        BUNDLED.zone(text)
    except UnknownZone as error:
        raise _refuse(str(error)) from None
    return text


def _within_bounds(payload: JsonBytes) -> JsonBytes:
    if len(payload) > bounds.MAX_PAYLOAD_BYTES:
        raise _refuse(
            f"is {len(payload)} bytes of compact JSON; at most {bounds.MAX_PAYLOAD_BYTES} are allowed"
        )
    return payload


def _printable(text: str) -> str:
    if not text.isprintable():
        raise _refuse("must be made of printable characters")
    return text


def _text(max_chars: int | None = None, min_chars: int | None = None) -> StringConstraints:
    return StringConstraints(strict=True, min_length=min_chars, max_length=max_chars)


def _pattern(pattern: str) -> StringConstraints:
    return StringConstraints(strict=True, pattern=f"^{pattern}$")


_OF_ANY_LENGTH: Final = BeforeValidator(_within_reach)
WholeNumber = Annotated[StrictInt, _OF_ANY_LENGTH]
_NUMBER_SCHEMA: Final = {"type": "number", "minimum": 0, "maximum": MAX_SECONDS}
_TAG_TEXT_SCHEMA: Final = {"type": "string", "minLength": 1, "maxLength": bounds.MAX_TAG_CHARS}
_TAG_SCHEMA: Final = {
    "anyOf": [
        _TAG_TEXT_SCHEMA,
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "propertyNames": _TAG_TEXT_SCHEMA,
            "additionalProperties": _TAG_TEXT_SCHEMA,
        },
    ]
}
_NO_CONTROL_CHARACTERS: Final = Field(json_schema_extra={"pattern": r"^[^\u0000-\u001f\u007f-\u009f]*$"})

QueueField = Annotated[QueueName, _pattern(QUEUE_PATTERN)]
ChosenJobId = Annotated[JobId, _pattern(JOB_ID_PATTERN)]
KnownJobId = Annotated[JobId, _pattern(KNOWN_JOB_ID_PATTERN)]
ScheduleIdField = Annotated[ScheduleId, _pattern(JOB_ID_PATTERN)]
WorkerIdField = Annotated[
    WorkerId, _text(bounds.MAX_WORKER_ID_CHARS, 1), AfterValidator(_printable), _NO_CONTROL_CHARACTERS
]
ClientIdField = Annotated[
    ClientId, _text(bounds.MAX_CLIENT_ID_CHARS, 1), AfterValidator(_printable), _NO_CONTROL_CHARACTERS
]
CommandIdField = Annotated[
    CommandId,
    _text(bounds.MAX_COMMAND_ID_CHARS),
    AfterValidator(_no_control_characters),
    _NO_CONTROL_CHARACTERS,
]
ActorField = Annotated[str, _text(bounds.MAX_ACTOR_CHARS)]
CutText = Annotated[str, _text(), AfterValidator(bounds.cut_text)]
JsonField = Annotated[
    JsonBytes, PlainValidator(_read_json), PlainSerializer(lambda text: text), WithJsonSchema({})
]
TimeField = Annotated[
    Instant,
    PlainValidator(_read_time),
    PlainSerializer(format_instant),
    WithJsonSchema({**TIME_SCHEMA, "pattern": f"^{TIME_PATTERN}$"}),
]
SecondsField = Annotated[
    Micros, PlainValidator(_read_seconds), PlainSerializer(to_seconds), WithJsonSchema(_NUMBER_SCHEMA)
]
PositiveSecondsField = Annotated[
    Micros,
    PlainValidator(_read_positive_seconds),
    PlainSerializer(to_seconds),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": MAX_SECONDS}),
]
TagField = Annotated[Tag, PlainValidator(_read_tag), PlainSerializer(write_tag), WithJsonSchema(_TAG_SCHEMA)]
# Lists fail at their first fault: it alone is told, and to describe 100,000 of them takes seconds.
TagsField = Annotated[
    tuple[TagField, ...],
    FailFast(),
    AfterValidator(_tag_set),
    Field(description=f"A set in order of first appearance; at most {bounds.MAX_TAGS} distinct tags."),
]
DEFAULT_LEASE = Micros(60_000_000)


class Fields(BaseModel):
    """An object whose unknown fields are refused, and whose null optional fields are absent."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    NULL_SPEAKS: ClassVar[frozenset[str]] = frozenset()
    """Fields for which null says something else than nothing."""

    KNOWN: ClassVar[frozenset[str]] = frozenset()
    """The names of the fields."""

    @classmethod
    def __pydantic_init_subclass__(cls, **_: Any) -> None:
        cls.KNOWN = frozenset(cls.model_fields)

    @model_validator(mode="before")
    @classmethod
    def _check_the_names(cls, given: Any) -> Any:
        """Refuse the first unknown field before any other is looked at, and leave out the absent ones."""
        if not isinstance(given, dict):
            return given
        if not given.keys() <= cls.KNOWN:
            unknown = next(name for name in given if name not in cls.KNOWN)
            # pydantic writes the context into its message, which must be UTF-8.
            field = unknown.encode(errors="replace").decode()
            raise PydanticCustomError("at_field", "is not a field here", {"field": field})
        if None in given.values():
            return {
                name: value for name, value in given.items() if value is not None or name in cls.NULL_SPEAKS
            }
        return given


class Retry(Fields):
    """The retry policy of a job as a command gives it."""

    max_attempts: Annotated[StrictInt, Field(ge=1, le=bounds.MAX_ATTEMPTS), _OF_ANY_LENGTH] = (
        DEFAULT_MAX_ATTEMPTS
    )
    delays: Annotated[list[SecondsField], Field(min_length=1, max_length=bounds.MAX_DELAYS)] | None = None

    @property
    def policy(self) -> RetryPolicy:
        """The policy in the form that the rules use."""
        return RetryPolicy(self.max_attempts, None if self.delays is None else tuple(self.delays))


class CommandFields(Fields):
    """What every command may carry."""

    command_id: CommandIdField | None = None
    reply_to: ClientIdField | None = None
    actor: ActorField | None = None


class Enqueue(CommandFields):
    """Bear a job."""

    type: Literal["enqueue"] = "enqueue"
    queue: Annotated[
        QueueField | None, Field(description=f"`{DEFAULT_QUEUE}` when absent, or that of the job id.")
    ] = None
    wire_name: Annotated[
        str,
        _text(min_chars=1),
        Field(description=f"More than {bounds.MAX_WIRE_NAME_CHARS} characters are `WireNameTooLong`."),
    ]
    payload: Annotated[
        JsonField,
        Field(
            description=f"More than {bounds.MAX_PAYLOAD_BYTES} bytes of compact JSON are `PayloadTooLarge`."
        ),
    ] = NULL
    job_id: ChosenJobId | None = None
    due_time: TimeField | None = None
    parents: Annotated[
        tuple[KnownJobId, ...],
        FailFast(),
        AfterValidator(_distinct),
        Field(description=f"More than {bounds.MAX_PARENTS} distinct ones are `TooManyParents`."),
    ] = ()
    mode: DependencyMode = DependencyMode.ON_SUCCESS
    tags: TagsField = ()
    retry: Retry | None = None
    trace_context: Annotated[str, _text(bounds.MAX_TRACE_CONTEXT_CHARS)] | None = None
    workflow_id: Annotated[str, _text(bounds.MAX_WORKFLOW_ID_CHARS)] | None = None
    schedule_id: ScheduleIdField | None = None

    @model_validator(mode="after")
    def _agree_on_the_queue(self) -> Self:
        if self.job_id is not None and self.queue is not None and queue_of(self.job_id) != self.queue:
            raise PydanticCustomError(
                "at_field",
                "{message}",
                {"field": "job_id", "message": f"must start with its queue, {self.queue}/"},
            )
        if self.schedule_id is not None and queue_of(self.schedule_id) != self.target_queue:
            raise PydanticCustomError(
                "at_field",
                "{message}",
                {"field": "schedule_id", "message": f"must be of the job's own queue, {self.target_queue}"},
            )
        return self

    @property
    def target_queue(self) -> QueueName:
        """The queue that the job is for: as said, else the job id's, else the default one."""
        if self.queue is not None:
            return self.queue
        return DEFAULT_QUEUE if self.job_id is None else queue_of(self.job_id)

    @property
    def retry_policy(self) -> RetryPolicy:
        """The policy as given, or the default one."""
        return DEFAULT_RETRY if self.retry is None else self.retry.policy


class Claim(CommandFields):
    """Ask for jobs of a queue; with `wait_seconds` the claim is parked until there are some."""

    type: Literal["claim"] = "claim"
    worker_id: WorkerIdField
    queue: QueueField
    max_jobs: Annotated[StrictInt, Field(ge=1), _OF_ANY_LENGTH] = 1
    lease_seconds: PositiveSecondsField = DEFAULT_LEASE
    wait_seconds: SecondsField = Micros(0)


class LeaseRow(Fields):
    """A lease that a heartbeat renews."""

    job_id: KnownJobId
    attempt: WholeNumber
    lease: WholeNumber | None = None


class Heartbeat(CommandFields):
    """Renew leases from now on."""

    type: Literal["heartbeat"] = "heartbeat"
    worker_id: WorkerIdField
    leases: Annotated[list[LeaseRow], FailFast()]
    lease_seconds: PositiveSecondsField = DEFAULT_LEASE


class Success(LeaseRow):
    """The handler finished."""

    outcome: Literal["Success"] = "Success"
    output: JsonField = NULL
    add_tags: TagsField = ()


class Failure(LeaseRow):
    """The handler failed. `next_due`: a time = retry then, null = no retry, absent = the job's own policy."""

    NULL_SPEAKS = frozenset({"next_due"})

    outcome: Literal["Failure"] = "Failure"
    error: CutText
    failure_detail: CutText | None = None
    next_due: TimeField | None = None
    add_tags: TagsField = ()

    @property
    def follows_policy(self) -> bool:
        """Whether the job's own retry policy decides."""
        return "next_due" not in self.model_fields_set


class CancelledOutcome(LeaseRow):
    """The handler stopped because it was asked to."""

    outcome: Literal["Cancelled"] = "Cancelled"
    cause: CutText | None = None


class Unroutable(LeaseRow):
    """The worker has no handler for the job, or its payload no longer decodes."""

    outcome: Literal["Unroutable"] = "Unroutable"
    reason: CutText


class ReturnedOutcome(LeaseRow):
    """The worker shuts down and gives the job back."""

    outcome: Literal["Returned"] = "Returned"


Outcome: TypeAlias = Success | Failure | CancelledOutcome | Unroutable | ReturnedOutcome


class Report(CommandFields):
    """Outcomes of attempts. One row never affects another."""

    type: Literal["report"] = "report"
    worker_id: WorkerIdField
    outcomes: Annotated[list[Annotated[Outcome, Field(discriminator="outcome")]], FailFast()]


class Cancel(CommandFields):
    """Cancel a job that has not ended."""

    type: Literal["cancel"] = "cancel"
    job_id: KnownJobId


class Requeue(CommandFields):
    """Start a dead-lettered or quarantined job again."""

    type: Literal["requeue"] = "requeue"
    job_id: KnownJobId


class PauseQueue(CommandFields):
    """Grant nothing from a queue from now on."""

    type: Literal["pause_queue"] = "pause_queue"
    queue: QueueField


class ResumeQueue(CommandFields):
    """Grant work from a queue again."""

    type: Literal["resume_queue"] = "resume_queue"
    queue: QueueField


class SetConcurrencyLimit(CommandFields):
    """Bound how many jobs of a queue are leased at once; null for no bound."""

    NULL_SPEAKS = frozenset({"limit"})

    type: Literal["set_concurrency_limit"] = "set_concurrency_limit"
    queue: QueueField
    limit: Annotated[StrictInt, Field(ge=1, le=bounds.MAX_CONCURRENCY_LIMIT), _OF_ANY_LENGTH] | None


class PutSchedule(CommandFields):
    """Define a schedule, anew or for the first time: it ticks from now on."""

    type: Literal["put_schedule"] = "put_schedule"
    schedule_id: ScheduleIdField
    cron: Annotated[
        str,
        _text(),
        AfterValidator(_a_cron),
        Field(
            description="5 fields, or 6 with leading seconds, at most "
            f"{bounds.MAX_CRON_CHARS} characters; it must fire at some time."
        ),
    ]
    time_zone: Annotated[
        str,
        _text(),
        AfterValidator(_a_time_zone),
        Field(description="The key of a zone in the IANA database, such as Europe/Berlin."),
    ] = "UTC"
    wire_name: Annotated[str, _text(bounds.MAX_WIRE_NAME_CHARS, 1)]
    payload: Annotated[
        JsonField,
        AfterValidator(_within_bounds),
        Field(description=f"At most {bounds.MAX_PAYLOAD_BYTES} bytes of compact JSON."),
    ] = NULL
    tags: TagsField = ()
    retry: Retry | None = None
    catch_up: CatchUp = CatchUp.SKIP
    no_overlap: StrictBool = False

    @property
    def retry_policy(self) -> RetryPolicy:
        """The policy as given, or the default one."""
        return DEFAULT_RETRY if self.retry is None else self.retry.policy


class RemoveSchedule(CommandFields):
    """Let a schedule tick no more; its jobs stay."""

    type: Literal["remove_schedule"] = "remove_schedule"
    schedule_id: ScheduleIdField


class TriggerSchedule(CommandFields):
    """Mint an instance of a schedule now, whatever its ticks."""

    type: Literal["trigger_schedule"] = "trigger_schedule"
    schedule_id: ScheduleIdField


Command: TypeAlias = (
    Enqueue
    | Claim
    | Heartbeat
    | Report
    | Cancel
    | Requeue
    | PauseQueue
    | ResumeQueue
    | SetConcurrencyLimit
    | PutSchedule
    | RemoveSchedule
    | TriggerSchedule
)

COMMAND_CLASSES: tuple[type[Command], ...] = (
    Enqueue,
    Claim,
    Heartbeat,
    Report,
    Cancel,
    Requeue,
    PauseQueue,
    ResumeQueue,
    SetConcurrencyLimit,
    PutSchedule,
    RemoveSchedule,
    TriggerSchedule,
)
COMMANDS_BY_TYPE: Final[dict[str, type[Command]]] = {
    str(cls.model_fields["type"].default): cls for cls in COMMAND_CLASSES
}
