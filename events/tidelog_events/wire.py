"""How the dataclasses of the language are written as JSON objects and read back.

One plan per class, made once from its annotations, serves transitions, replies and records alike; the JSON
Schemas of `docs/schemas` come from the same annotations, so that they cannot disagree with the code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from functools import lru_cache
from typing import Annotated, Any, Final, TypeAlias, TypeVar, get_args, get_origin, get_type_hints

import orjson
from pydantic import WithJsonSchema

from tidelog_events.instants import Instant, format_instant, from_seconds, parse_instant, to_seconds
from tidelog_events.jsontext import Json, JsonBytes, dumps
from tidelog_events.retry import DEFAULT_RETRY, RetryPolicy

WireObject: TypeAlias = dict[str, Any]
"""A JSON object ready for orjson: its values are JSON values or `orjson.Fragment`s."""

Tag: TypeAlias = str | tuple[str, str]
"""A label, or a key with its value."""


@dataclass(frozen=True, slots=True)
class Wire:
    """Marks a field whose form on the wire is not its form in memory."""

    write: Callable[[Any], Any]
    read: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class OmittedWhenNone:
    """Marks a field that is not written at all when there is no value."""


def write_tag(tag: Tag) -> str | dict[str, str]:
    """A tag as the contract writes it: `"label"` or `{"key": "value"}`."""
    return tag if isinstance(tag, str) else {tag[0]: tag[1]}


def read_tag(tag: str | Mapping[str, str]) -> Tag:
    """A tag as `write_tag` wrote it."""
    if isinstance(tag, str):
        return tag
    ((key, value),) = tag.items()
    return key, value


def write_retry(retry: RetryPolicy) -> WireObject:
    """A retry policy as the contract writes it, delays in seconds."""
    # Nearly all jobs have this very one; to look any other up takes longer than all the rest of an event.
    return _WRITTEN_DEFAULT if retry is DEFAULT_RETRY else _written(retry)


@lru_cache(maxsize=1_024)  # few policies serve all jobs; nobody changes what is written
def _written(retry: RetryPolicy) -> WireObject:
    delays = None if retry.delays is None else [to_seconds(delay) for delay in retry.delays]
    return {"max_attempts": retry.max_attempts, "delays": delays}


_WRITTEN_DEFAULT: Final = _written(DEFAULT_RETRY)


def read_retry(retry: Mapping[str, Any]) -> RetryPolicy:
    """A retry policy as `write_retry` wrote it."""
    delays: list[float] | None = retry["delays"]
    return RetryPolicy(
        retry["max_attempts"], None if delays is None else tuple(from_seconds(delay) for delay in delays)
    )


TAG_SCHEMA: Final[dict[str, Any]] = {
    "anyOf": [
        {"type": "string", "minLength": 1},
        {
            "type": "object",
            "minProperties": 1,
            "maxProperties": 1,
            "additionalProperties": {"type": "string", "minLength": 1},
        },
    ]
}
TIME_SCHEMA: Final[dict[str, Any]] = {"type": "string", "format": "date-time"}
_RETRY_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "max_attempts": {"type": "integer"},
        "delays": {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]},
    },
    "required": ["max_attempts", "delays"],
}

WireInstant = Annotated[Instant, Wire(format_instant, parse_instant), WithJsonSchema(TIME_SCHEMA)]
WireInstants = Annotated[
    tuple[Instant, ...],
    Wire(
        lambda instants: [format_instant(instant) for instant in instants],
        lambda written: tuple(map(parse_instant, written)),
    ),
    WithJsonSchema({"type": "array", "items": TIME_SCHEMA}),
]
WireJson = Annotated[JsonBytes, Wire(orjson.Fragment, dumps), WithJsonSchema({})]
WireTags = Annotated[
    tuple[Tag, ...],
    Wire(
        lambda tags: [write_tag(tag) for tag in tags] if tags else (),
        lambda tags: tuple(map(read_tag, tags)),
    ),
    WithJsonSchema({"type": "array", "items": TAG_SCHEMA}),
]
WireRetry = Annotated[RetryPolicy, Wire(write_retry, read_retry), WithJsonSchema(_RETRY_SCHEMA)]


@dataclass(frozen=True, slots=True)
class _Plan:
    required: tuple[str, ...]
    write: Callable[[Any], WireObject]
    read: Callable[[Mapping[str, Any]], Any]
    omitted: tuple[str, ...]


def _parts(hint: object) -> list[object]:
    """An annotation, its metadata, and those of the members of `X | None`."""
    parts: list[object] = [hint]
    if get_origin(hint) is not tuple:
        for inner in get_args(hint):
            parts.extend(_parts(inner))
    return parts


def _reader(parts: list[object]) -> Callable[[Any], Any] | None:
    for part in parts:
        if isinstance(part, Wire):
            return part.read
        if isinstance(part, type) and issubclass(part, Enum):
            return _member_reader(part)
    return tuple if any(get_origin(part) is tuple for part in parts) else None


def field_writers(cls: type) -> dict[str, Callable[[Any], Any]]:
    """For each field whose form on the wire is not its form in memory: what makes the one of the other."""
    hints = get_type_hints(cls, include_extras=True)
    return {
        field.name: part.write
        for field in fields(cls)
        for part in _parts(hints[field.name])
        if isinstance(part, Wire)
    }


def _member_reader(cls: type[Enum]) -> Callable[[Any], Enum]:
    """A look into a table: to call the class takes ten times as long, for every event and answer."""
    members = {member.value: member for member in cls}

    def read(value: object) -> Enum:
        member = members.get(value)
        return cls(value) if member is None else member  # which says what is wrong with it

    return read


def _make_plan(cls: type) -> _Plan:
    hints = get_type_hints(cls, include_extras=True)
    names = tuple(field.name for field in fields(cls))
    parts = {name: _parts(hints[name]) for name in names}
    readers = {name: read for name in names if (read := _reader(parts[name])) is not None}
    omitted = tuple(name for name in names if any(isinstance(part, OmittedWhenNone) for part in parts[name]))
    return _Plan(
        required=tuple(
            field.name
            for field in fields(cls)
            if field.default is MISSING and field.default_factory is MISSING
        ),
        write=_compiled_writer(names, getattr(cls, "TYPE", None), field_writers(cls), omitted),
        read=_compiled_reader(cls, readers),
        omitted=omitted,
    )


def _compiled_writer(
    names: Sequence[str],
    kind: str | None,
    writers: Mapping[str, Callable[[Any], Any]],
    omitted: Sequence[str],
) -> Callable[[Any], WireObject]:
    """One function for one class, as `dataclasses` makes its own: all that an engine writes goes through it,
    and a loop over the fields takes more than twice as long.
    """
    entries = [] if kind is None else [f"'type': {kind!r}"]
    for name in names:
        converted = f"None if (value := of.{name}) is None else write_{name}(value)"
        entries.append(f"{name!r}: {converted if name in writers else f'of.{name}'}")
    lines = ["def write(of):", f"    written = {{{', '.join(entries)}}}"]
    for name in omitted:
        lines += [f"    if written[{name!r}] is None:", f"        del written[{name!r}]"]
    lines.append("    return written")
    return compiled_writer(lines, {f"write_{name}": write for name, write in writers.items()})


def compiled_writer(lines: Sequence[str], namespace: dict[str, Any]) -> Callable[[Any], WireObject]:
    """The function `write` of a text that is made of the names of our own fields."""
    exec("\n".join(lines), namespace)  # noqa: S102
    compiled: Callable[[Any], WireObject] = namespace["write"]
    return compiled


def _compiled_reader(
    cls: type, readers: Mapping[str, Callable[[Any], Any]]
) -> Callable[[Mapping[str, Any]], Any]:
    """One function for one class, for the same reason: clients and projectors read all that is written."""
    namespace: dict[str, Any] = {"cls": cls}
    arguments: list[str] = []
    for field in fields(cls):
        name, read = field.name, readers.get(field.name)
        value = f"written[{name!r}]"
        if read is dumps:  # a JSON null is a value of its own where any JSON may stand
            value = f"read_{name}({value})"
        elif read is not None:
            value = f"None if (value := {value}) is None else read_{name}(value)"
        if field.default is not MISSING:
            namespace[f"default_{name}"] = field.default
            value = f"({value}) if {name!r} in written else default_{name}"
        elif field.default_factory is not MISSING:
            namespace[f"default_{name}"] = field.default_factory
            value = f"({value}) if {name!r} in written else default_{name}()"
        arguments.append(f"{name}=({value})")
    namespace |= {f"read_{name}": read for name, read in readers.items()}
    text = f"def read(written):\n    return cls({', '.join(arguments)})"
    exec(text, namespace)  # noqa: S102  the text is made of the names of our own fields
    compiled: Callable[[Mapping[str, Any]], Any] = namespace["read"]
    return compiled


class _Plans(dict[type, _Plan]):
    """The plan of each class, made when it is first asked for."""

    def __missing__(self, cls: type) -> _Plan:
        plan = self[cls] = _make_plan(cls)
        return plan


_plans: Final = _Plans()


def omitted_fields(cls: type) -> tuple[str, ...]:
    """The fields that are not written at all when there is no value."""
    return _plans[cls].omitted


def to_wire(of: object) -> WireObject:
    """A dataclass of the language as a JSON object, ready for orjson; with its `TYPE`, if it has one."""
    return _plans[type(of)].write(of)


class Unreadable(ValueError):
    """A JSON object lacks a field, or a field is not what it should be."""


T = TypeVar("T")


def from_wire(cls: type[T], written: Mapping[str, Json]) -> T:
    """Read a JSON object that `to_wire` wrote; fields that the class does not know are ignored.

    Raises:
        Unreadable: a field is missing or of another form.
    """
    plan = _plans[cls]
    try:
        read: T = plan.read(written)
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        missing = next((name for name in plan.required if name not in written), None)
        if missing is not None:
            raise Unreadable(f"{cls.__name__}: the field {missing!r} is missing") from None
        raise Unreadable(f"{cls.__name__}: {error}") from error
    return read


def wire_rows(cls: type[T]) -> Wire:
    """The mark of a field that holds a tuple of such dataclasses."""
    return Wire(
        lambda rows: [to_wire(row) for row in rows],
        lambda rows: tuple(from_wire(cls, row) for row in rows),
    )
