"""Commands, transitions, replies and the job record, field by field, from their JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, TypeAlias

Schema: TypeAlias = Mapping[str, "SchemaValue"]
SchemaValue: TypeAlias = "str | int | float | bool | list[SchemaValue] | dict[str, SchemaValue] | None"

_SCHEMAS: Final = Path(__file__).parents[2] / "docs" / "schemas"
_SECTIONS: Final = {
    "commands": "Commands",
    "transitions": "Transitions",
    "replies": "Replies",
    "job-record": "The job record",
}
_INTRODUCTION: Final = """\
# Messages

All that stands on the public topics, field by field, from the JSON Schemas that the code writes. What it
means is said by [the contract](../contract.md). A field with a dot is always there; others may be absent.
"""


def messages_page() -> str:
    """A section for each schema, with a table for each of its shapes."""
    parts = [_INTRODUCTION]
    for name, title in _SECTIONS.items():
        schema = json.loads((_SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
        parts.append(f"## {title}\n\nJSON Schema: [{name}.json](../schemas/{name}.json).\n")
        parts.extend(_shape(shape, definition) for shape, definition in schema["$defs"].items())
    return "\n".join(parts)


def _shape(name: str, definition: Schema) -> str:
    head = f"### {_title(name, definition)}\n\n{definition.get('description', '')}\n"
    if "enum" in definition:
        return head + f"\n{_type(definition)}\n"
    return head + "\n| field | always | type |\n|---|---|---|\n" + "\n".join(_rows(definition)) + "\n"


def _title(name: str, definition: Schema) -> str:
    """The word that stands on the wire where there is one, else the name of the shape."""
    properties = definition.get("properties")
    kind = properties.get("type") if isinstance(properties, dict) else None
    if isinstance(kind, dict) and "const" in kind:
        return f"`{kind['const']}`"
    return name


def _rows(definition: Schema) -> Iterator[str]:
    properties, required = definition.get("properties"), definition.get("required")
    if not isinstance(properties, dict):
        return
    always = required if isinstance(required, list) else []
    for field, value in properties.items():
        if isinstance(value, dict):
            yield f"| `{field}` | {'•' if field in always else ''} | {_type(value)} |"


def _type(schema: Schema) -> str:
    """A type in a few words."""
    match schema:
        case {"const": value}:
            return f"`{json.dumps(value)}`"
        case {"enum": list(values)}:
            return " or ".join(f"`{json.dumps(value)}`" for value in values)
        case {"$ref": str(reference)}:
            return reference.rpartition("/")[2]
        case {"anyOf": list(choices)} | {"oneOf": list(choices)}:
            return " or ".join(_type(choice) for choice in choices if isinstance(choice, dict))
        case {"type": "array", "items": dict(items)}:
            return f"list of {_type(items)}"
        case {"type": "string", "format": "date-time"}:
            return "time"
        case {"type": str(name)}:
            return name
        case _:
            return "any JSON"
