"""JSON Schemas of everything on the wire, for producers and readers in other languages.

They are made from the classes that the code itself reads and writes with, so that they cannot disagree with
it. Commands are closed: what the parser accepts fits, and an unknown field does not. Events and answers are
open: a reader must pass over fields and types that it does not know (contract section 4).

`python -m tidelog_events.schemas FOLDER` writes them; the project keeps them in `docs/schemas`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from pydantic import TypeAdapter
from pydantic.json_schema import models_json_schema

from tidelog_events.commands import COMMAND_CLASSES, COMMANDS_BY_TYPE, Fields
from tidelog_events.jsontext import NULL
from tidelog_events.record import JobRecord
from tidelog_events.replies import (
    CancelRequestedPush,
    ClaimReply,
    EnqueueReply,
    Grant,
    HeartbeatReply,
    Hello,
    InvalidReply,
    LeaseAnswer,
    Reply,
    ReportReply,
    Result,
    TriggerReply,
)
from tidelog_events.transitions import TRANSITION_CLASSES
from tidelog_events.wire import omitted_fields

Schema: TypeAlias = dict[str, Any]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_DISCRIMINATORS: Final = ("type", "outcome")
_REPLIES: Final[dict[str, type[Reply]]] = {
    **dict.fromkeys(COMMANDS_BY_TYPE, Reply),
    "enqueue": EnqueueReply,
    "claim": ClaimReply,
    "heartbeat": HeartbeatReply,
    "report": ReportReply,
    "trigger_schedule": TriggerReply,
}
_ANSWER_CLASSES: Final = (
    Reply,
    InvalidReply,
    EnqueueReply,
    ClaimReply,
    HeartbeatReply,
    ReportReply,
    TriggerReply,
    CancelRequestedPush,
    Hello,
    Grant,
    LeaseAnswer,
)


def schemas() -> dict[str, Schema]:
    """The schemas by the names of their files."""
    return {
        "commands.json": command_schema(),
        "transitions.json": transition_schema(),
        "replies.json": reply_schema(),
        "job-record.json": record_schema(),
    }


def command_schema() -> Schema:
    """What a producer may send (contract section 3).

    Everything that the parser accepts fits. What a schema cannot say is refused all the same: contradictions
    between fields, more than 32 distinct tags, nesting beyond 512 levels, lone surrogates.
    """
    _, document = models_json_schema([(cls, "validation") for cls in COMMAND_CLASSES])
    definitions: dict[str, Schema] = _plain(document["$defs"])
    for cls in _all_below(Fields):
        if cls.__name__ in definitions:
            _as_a_producer_sends(definitions[cls.__name__], _defaults(cls))
    one_of = [_reference(cls.__name__) for cls in COMMAND_CLASSES]
    return _document("commands", "A command: the value of a record on `commands`.", definitions, oneOf=one_of)


def transition_schema() -> Schema:
    """What stands on the log (contract section 4). Types that are not listed are of a later release."""
    definitions = _dataclass_definitions(TRANSITION_CLASSES)
    for cls in TRANSITION_CLASSES:
        _add_type(definitions[cls.__name__], cls.TYPE)
    cases = [_when({"type": {"const": cls.TYPE}}, cls) for cls in TRANSITION_CLASSES]
    return _document(
        "transitions",
        "A transition: the value of a record on `transitions`. Pass over types and fields not listed here.",
        definitions,
        type="object",
        required=["type"],
        properties={"type": {"type": "string"}},
        allOf=cases,
    )


def reply_schema() -> Schema:
    """What an engine answers (contract section 5)."""
    refused: Schema = {"result": {"const": Result.INVALID.value}}
    other: Schema = {"result": {"not": {"const": Result.INVALID.value}}}
    cases = [
        _when({"type": {"const": "hello"}}, Hello),
        _when({"type": {"const": "cancel_requested"}}, CancelRequestedPush),
        _when(refused, InvalidReply),
        *(_when({"type": {"const": kind}, **other}, cls) for kind, cls in _REPLIES.items()),
    ]
    return _document(
        "replies",
        "An answer: the value of a record on `replies`. Pass over types and fields not listed here.",
        _dataclass_definitions(_ANSWER_CLASSES),
        type="object",
        required=["type"],
        properties={"type": {"type": ["string", "null"]}},
        allOf=cases,
    )


def record_schema() -> Schema:
    """What a job is by now (contract section 7)."""
    definitions = _dataclass_definitions((JobRecord,))
    return _document("job-record", "A job as every reader shows it.", definitions, **_reference("JobRecord"))


def _document(name: str, description: str, definitions: Mapping[str, Schema], **keywords: Any) -> Schema:
    used = json.dumps([keywords, definitions])
    return {
        "$schema": DIALECT,
        "$id": f"urn:tidelog:schema:{name}:1",
        "description": description,
        **keywords,
        "$defs": {
            key: definitions[key] for key in sorted(definitions) if json.dumps(_reference(key))[1:-1] in used
        },
    }


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _when(properties: Schema, cls: type) -> Schema:
    """A case of an open union: whatever has these properties is of that class."""
    return {
        "if": {"properties": properties, "required": list(properties)},
        "then": _reference(cls.__name__),
    }


def _all_below(cls: type[Fields]) -> Iterator[type[Fields]]:
    for below in cls.__subclasses__():
        yield below
        yield from _all_below(below)


def _defaults(cls: type[Fields]) -> dict[str, Any]:
    """The defaults as a producer would send them; None and JSON's null go without saying."""
    written = cls.model_construct().model_dump()
    return {name: value for name, value in written.items() if value not in (None, NULL)}


