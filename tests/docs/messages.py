"""Messages that pages show, held against what reads them."""

from __future__ import annotations

import json
from typing import Final

from jsonschema import Draft202012Validator, FormatChecker
from tests.docs.blocks import ROOT

from tidelog_events.commands import COMMANDS_BY_TYPE

_SCHEMAS: Final = ROOT / "docs" / "schemas"


def check_message(message: object, where: str) -> None:
    """Validate a message by the published schema of its kind.

    Raises:
        AssertionError: it is none of ours, or does not fit.
    """
    assert isinstance(message, dict), f"{where}: no object, so no message of ours"
    kind = _kind(message)
    assert kind is not None, f"{where}: neither command, transition, reply nor job record"
    schema = json.loads((_SCHEMAS / f"{kind}.json").read_text(encoding="utf-8"))
    validator = Draft202012Validator(schema, format_checker=FormatChecker())
    errors = [error.message for error in validator.iter_errors(message)]
    assert errors == [], f"{where} as one of {kind}: {errors}"


def _kind(message: dict[str, object]) -> str | None:
    if "enqueue_sequence" in message:
        return "job-record"
    if "at" in message and "sequence" in message:
        return "transitions"
    if "result" in message or message.get("type") in ("hello", "cancel_requested"):
        return "replies"
    return "commands" if message.get("type") in COMMANDS_BY_TYPE else None
