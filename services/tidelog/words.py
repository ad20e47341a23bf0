"""Times, spans, numbers and lists in words."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from tidelog_events.instants import SECOND, Instant, format_instant

_MOST_NAMED: Final = 5
_UNITS: Final = (("d", 86_400), ("h", 3_600), ("min", 60))


def at(instant: Instant) -> str:
    """A time as the contract writes it."""
    return format_instant(instant)


def ago(earlier: Instant, now: Instant) -> str:
    """`12.3 s ago`."""
    return f"{span(earlier, now)} ago"


def span(earlier: Instant, later: Instant) -> str:
    """`12.3 s`, `4 min 10 s`, `2 d 3 h`; never less than nothing."""
    seconds = max(0.0, (later - earlier) / SECOND)
    if seconds < _UNITS[-1][1]:
        return f"{seconds:.1f} s"
    parts: list[str] = []
    left = int(seconds)
    for unit, length in (*_UNITS, ("s", 1)):
        count, left = divmod(left, length)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def when(instant: Instant | None) -> str:
    """` at <time>`, or nothing."""
    return "" if instant is None else f" at {at(instant)}"


def because(cause: str | None) -> str:
    """`, because: <cause>`, or nothing; the sentence goes on after it."""
    return "" if cause is None else f", because: {cause.rstrip('.')}"


def optional(instant: Instant | None) -> str | None:
    """A time as JSON."""
    return None if instant is None else at(instant)


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 job`, `1,200 jobs`; `many` is the plural that is more than an s."""
    return f"{count:,} {noun if count == 1 else many or f'{noun}s'}"


def first_few(names: Sequence[str]) -> str:
    """The first few, and how many more."""
    shown = ", ".join(names[:_MOST_NAMED])
    return shown if len(names) <= _MOST_NAMED else f"{shown} and {len(names) - _MOST_NAMED} more"


def listed(numbers: Collection[int]) -> str:
    """`partition 3`, `partitions 0-4, 7`."""
    ranges: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1] = (ranges[-1][0], number)
        else:
            ranges.append((number, number))
    shown = ", ".join(str(low) if low == high else f"{low}-{high}" for low, high in ranges)
    return f"partition {shown}" if len(numbers) == 1 else f"partitions {shown}"
