"""Time zones: the IANA database that comes with Tidelog, and when clocks change in a zone.

Zones are read from the `tzdata` distribution and never from the machine, so that a schedule means the same on
every host. A zone is named by its key in that database, old names (`EST`, `US/Eastern`) included. An offset
such as `+02:00` is no key; `Etc/GMT-2` is one (its sign is turned round, as POSIX has it).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files
from typing import NamedTuple, NewType
from zoneinfo import ZoneInfo

Seconds = NewType("Seconds", int)
"""A point in time: whole seconds since 1970-01-01T00:00:00Z."""

DAY = 86_400
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND = timedelta(seconds=1)
FIRST_SECOND = Seconds((datetime.min.replace(tzinfo=UTC) - _EPOCH) // _SECOND + DAY)
LAST_SECOND = Seconds((datetime.max.replace(tzinfo=UTC) - _EPOCH) // _SECOND - DAY)
"""The years 0001 to 9999, but for the days at either end that are of other years in some zone."""

_STEP = 3 * DAY
_FIRST_RULED_YEAR = 2_200
"""From here on every zone follows a yearly rule, so that its years repeat as those of the calendar do."""
_CYCLE_YEARS = 400
_CYCLE_SECONDS = 146_097 * DAY


class UnknownZone(ValueError):
    """The database has no zone of that name."""


class Shift(NamedTuple):
    """A change of a zone's clocks: when, and the offsets from UTC before and after, in seconds."""

    at: Seconds
    before: int
    after: int


@dataclass(frozen=True)
class Zone:
    """When clocks change in a zone."""

    info: ZoneInfo
    _years: dict[int, tuple[Shift, ...]] = field(default_factory=dict, compare=False)

    def offset_at(self, instant: Seconds) -> int:
        """What clocks show less UTC, in seconds, at an instant."""
        held = min(max(instant, FIRST_SECOND), LAST_SECOND)
        local = self.info.fromutc((_EPOCH + timedelta(seconds=held)).replace(tzinfo=self.info))
        offset = local.utcoffset()
        return 0 if offset is None else offset // _SECOND

    def shifts(self, first: Seconds, end: Seconds) -> list[Shift]:
        """The changes of clocks at `first` or later and before `end`, in their order."""
        if end <= first:
            return []
        found = [shift for year in range(_year(first), _year(end) + 1) for shift in self._shifts_of(year)]
        instants = [shift.at for shift in found]
        return found[bisect_left(instants, first) : bisect_left(instants, end)]

    def _shifts_of(self, year: int) -> tuple[Shift, ...]:
        cycles = max((year - _FIRST_RULED_YEAR) // _CYCLE_YEARS, 0)
        alike = year - cycles * _CYCLE_YEARS
        known = self._years.get(alike)
        if known is None:
            known = self._years[alike] = tuple(self._find_shifts(alike))
        if cycles == 0:
            return known
        return tuple(shift._replace(at=Seconds(shift.at + cycles * _CYCLE_SECONDS)) for shift in known)

    def _find_shifts(self, year: int) -> list[Shift]:
        """Look every third day: no zone has changed its clocks twice within six days since 1970."""
        found: list[Shift] = []
        start = _start_of(year)
        end = _start_of(year + 1)
        before = self.offset_at(Seconds(start - 1))
        for day in range(start, end, _STEP):
            last = Seconds(min(day + _STEP, end) - 1)
            after = self.offset_at(last)
            if after != before:
                first_after = bisect_right(
                    range(day, last), False, key=lambda at: self.offset_at(Seconds(at)) != before
                )
                found.append(Shift(Seconds(day + first_after), before, after))
                before = after
        return found


def _year(instant: Seconds) -> int:
    return (_EPOCH + timedelta(seconds=min(max(instant, FIRST_SECOND), LAST_SECOND))).year


def _start_of(year: int) -> int:
    return (datetime(min(year, 9999), 1, 1, tzinfo=UTC) - _EPOCH) // _SECOND if year <= 9999 else LAST_SECOND


@dataclass(frozen=True)
class ZoneDatabase:
    """The zones by name, and the name of this release of them.

    Attributes:
        release: differs when what a schedule means may differ.
        keys: for each name that may be used, the key under which `tzdata` has the zone.
    """

    release: str
    keys: Mapping[str, str]

    def zone(self, name: str) -> Zone:
        """The zone of that name. Raises `UnknownZone`."""
        key = self.keys.get(name)
        if key is None:
            raise UnknownZone(_unknown(name, self.release))
        return _load(key)


def _unknown(name: str, release: str) -> str:
    if name[:1] in ("+", "-"):
        return f"{name[:80]!r} is an offset and names no zone: Etc/GMT-2 is the one two hours ahead of UTC"
    return (
        f"{name[:80]!r} is no name in the IANA database of time zones ({release}), as Europe/Berlin, "
        "America/New_York and UTC are"
    )


@lru_cache(maxsize=1_024)
def _load(key: str) -> Zone:
    with files("tzdata").joinpath("zoneinfo", *key.split("/")).open("rb") as file:
        return Zone(ZoneInfo.from_file(file, key))


def _bundled() -> ZoneDatabase:
    keys = files("tzdata").joinpath("zones").read_text(encoding="ascii").split()
    # How fields are read is cronsim's, and just as much of what a stored expression means.
    release = f"tzdata {version('tzdata')}, cronsim {version('cronsim')}"
    return ZoneDatabase(release, {key: key for key in keys if key != "Factory"})


BUNDLED = _bundled()
"""The database of the `tzdata` that is installed."""
