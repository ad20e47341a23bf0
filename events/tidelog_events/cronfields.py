"""A cron expression without its zone: which times on a wall clock it names (contract section 3, Schedules).

cronsim reads the fields and tells which days match. The arithmetic is done here: to count what a year of
every-second ticks comes to must not take a year's steps. Times on the wall are whole seconds since 1970-01-01
00:00:00, as if the clock on the wall showed UTC.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from datetime import date, datetime
from typing import Final, NewType

from cronsim import CronSim, CronSimError

from tidelog_events.bounds import MAX_CRON_CHARS
from tidelog_events.zones import DAY

Wall = NewType("Wall", int)
"""What a clock on the wall shows: whole seconds since 1970-01-01 00:00:00."""

_EPOCH_ORDINAL: Final = date(1970, 1, 1).toordinal()
_FIRST_YEAR: Final = 1
_LAST_YEAR: Final = 9_999
_ANY_DAY: Final = datetime(2000, 1, 1)  # noqa: DTZ001  cronsim wants a start; only its reading of the fields is used
_BLANKS: Final = " \t"
_FIELDS: Final = ("second", "minute", "hour", "day-of-month", "month", "day-of-week")
_SAMPLE_YEARS: Final = range(2000, 2028)
"""All fourteen kinds of years: each weekday for January 1st, leap year or not."""


class NotACron(ValueError):
    """The text is no cron expression, or one that never fires. The message names the field of it."""


class CronFields:
    """The times on the wall that an expression names.

    Attributes:
        is_fixed_time: whether neither the minute nor the hour starts with a star: then the job is one that
            runs at a time of the day, and a change of clocks neither swallows nor doubles it.
    """

    def __init__(self, expression: str) -> None:
        """Read an expression. Raises `NotACron`."""
        parts = _parts(expression)
        self._sim = _read(parts)
        minute, hour = parts[1], parts[2]
        self.is_fixed_time = not minute.startswith("*") and not hour.startswith("*")
        self._hours = sorted(self._sim.hours)
        self._minutes = sorted(self._sim.minutes)
        self._seconds = sorted(self._sim.seconds)
        self._per_hour = len(self._minutes) * len(self._seconds)
        self._per_day = len(self._hours) * self._per_hour
        self._days: dict[tuple[int, bool], tuple[int, ...]] = {}
        if not any(self._days_of(year) for year in _SAMPLE_YEARS):
            raise NotACron("never fires: no month of the calendar has such a day")

    def count(self, first: Wall, end: Wall) -> int:
        """How many of the times are at `first` or later and before `end`."""
        if end <= first:
            return 0
        first_day, first_second = divmod(first, DAY)
        end_day, end_second = divmod(end, DAY)
        count = self._count_days(first_day, end_day) * self._per_day
        if self._matches(first_day):
            count -= self._rank(first_second)
        if self._matches(end_day):
            count += self._rank(end_second)
        return count

    def next(self, first: Wall, end: Wall) -> Wall | None:
        """The earliest of the times at `first` or later and before `end`."""
        day, second = divmod(first, DAY)
        rank = self._rank(second)
        if rank == self._per_day or not self._matches(day):
            following = self._next_day(day + 1, -(-end // DAY))
            if following is None:
                return None
            day, rank = following, 0
        found = Wall(day * DAY + self._time(rank))
        return found if found < end else None

    def previous(self, first: Wall, end: Wall) -> Wall | None:
        """The latest of the times at `first` or later and before `end`."""
        day, second = divmod(end, DAY)
        rank = self._rank(second)
        if rank == 0 or not self._matches(day):
            preceding = self._previous_day(first // DAY, day - 1)
            if preceding is None:
                return None
            day, rank = preceding, self._per_day
        found = Wall(day * DAY + self._time(rank - 1))
        return found if found >= first else None

    def _rank(self, second: int) -> int:
        """How many of a day's times are before that second of the day."""
        hour, rest = divmod(second, 3_600)
        minute, rest = divmod(rest, 60)
        hours = bisect_left(self._hours, hour)
        rank = hours * self._per_hour
        if hours < len(self._hours) and self._hours[hours] == hour:
            minutes = bisect_left(self._minutes, minute)
            rank += minutes * len(self._seconds)
            if minutes < len(self._minutes) and self._minutes[minutes] == minute:
                rank += bisect_left(self._seconds, rest)
        return rank

    def _time(self, rank: int) -> int:
        """The second of the day of the time with that rank."""
        hour, rest = divmod(rank, self._per_hour)
        minute, second = divmod(rest, len(self._seconds))
        return self._hours[hour] * 3_600 + self._minutes[minute] * 60 + self._seconds[second]

    def _days_of(self, year: int) -> Sequence[int]:
        """The matching days of a year, counted from 0."""
        first = date(year, 1, 1).toordinal()
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        kind = first % 7, leap
        days = self._days.get(kind)
        if days is None:
            of_year = ((day, date.fromordinal(first + day)) for day in range(366 if leap else 365))
            days = self._days[kind] = tuple(
                day for day, on in of_year if on.month in self._sim.months and self._sim.match_day(on)
            )
        return days

    def _matches(self, day: int) -> bool:
        year, of_year = _of_year(day)
        days = self._days_of(year)
        place = bisect_left(days, of_year)
        return place < len(days) and days[place] == of_year

    def _count_days(self, first: int, end: int) -> int:
        first_year, first_of_year = _of_year(first)
        end_year, end_of_year = _of_year(end)
        whole = sum(len(self._days_of(year)) for year in range(first_year, end_year))
        return (
            whole
            - bisect_left(self._days_of(first_year), first_of_year)
            + bisect_left(self._days_of(end_year), end_of_year)
        )

    def _next_day(self, first: int, end: int) -> int | None:
        year, of_year = _of_year(first)
        while year <= _LAST_YEAR and _day_of(year) < end:
            days = self._days_of(year)
            place = bisect_left(days, of_year)
            if place < len(days):
                return _day_of(year) + days[place]
            year, of_year = year + 1, 0
        return None

    def _previous_day(self, first: int, last: int) -> int | None:
        year, of_year = _of_year(last)
        while year >= _FIRST_YEAR and _day_of(year) + 366 > first:
            days = self._days_of(year)
            place = bisect_left(days, of_year + 1)
            if place:
                return _day_of(year) + days[place - 1]
            year, of_year = year - 1, 366
        return None


