"""How often, in words: helpers that return the cron expressions of schedules (contract section 8).

They refuse what cron cannot say evenly. A step of cron starts again with every minute, hour and day: `*/7` in
the field of minutes means 0, 7 … 56 and then 0, four minutes later.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

from tidelog.handler.signature import DefinitionError

Weekday: TypeAlias = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
"""A day of the week, as `weekly` takes it."""

_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_TIME: Final = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)
_MINUTE: Final = 60
_HOUR: Final = 3_600
_MAX_DAY: Final = 31
_INTERVALS: Final = sorted(
    unit * number
    for unit, turn in ((1, 60), (_MINUTE, 60), (_HOUR, 24))
    for number in range(1, turn + (unit == _HOUR))
    if turn % number == 0
)
"""In seconds: what divides a minute, an hour or a day."""


def every(*, hours: int = 0, minutes: int = 0, seconds: int = 0) -> str:
    """Every so often, counted from the full minute, hour or day: `every(minutes=5)`.

    The interval must divide a minute, an hour or a day without a rest, so that it is the same throughout.
    Steps follow the clock on the wall: when it changes for daylight saving, a step of some hours is longer or
    shorter once.

    Args:
        hours: of the interval; the three are added up.
        minutes: of the interval.
        seconds: of the interval.

    Raises:
        DefinitionError: no cron expression says this; the message names the nearest ones that are possible.
    """
    given = {"hours": hours, "minutes": minutes, "seconds": seconds}
    said = ", ".join(f"{unit}={number!r}" for unit, number in given.items() if number != 0)
    for unit, number in given.items():
        if type(number) is not int or number < 0:
            raise DefinitionError(f"every({said}) is no interval: {unit} must be a whole number, 0 or more.")
    total = hours * _HOUR + minutes * _MINUTE + seconds
    expression = _step(total)
    if expression is None:
        near = " or ".join(_said(length) for length in _nearest(total))
        raise DefinitionError(
            f"every({said}) cannot be said in cron: an interval must divide a minute, an hour or a day "
            f"without a rest. Nearest are {near}."
        )
    return expression


def _step(total: int) -> str | None:
    """The expression of an interval in seconds; None when there is none."""
    if total not in _INTERVALS:
        return None
    if total % _HOUR == 0:
        return f"0 {_every(total // _HOUR, 24)} * * *"
    if total % _MINUTE == 0:
        return f"{_every(total // _MINUTE, 60)} * * * *"
    return f"{_every(total, 60)} * * * * *"


def _every(step: int, turn: int) -> str:
    if step == 1:
        return "*"
    return "0" if step == turn else f"*/{step}"


def _nearest(total: int) -> list[int]:
    """The longest possible interval below and the shortest one above."""
    below = [length for length in _INTERVALS if length < total][-1:]
    return below + [length for length in _INTERVALS if length > total][:1]


def _said(length: int) -> str:
    for unit, seconds in (("hours", _HOUR), ("minutes", _MINUTE)):
        if length % seconds == 0:
            return f"every({unit}={length // seconds})"
    return f"every(seconds={length})"


def daily(at: str) -> str:
    """Every day at a time of the schedule's zone: `daily("03:00")`.

    Args:
        at: `HH:MM`, or `HH:MM:SS`.

    Raises:
        DefinitionError: `at` is no time.
    """
    return f"{_clock(at)} * * *"


def weekly(days: Weekday | Sequence[Weekday], at: str) -> str:
    """On a day of the week, or on some of them: `weekly("mon", "03:00")`, `weekly(["mon", "fri"], "03:00")`.

    Args:
        days: `mon`, `tue`, `wed`, `thu`, `fri`, `sat`, `sun`.
        at: `HH:MM`, or `HH:MM:SS`.

    Raises:
        DefinitionError: one of them is no day, there is none, or `at` is no time.
    """
    named = [days] if isinstance(days, str) else list(days)
    for day in named:
        if day not in _WEEKDAYS:
            raise DefinitionError(f"{day!r} is no day of the week; they are {', '.join(_WEEKDAYS)}.")
    if not named:
        raise DefinitionError("weekly() needs at least one day of the week.")
    chosen = ",".join(day for day in _WEEKDAYS if day in named)
    return f"{_clock(at)} * * {chosen}"


def monthly(day: int | Literal["last"], at: str) -> str:
    """On a day of the month: `monthly(1, "03:00")`, `monthly("last", "03:00")`.

    Args:
        day: 1 to 31, or `"last"`, the last day of each month. A month without that day is left out, as cron
            does: 31 means seven times a year.
        at: `HH:MM`, or `HH:MM:SS`.

    Raises:
        DefinitionError: there is no such day, or `at` is no time.
    """
    if day == "last":
        return f"{_clock(at)} L * *"
    if type(day) is not int or not 1 <= day <= _MAX_DAY:
        raise DefinitionError(f"{day!r} is no day of a month; it must be 1 to {_MAX_DAY}, or 'last'.")
    return f"{_clock(at)} {day} * *"


def _clock(at: str) -> str:
    """The fields of a time: minute and hour, with the seconds before them where they are said."""
    found = _TIME.fullmatch(at)
    if found is None:
        raise DefinitionError(f"{at!r} is no time of day; write it as HH:MM or HH:MM:SS, as in '03:00'.")
    hour, minute, second = found.groups()
    fields = f"{int(minute)} {int(hour)}"
    return fields if second is None else f"{int(second)} {fields}"
