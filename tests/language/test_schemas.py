"""The JSON Schemas in `docs/schemas`: up to date, and right for producers and readers in other languages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker
from tests.language.golden import GOLDEN, LIFE_FILE, RECORD_FILE
from tests.language.samples import ANSWERS, COMMANDS, TRANSITIONS
from tests.language.test_parsing import INVALID, VALID, JsonObject

from tidelog_events.commands import COMMANDS_BY_TYPE
from tidelog_events.jsontext import Json
from tidelog_events.schemas import as_text, schemas
from tidelog_events.states import JobState
from tidelog_events.transitions import TRANSITION_CLASSES

FOLDER = Path(__file__).parents[2] / "docs" / "schemas"
FILES = schemas()

BEYOND_A_SCHEMA = {
    "job_id": "contradiction",
    "schedule_id": "contradiction",
    "tags": "count of distinct tags",
    "outcomes[0].add_tags": "count of distinct tags",
    "payload": "depth, surrogates, size",
    "cron": "an expression that never fires",
    "time_zone": "the names of the zones",
    "outcomes[0].output": "depth, surrogates",
}
"""Fields with a refusal that no schema can say; their other refusals are in the table too."""


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(
        json.loads((FOLDER / name).read_text(encoding="utf-8")), format_checker=FormatChecker()
    )


COMMAND = validator("commands.json")
TRANSITION = validator("transitions.json")
REPLY = validator("replies.json")


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_what_the_code_says(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8")

    assert written == as_text(FILES[name]), "run `make schemas` and look at what changed"
    Draft202012Validator.check_schema(FILES[name])


def test_there_is_no_other_file() -> None:
    assert {file.name for file in FOLDER.iterdir()} == set(FILES)


@pytest.mark.parametrize("command", COMMANDS.values(), ids=list(COMMANDS))
def test_sample_commands_fit(command: JsonObject) -> None:
    COMMAND.validate(command)


@pytest.mark.parametrize("command", VALID, ids=map(str, range(len(VALID))))
def test_what_the_parser_accepts_fits(command: JsonObject) -> None:
    COMMAND.validate(command)


def has_surrogates(value: Json) -> bool:
    return "\\ud" in json.dumps(value)


def is_read_otherwise(command: JsonObject) -> bool:
    """To a schema 1.0 is a whole number; to Python's regular expressions `$` stands before a last newline."""
    text = json.dumps(command)
    return "1.0" in text or "3.0" in text or '\\n"' in text


@pytest.mark.parametrize(
    "command",
    [
        command
        for field, command in INVALID
        if field not in BEYOND_A_SCHEMA and not has_surrogates(command) and not is_read_otherwise(command)
    ],
)
def test_what_the_parser_refuses_does_not_fit(command: JsonObject) -> None:
    assert not COMMAND.is_valid(command)


@pytest.mark.parametrize("kind", COMMANDS_BY_TYPE)
def test_commands_are_closed(kind: str) -> None:
    sample = next(command for command in COMMANDS.values() if command["type"] == kind)

    assert not COMMAND.is_valid(sample | {"priority": 1})
    assert not COMMAND.is_valid({key: value for key, value in sample.items() if key != "type"})


def test_defaults_are_those_of_the_wire() -> None:
    claim: Any = FILES["commands.json"]["$defs"]["Claim"]["properties"]

    assert {name: field["default"] for name, field in claim.items() if "default" in field} == {
        "max_jobs": 1,
        "lease_seconds": 60,
        "wait_seconds": 0,
    }


@pytest.mark.parametrize("name", TRANSITIONS)
def test_golden_transitions_fit(name: str) -> None:
    event = json.loads((GOLDEN / f"transitions/{name}.json").read_bytes())

    TRANSITION.validate(event)
    TRANSITION.validate(event | {"weather": "fair"})


def test_a_golden_life_and_its_record_fit() -> None:
    for line in (GOLDEN / LIFE_FILE).read_bytes().splitlines():
        TRANSITION.validate(json.loads(line))
    validator("job-record.json").validate(json.loads((GOLDEN / RECORD_FILE).read_bytes()))


@pytest.mark.parametrize("name", ANSWERS)
def test_golden_answers_fit(name: str) -> None:
    answer = json.loads((GOLDEN / f"answers/{name}.json").read_bytes())

    REPLY.validate(answer)
    REPLY.validate(answer | {"weather": "fair"})


@pytest.mark.parametrize("name", TRANSITIONS)
def test_a_transition_without_a_field_that_is_always_there_does_not_fit(name: str) -> None:
    event = json.loads((GOLDEN / f"transitions/{name}.json").read_bytes())
    optional = {"actor", "cause_command_id"}
    if name not in ("leased", "lease_renewed") and not name.startswith("lease_expired"):
        optional.add("worker_id")
    for field in event.keys() - optional:
        assert not TRANSITION.is_valid({key: value for key, value in event.items() if key != field}), field


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_without_its_position_does_not_fit(name: str) -> None:
    answer = json.loads((GOLDEN / f"answers/{name}.json").read_bytes())

    assert not REPLY.is_valid({key: value for key, value in answer.items() if key != "partition"})


def test_types_of_a_later_release_fit() -> None:
    TRANSITION.validate({"type": "weather_changed", "at": "now"})
    REPLY.validate({"command_id": "c", "type": "hold_job", "result": "Held", "partition": 0, "sequence": 1})


def test_every_type_and_every_state_is_listed() -> None:
    defined = FILES["transitions.json"]["$defs"]

    assert {cls.__name__ for cls in TRANSITION_CLASSES} <= defined.keys()
    assert defined["JobState"]["enum"] == [str(state) for state in JobState]
