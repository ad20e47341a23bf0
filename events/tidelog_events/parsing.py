"""From the bytes of a record to a command, or to the refusal that the contract asks for (section 3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from tidelog_events.bounds import cut_text
from tidelog_events.command_fields import ClientIdField, CommandIdField
from tidelog_events.commands import COMMANDS_BY_TYPE, Command
from tidelog_events.identity import ClientId, CommandId
from tidelog_events.jsontext import Json, NotJson, loads

T = TypeVar("T")


class NotACommand(ValueError):
    """The bytes are not JSON, or no object. There is nobody to answer to."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An `Invalid` command: the first field that is wrong, why, and whom to tell.

    Attributes:
        type: the command's type as sent; None when it was no string.
        command_id: None when there was none or it was itself bad.
        reply_to: None when there was none or it was itself bad.
    """

    type: str | None
    command_id: CommandId | None
    reply_to: ClientId | None
    field: str
    message: str


_COMMAND_ID: Final = TypeAdapter[CommandId | None](CommandIdField | None)
_CLIENT_ID: Final = TypeAdapter[ClientId | None](ClientIdField | None)
_MESSAGES: Final = {
    "missing": "is required",
    "union_tag_not_found": "is required",
    "string_unicode": "must not hold a lone surrogate",
    "int_type": "must be a whole number",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
}


def read_object(raw: bytes | None) -> dict[str, Json]:
    """The JSON object that the bytes are. Raises `NotACommand`."""
    if raw is None:
        raise NotACommand("the record has no value")
    try:
        value = loads(raw)
    except NotJson as error:
        raise NotACommand(str(error)) from None
    if not isinstance(value, dict):
        raise NotACommand("a command must be a JSON object")
    return value


def parse_command(given: Mapping[str, Json]) -> Command | Refusal:
    """Check a command whole. A refusal names the first wrong field in the contract's order."""
    kind = given.get("type")
    model = COMMANDS_BY_TYPE.get(kind) if isinstance(kind, str) else None
    if model is None:
        known = ", ".join(COMMANDS_BY_TYPE)
        return _refusal(given, "type", f"must be one of {known}")
    try:
        return model.model_validate(given)
    except ValidationError as error:
        # A model refuses unknown fields before it looks at the others, which it checks in their order.
        wrong = error.errors(include_url=False, include_input=False)[0]
    return _refusal(given, _path(wrong), _message(wrong))


def _refusal(given: Mapping[str, Json], field: str, message: str) -> Refusal:
    kind = given.get("type")
    return Refusal(
        type=_sayable(kind) if isinstance(kind, str) else None,
        command_id=_or_none(_COMMAND_ID, given.get("command_id")),
        reply_to=_or_none(_CLIENT_ID, given.get("reply_to")),
        field=_sayable(field),
        message=f"{_sayable(field)} {message}",
    )


def _or_none(adapter: TypeAdapter[T | None], value: Json) -> T | None:
    try:
        return adapter.validate_python(value)
    except ValidationError:
        return None


def _sayable(text: str) -> str:
    """The text so that the refusal itself can be written: cut, and what no UTF-8 can hold replaced."""
    return cut_text(text.encode(errors="replace").decode())


def _path(error: ErrorDetails) -> str:
    """`outcomes[0].attempt`: names joined by dots, positions in brackets."""
    path = ""
    for step in _steps(error):
        if isinstance(step, int):
            path += f"[{step}]"
        else:
            path += f".{step}" if path else step
    return path


def _steps(error: ErrorDetails) -> list[int | str]:
    location = list(error["loc"])
    # Below a row of a report pydantic names the member of the union, which is no field.
    if len(location) > 2 and location[0] == "outcomes":
        del location[2]
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        location.append("outcome")
    if error["type"] == "at_field":
        location.append(error["ctx"]["field"])
    return location


def _message(error: ErrorDetails) -> str:
    if error["type"] == "union_tag_invalid":
        return f"must be one of {error['ctx']['expected_tags']}"
    return _MESSAGES.get(error["type"]) or _spoken(error["msg"])


def _spoken(message: str) -> str:
    """pydantic's sentence ("Input should be …") as the end of one that starts with the field."""
    return message.replace("Input should", "should", 1).replace("String should", "should", 1)
