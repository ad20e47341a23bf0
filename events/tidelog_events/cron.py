"""When a schedule fires: a cron expression in a time zone, as Debian's cron has it (contract section 3).

A job whose minute and hour both do not start with a star is *fixed-time*: a time that a change of clocks
skips runs once, at the first instant after it, and a time that comes twice runs the first time only. Any
other job runs whenever the clock on the wall shows one of its times. A change of more than three hours is a
correction of the clock: nothing is made up for it, and nothing left out.

All of it is arithmetic over stretches of time in which the offset from UTC stays: nothing here takes a step
for each tick.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tidelog_events.cronfields import CronFields, NotACron, Wall
from tidelog_events.instants import SECOND, Instant
from tidelog_events.zones import (
    BUNDLED,
    DAY,
    FIRST_SECOND,
    LAST_SECOND,
    Seconds,
    UnknownZone,
    Zone,
    ZoneDatabase,
)

__all__ = ["BUNDLED", "Cron", "NotACron", "UnknownZone", "ZoneDatabase", "cron_fields", "read_cron"]

_LARGEST_SHIFT = 3 * 3_600
"""In seconds; a larger change of clocks is a correction."""
_WINDOW = 366 * DAY
_WINDOWS = 100
"""What does not fire within a hundred years does not fire."""


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A time with one offset from UTC: `first` to `end` without it, in which clocks show `offset` more.

    A stretch that is made up is the one second in which skipped times are run.
    """

    first: Seconds
    end: Seconds
    offset: int
    is_made_up: bool = False


@dataclass(frozen=True, slots=True)
class Cron:
    """The instants at which a schedule fires."""

    fields: CronFields
    zone: Zone

    def next_after(self, instant: Instant) -> Instant | None:
        """The first instant after that one at which it fires; None when there is none in a hundred years."""
        first = _first_second_after(instant)
        for _ in range(_WINDOWS):
            end = Seconds(min(first + _WINDOW, LAST_SECOND))
            for stretch in self._stretches(first, end):
                found = self._next(stretch)
                if found is not None:
                    return _instant(found)
            first = end
        return None

    def newest(self, after: Instant, until: Instant, limit: int) -> list[Instant]:
        """The latest instants after `after`, up to and with `until`, at most so many, in their order."""
        first, end = _bounds(after, until)
        found: list[Instant] = []
        while first < end and len(found) < limit:
            start = Seconds(max(first, end - _WINDOW))
            for stretch in reversed(list(self._stretches(start, end))):
                self._collect(stretch, found, limit)
                if len(found) == limit:
                    break
            end = start
        found.reverse()
        return found

    def count(self, after: Instant, until: Instant) -> int:
        """How often it fires after `after`, up to and with `until`."""
        return sum(self._count(stretch) for stretch in self._stretches(*_bounds(after, until)))

    def _count(self, stretch: _Stretch) -> int:
        return 1 if stretch.is_made_up else self.fields.count(*_on_the_wall(stretch))

    def _next(self, stretch: _Stretch) -> Seconds | None:
        if stretch.is_made_up:
            return stretch.first
        found = self.fields.next(*_on_the_wall(stretch))
        return None if found is None else Seconds(found - stretch.offset)

    def _collect(self, stretch: _Stretch, found: list[Instant], limit: int) -> None:
        """Add what fires in a stretch, the latest first."""
        if stretch.is_made_up:
            found.append(_instant(stretch.first))
            return
        first, end = _on_the_wall(stretch)
        while len(found) < limit:
            latest = self.fields.previous(first, end)
            if latest is None:
                return
            found.append(_instant(Seconds(latest - stretch.offset)))
            end = latest

    def _stretches(self, first: Seconds, end: Seconds) -> Iterator[_Stretch]:
        """The stretches from `first` to before `end`, in their order and without overlap, less what is not
        to be run twice."""
        if end <= first:
            return
        # The repeat of a shift shortly before goes on into the time that is asked for.
        early = Seconds(first - _LARGEST_SHIFT)
        start, offset = early, self.zone.offset_at(early)
        for shift in self.zone.shifts(Seconds(early + 1), end):
            yield from _within(_Stretch(start, shift.at, offset), first, end)
            start, offset = shift.at, shift.after
            if self.fields.is_fixed_time and abs(shift.after - shift.before) <= _LARGEST_SHIFT:
                if shift.after < shift.before:
                    start = Seconds(shift.at + shift.before - shift.after)
                elif self._is_skipped(shift.at, shift.before, shift.after):
                    made_up = _Stretch(shift.at, Seconds(shift.at + 1), offset, is_made_up=True)
                    yield from _within(made_up, first, end)
                    start = made_up.end
        yield from _within(_Stretch(start, end, offset), first, end)

    def _is_skipped(self, at: Seconds, before: int, after: int) -> bool:
        return self.fields.count(Wall(at + before), Wall(at + after)) > 0


def _within(stretch: _Stretch, first: Seconds, end: Seconds) -> Iterator[_Stretch]:
    start, stop = Seconds(max(stretch.first, first)), Seconds(min(stretch.end, end))
    if start < stop:
        yield _Stretch(start, stop, stretch.offset, stretch.is_made_up)


def _on_the_wall(stretch: _Stretch) -> tuple[Wall, Wall]:
    return Wall(stretch.first + stretch.offset), Wall(stretch.end + stretch.offset)


def _first_second_after(instant: Instant) -> Seconds:
    return Seconds(max(instant // SECOND + 1, FIRST_SECOND))


def _bounds(after: Instant, until: Instant) -> tuple[Seconds, Seconds]:
    return _first_second_after(after), Seconds(min(until // SECOND + 1, LAST_SECOND))


def _instant(second: Seconds) -> Instant:
    return Instant(second * SECOND)


@lru_cache(maxsize=1_024)
def cron_fields(expression: str) -> CronFields:
    """The times on the wall that an expression names. Raises `NotACron`."""
    return CronFields(expression)


def read_cron(expression: str, time_zone: str, zones: ZoneDatabase = BUNDLED) -> Cron:
    """When an expression fires in a zone.

    Raises:
        NotACron: the expression has no meaning, or names a day that never comes.
        UnknownZone: the database has no such zone.
    """
    return Cron(cron_fields(expression), zones.zone(time_zone))
