"""When a JSON value fits the pattern of a conformance case (see `tests/cases/README.md`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Final

from tests.core.case_script import BadCase, Value, a_list

from tidelog_events.instants import SECOND, Instant, NotAnInstant, format_instant, parse_instant

START: Final = parse_instant("2026-01-01T00:00:00Z")
"""From which `$t` counts seconds."""

MENTIONS: Final = "$mentions"
_NOT_A_MENTION: Final = ("type", "command_id", "result")


def difference(want: Value, got: Value, where: str = "") -> str | None:
    """None when `got` fits the pattern `want`; else a sentence that says where and why it does not."""
    here = where or "the value"
    if isinstance(want, dict):
        operator = next(iter(want)) if len(want) == 1 else ""
        if operator in _TESTS:
            fault = _TESTS[operator](want[operator], got)
            return None if fault is None else f"{here}: {fault}"
        return _object_difference(want, got, where)
    if isinstance(want, list):
        if not isinstance(got, list) or len(want) != len(got):
            return f"{here}: wanted {len(want)} entries {short(want)}, got {short(got)}"
        faults = (difference(part, got[n], f"{where}[{n}]") for n, part in enumerate(want))
        return next((fault for fault in faults if fault), None)
    return None if _same(want, got) else f"{here}: wanted {short(want)}, got {short(got)}"


def fits(want: Value, got: Value) -> bool:
    """Whether the value fits the pattern."""
    return difference(want, got) is None


def short(value: Value, limit: int = 200) -> str:
    """The value in a message."""
    text = json.dumps(value)
    return text if len(text) <= limit else f"{text[:limit]}… ({len(text)} characters)"


def _object_difference(want: dict[str, Value], got: Value, where: str) -> str | None:
    if not isinstance(got, dict):
        return f"{where or 'the value'}: wanted an object {short(want)}, got {short(got)}"
    for key, part in want.items():
        if key == MENTIONS:
            fault = _silent_about(part, got)
        else:
            fault = difference(part, got.get(key), f"{where}.{key}" if where else key)
        if fault is not None:
            return fault
    return None


def _silent_about(want: Value, got: dict[str, Value]) -> str | None:
    words = [want] if isinstance(want, str) else [str(word) for word in a_list(want)]
    said = list(_texts({key: part for key, part in got.items() if key not in _NOT_A_MENTION}))
    if any(word in text for word in words for text in said):
        return None
    return f"none of {words} is mentioned in {short(got)}"


def _texts(value: Value) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for part in value:
                yield from _texts(part)
        case dict():
            for key, part in value.items():
                yield key
                yield from _texts(part)


def _instant(value: Value) -> Instant | None:
    try:
        return parse_instant(value) if isinstance(value, str) else None
    except NotAnInstant:
        return None


def _same(want: Value, got: Value) -> bool:
    """Equality that keeps true apart from 1, and takes any spelling of an instant."""
    if isinstance(want, bool) or isinstance(got, bool):
        return want is got
    if want == got:
        return True
    instant = _instant(want)
    return instant is not None and instant == _instant(got)


def _at_time(want: Value, got: Value) -> str | None:
    if isinstance(want, bool) or not isinstance(want, int | float):
        raise BadCase(f"$t takes seconds, not {want!r}")
    wanted = Instant(START + round(want * SECOND))
    return None if _instant(got) == wanted else f"wanted {format_instant(wanted)}, got {short(got)}"


def _anything(_: Value, got: Value) -> str | None:
    return "wanted a value, got null or nothing" if got is None else None


def _matching(want: Value, got: Value) -> str | None:
    found = isinstance(got, str) and re.search(str(want), got)
    return None if found else f"{short(got)} does not fit /{want}/"


def _of_length(want: Value, got: Value) -> str | None:
    size = len(got) if isinstance(got, list | str) else None
    return None if size == want else f"wanted {want} entries, got {size}"


def _in_any_order(want: Value, got: Value) -> str | None:
    wanted = a_list(want)
    if not isinstance(got, list) or len(got) != len(wanted):
        return f"wanted the {len(wanted)} entries {short(want)} in any order, got {short(got)}"
    left = list(got)
    for part in wanted:
        hit = next((n for n, entry in enumerate(left) if fits(part, entry)), None)
        if hit is None:
            return f"no entry fits {short(part)} in {short(got)}"
        del left[hit]
    return None


_TESTS: Final[dict[str, Callable[[Value, Value], str | None]]] = {
    "$t": _at_time,
    "$any": _anything,
    "$re": _matching,
    "$len": _of_length,
    "$set": _in_any_order,
}
