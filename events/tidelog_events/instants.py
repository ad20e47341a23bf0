"""Instants and durations: whole microseconds inside, RFC 3339 in UTC on the wire (contract section 1)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import NewType

Instant = NewType("Instant", int)
"""A point in time: microseconds since 1970-01-01T00:00:00Z."""

Micros = NewType("Micros", int)
"""A duration in microseconds."""

SECOND = 1_000_000
MAX_SECONDS = 1_000_000_000
"""The longest duration that a command may name, in seconds."""

_UNIX_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR_AND_MINUTE = r"(?:[01]\d|2[0-3]):[0-5]\d"
TIME_PATTERN = (
    rf"\d{{4}}-\d{{2}}-\d{{2}}[Tt]{_HOUR_AND_MINUTE}:[0-5]\d(?:\.\d{{1,6}})?(?:[Zz]|[+-]{_HOUR_AND_MINUTE})"
)
"""The form of a time; not every text of this form is in the calendar."""
_RFC_3339 = re.compile(TIME_PATTERN, re.ASCII)
_BASIC = str.maketrans("", "", "-:")
_ONE_MICROSECOND = timedelta(microseconds=1)
FIRST_INSTANT = Instant((datetime.min.replace(tzinfo=UTC) - _UNIX_EPOCH) // _ONE_MICROSECOND)
LAST_INSTANT = Instant((datetime.max.replace(tzinfo=UTC) - _UNIX_EPOCH) // _ONE_MICROSECOND)
"""The last instant that can be written; later ones are clamped to it (a retry delay may reach past it)."""


class NotAnInstant(ValueError):
    """The text is not a time that this project reads."""


def parse_instant(text: str) -> Instant:
    """Read an RFC 3339 time with an offset, up to microseconds.

    Raises:
        NotAnInstant: no offset, more than six fraction digits, hour 24, second 60, a day that is not in the
            calendar, or no time at all. Nothing is guessed (contract section 1).
    """
    if _RFC_3339.fullmatch(text) is None:
        raise NotAnInstant(
            "not an RFC 3339 time with an offset and at most six fraction digits (2026-01-31T09:00:00Z)"
        )
    try:
        micros = (datetime.fromisoformat(text.upper()) - _UNIX_EPOCH) // _ONE_MICROSECOND
    except (ValueError, OverflowError) as error:
        raise NotAnInstant(f"not a time of the calendar: {error}") from None
    return _of_the_calendar(micros)


def _of_the_calendar(micros: int) -> Instant:
    """An offset can carry a datetime out of the years that can be written."""
    if not FIRST_INSTANT <= micros <= LAST_INSTANT:
        raise NotAnInstant("a time outside the years 0001 to 9999 in UTC")
    return Instant(micros)


@lru_cache(maxsize=4_096)  # the events of one batch share their instants
def format_instant(instant: Instant) -> str:
    """Write an instant as RFC 3339 in UTC with `Z`; the fraction only when there is one."""
    return f"{to_datetime(instant).replace(tzinfo=None).isoformat()}Z"


def format_basic(instant: Instant) -> str:
    """Write an instant of whole seconds in UTC as `YYYYMMDDTHHMMSSZ`, which may stand in a job id."""
    return f"{to_datetime(instant).replace(tzinfo=None, microsecond=0).isoformat()}Z".translate(_BASIC)


def to_datetime(instant: Instant) -> datetime:
    """The instant as an aware datetime in UTC."""
    return _UNIX_EPOCH + timedelta(microseconds=instant)


def from_datetime(moment: datetime) -> Instant:
    """The instant of an aware datetime.

    Raises:
        NotAnInstant: the datetime has no time zone, so that its instant would be a guess; or it is outside
            the years 0001 to 9999 in UTC.
    """
    if moment.tzinfo is None or moment.utcoffset() is None:
        raise NotAnInstant(f"{moment!r} has no time zone; give one, for example datetime.now(UTC)")
    return _of_the_calendar((moment - _UNIX_EPOCH) // _ONE_MICROSECOND)


def later(instant: Instant, delay: Micros) -> Instant:
    """The instant after a delay, clamped to the last one that can be written."""
    return Instant(min(instant + delay, LAST_INSTANT))


def from_seconds(seconds: float) -> Micros:
    """A duration in seconds, rounded to the microsecond (contract section 3, Numbers)."""
    if isinstance(seconds, int):
        return Micros(seconds * SECOND)
    return Micros(round(seconds * SECOND))


def to_seconds(micros: Micros) -> int | float:
    """A duration as the number of seconds to write: whole numbers without a fraction."""
    whole, rest = divmod(micros, SECOND)
    return micros / SECOND if rest else whole