def _of_year(day: int) -> tuple[int, int]:
    """The year of a day since 1970-01-01, and the day of that year, counted from 0."""
    on = date.fromordinal(min(max(day + _EPOCH_ORDINAL, date.min.toordinal()), date.max.toordinal()))
    return on.year, day - _day_of(on.year)


def _day_of(year: int) -> int:
    """January 1st of a year as days since 1970-01-01."""
    return date(year, 1, 1).toordinal() - _EPOCH_ORDINAL


def _parts(expression: str) -> list[str]:
    """The six fields; the seconds of five are 0."""
    if len(expression) > MAX_CRON_CHARS:
        raise NotACron(f"has {len(expression)} characters; at most {MAX_CRON_CHARS} are allowed")
    if not all(char.isprintable() or char in _BLANKS for char in expression):
        raise NotACron("must be one line: 5 fields, or 6 with leading seconds, separated by blanks")
    parts = re.findall(f"[^{_BLANKS}]+", expression)
    if parts and parts[0].startswith("@"):
        raise NotACron("must have 5 fields, or 6 with leading seconds; names such as @daily are not read")
    if len(parts) not in (5, 6):
        raise NotACron(f"must have 5 fields, or 6 with leading seconds, and has {len(parts)}")
    for name, part in zip(_FIELDS[-len(parts) :], parts, strict=True):
        if _STRANGE.search(part) is not None:
            raise NotACron(_bad_field(name, part))
    return parts if len(parts) == 6 else ["0", *parts]


_STRANGE: Final = re.compile(r"[^0-9A-Za-z*,/#-]", re.ASCII)


def _read(parts: Sequence[str]) -> CronSim:
    try:
        return CronSim(" ".join(parts), _ANY_DAY)
    except CronSimError as error:
        told = str(error)
    for name, part in zip(_FIELDS, parts, strict=True):
        if told == f"Bad {name}":
            if name == "day-of-month" and _is_read(part):
                raise NotACron("never fires: none of its months has the day of the day-of-month field")
            raise NotACron(_bad_field(name, part))
    raise NotACron(f"cannot be read: {told}")


def _is_read(day_of_month: str) -> bool:
    """Whether the field by itself is well formed: then it was refused because no such day ever comes."""
    try:
        CronSim(f"0 0 {day_of_month} * *", _ANY_DAY)
    except CronSimError:
        return False
    return True


_EXPECTED: Final = {
    "second": "0-59",
    "minute": "0-59",
    "hour": "0-23",
    "day-of-month": "1-31, L or LW",
    "month": "1-12 or JAN-DEC",
    "day-of-week": "0-7 or SUN-SAT (0 and 7 are Sunday), 0L-7L (the last one), <day>#1 to <day>#5",
}


def _bad_field(name: str, part: str) -> str:
    return (
        f"has a bad {name} field {part[:40]!r}: {_EXPECTED[name]} are read, with lists, steps, and "
        "ranges that do not wrap around"
    )