def _as_a_producer_sends(definition: Schema, defaults: Mapping[str, Any]) -> None:
    """Say what pydantic leaves to Python: a discriminator is required, and null is absence."""
    required: list[str] = definition.setdefault("required", [])
    for name, field in definition["properties"].items():
        field.pop("default", None)
        if name in _DISCRIMINATORS:
            required.append(name)
        elif name not in required:
            _allow_null(field)
            if name in defaults:
                field["default"] = defaults[name]
    required.sort(key=list(definition["properties"]).index)


def _allow_null(field: Schema) -> None:
    """null means that an optional field is absent."""
    described = {"description": field.pop("description")} if "description" in field else {}
    if field and {"type": "null"} not in field.get("anyOf", []):
        choice = dict(field)
        field.clear()
        field["anyOf"] = [choice, {"type": "null"}]
    field.update(described)


def _dataclass_definitions(classes: Iterable[type]) -> dict[str, Schema]:
    """The classes and what they refer to, as they are written: every field is there, or left out for good."""
    classes = tuple(classes)
    mode: Literal["serialization"] = "serialization"
    _, document = TypeAdapter.json_schemas([(cls, mode, TypeAdapter[object](cls)) for cls in classes])
    definitions: dict[str, Schema] = _plain(document["$defs"])
    for cls in classes:
        definition = definitions[cls.__name__]
        omitted = omitted_fields(cls)
        definition["required"] = [name for name in definition["properties"] if name not in omitted]
        for name, field in definition["properties"].items():
            field.pop("default", None)
            if name in omitted:
                (definition["properties"][name],) = (
                    choice for choice in field["anyOf"] if choice != {"type": "null"}
                )
    return definitions


def _add_type(definition: Schema, kind: str) -> None:
    definition["properties"] = {"type": {"const": kind, "type": "string"}, **definition["properties"]}
    definition["required"] = ["type", *definition["required"]]


def _plain(schema: Any) -> Any:
    """Without pydantic's titles, which repeat the names, and without OpenAPI's `discriminator`."""
    if isinstance(schema, list):
        return [_plain(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _plain(part) for key, part in schema.items() if key not in ("title", "discriminator")}


def write(folder: Path) -> None:
    """Write every schema into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in schemas().items():
        (folder / name).write_text(as_text(schema), encoding="utf-8")


def as_text(schema: Schema) -> str:
    """A schema as it stands in its file."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tidelog_events.schemas FOLDER")
    write(Path(sys.argv[1]))
