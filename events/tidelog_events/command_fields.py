"""The fields of commands: how each is read, what is refused, how its schema says so (contract section 3)."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    BeforeValidator,
    FailFast,
    Field,
    PlainSerializer,
    PlainValidator,
    StrictInt,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import PydanticCustomError

from tidelog_events import bounds
from tidelog_events.cron import BUNDLED, NotACron, UnknownZone, cron_fields
from tidelog_events.identity import (
    JOB_ID_PATTERN,
    KNOWN_JOB_ID_PATTERN,
    QUEUE_PATTERN,
    ClientId,
    CommandId,
    JobId,
    QueueName,
    ScheduleId,
    WorkerId,
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
from tidelog_events.jsontext import HugeInt, JsonBytes, NotStorable, dumps
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


def distinct(parents: tuple[JobId, ...]) -> tuple[JobId, ...]:
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


def readable_cron(text: str) -> str:
    """The expression, if it is one that cron reads."""
    try:
        cron_fields(text)
    except NotACron as error:
        raise _refuse(str(error)) from None
    return text


def known_zone(text: str) -> str:
    """The name, if it is that of a time zone."""
    try:
        BUNDLED.zone(text)
    except UnknownZone as error:
        raise _refuse(str(error)) from None
    return text


def within_bounds(payload: JsonBytes) -> JsonBytes:
    """The payload of a schedule, which is refused as invalid when it is too large."""
    if len(payload) > bounds.MAX_PAYLOAD_BYTES:
        raise _refuse(
            f"is {len(payload)} bytes of compact JSON; at most {bounds.MAX_PAYLOAD_BYTES} are allowed"
        )
    return payload


def _printable(text: str) -> str:
    if not text.isprintable():
        raise _refuse("must be made of printable characters")
    return text


def text_of(max_chars: int | None = None, min_chars: int | None = None) -> StringConstraints:
    """A text of so many characters, and no number that looks like one."""
    return StringConstraints(strict=True, min_length=min_chars, max_length=max_chars)


def _pattern(pattern: str) -> StringConstraints:
    return StringConstraints(strict=True, pattern=f"^{pattern}$")


OF_ANY_LENGTH: Final = BeforeValidator(_within_reach)
"""For whole numbers: those beyond 64 bits are compared, and not refused as too long to be read."""
WholeNumber = Annotated[StrictInt, OF_ANY_LENGTH]
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
    WorkerId, text_of(bounds.MAX_WORKER_ID_CHARS, 1), AfterValidator(_printable), _NO_CONTROL_CHARACTERS
]
ClientIdField = Annotated[
    ClientId, text_of(bounds.MAX_CLIENT_ID_CHARS, 1), AfterValidator(_printable), _NO_CONTROL_CHARACTERS
]
CommandIdField = Annotated[
    CommandId,
    text_of(bounds.MAX_COMMAND_ID_CHARS),
    AfterValidator(_no_control_characters),
    _NO_CONTROL_CHARACTERS,
]
ActorField = Annotated[str, text_of(bounds.MAX_ACTOR_CHARS)]
CutText = Annotated[str, text_of(), AfterValidator(bounds.cut_text)]
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
