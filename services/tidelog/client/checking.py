"""Checks that need no engine, made before anything is sent, with the very code that engines check with."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, TypeVar

from tidelog.client.errors import InvalidCommand, shown
from tidelog_events.commands import Command
from tidelog_events.identity import (
    JOB_ID_PATTERN,
    KNOWN_JOB_ID_PATTERN,
    InvalidName,
    JobId,
    QueueName,
    ScheduleId,
    queue_name,
)
from tidelog_events.jsontext import Json
from tidelog_events.parsing import Refusal, parse_command

_SCHEDULE_ID: Final = re.compile(JOB_ID_PATTERN, re.ASCII)
_KNOWN_JOB_ID: Final = re.compile(KNOWN_JOB_ID_PATTERN, re.ASCII)

CommandT = TypeVar("CommandT", bound=Command)


def by(actor: str | None, command_id: str | None) -> Mapping[str, Json]:
    """The fields that say who asks, and under which name."""
    return {"actor": actor, "command_id": command_id}


def check_command(cls: type[CommandT], given: Mapping[str, Json]) -> CommandT:
    """The command of that class with the given fields. Raises `InvalidCommand`, naming the field."""
    command = parse_command({"type": str(cls.model_fields["type"].default), **given})
    if isinstance(command, Refusal):
        raise InvalidCommand(command.field, command.message)
    if not isinstance(command, cls):
        raise TypeError(f"a command of type {command.type!r} is no {cls.__name__}")
    return command


def check_job_id(text: str) -> JobId:
    """A job id that may exist. Raises `InvalidCommand`."""
    if _KNOWN_JOB_ID.fullmatch(text) is None:
        raise InvalidCommand("job_id", f"job_id {shown(text)} is not of the form <queue>/<key>")
    return JobId(text)


def check_schedule_id(text: str) -> ScheduleId:
    """A schedule id that may exist. Raises `InvalidCommand`."""
    if _SCHEDULE_ID.fullmatch(text) is None:
        raise InvalidCommand("schedule_id", f"schedule_id {shown(text)} is not of the form <queue>/<name>")
    return ScheduleId(text)


@lru_cache(maxsize=1_024)
def check_queue(text: str) -> QueueName:
    """The name of a queue. Raises `InvalidCommand`."""
    try:
        return queue_name(text)
    except InvalidName as error:
        raise InvalidCommand("queue", f"queue {error}") from None
