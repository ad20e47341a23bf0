"""The schedules that an application declares, checked where they are declared."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tidelog.client.errors import shown
from tidelog.client.schedule import Schedule
from tidelog.handler.signature import DefinitionError
from tidelog_events.identity import ScheduleId

_MAX_OWNER_CHARS: Final = 100


def check_owner(name: str) -> str:
    """The name of an application. Raises `DefinitionError`."""
    if not name or len(name) > _MAX_OWNER_CHARS or not name.isprintable():
        raise DefinitionError(
            f"{shown(name)} is no name for an App: it must be 1 to {_MAX_OWNER_CHARS} printable characters."
        )
    return name


class ScheduleRegistry:
    """The declared schedules of an application, by id, in the order of their declaration."""

    def __init__(self) -> None:
        self._schedules: dict[ScheduleId, Schedule] = {}

    def __iter__(self) -> Iterator[Schedule]:
        return iter(self._schedules.values())

    def __len__(self) -> int:
        return len(self._schedules)

    def __contains__(self, schedule_id: object) -> bool:
        return schedule_id in self._schedules

    def add(self, schedule: Schedule) -> None:
        """Take a schedule. Raises `DefinitionError` when its id is declared already."""
        present = self._schedules.setdefault(schedule.schedule_id, schedule)
        if present is not schedule:
            raise DefinitionError(
                f"The schedule {schedule.schedule_id!r} is declared twice, as {present.cron!r} of "
                f"{present.wire_name!r} and as {schedule.cron!r} of {schedule.wire_name!r}. Give one of them "
                "another name."
            )
