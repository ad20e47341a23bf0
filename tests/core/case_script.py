"""The script of a conformance case: its macros and loops, and the lines of input that they stand for."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import TypeAlias

Value: TypeAlias = "bool | int | float | str | list[Value] | dict[str, Value] | None"
"""A JSON value."""

Names: TypeAlias = Mapping[str, int]
"""The counters of the loops around, by their letters."""

_TERM = r"([a-z])(?:\*(\d+))?([+-]\d+)?"
_IN_A_TEXT = re.compile(rf"\{{{_TERM}\}}")
_ALONE = re.compile(_TERM)


class BadCase(Exception):
    """A case file is wrong, whatever the code does."""


def lines_of(script: Value, names: Names | None = None) -> list[str]:
    """The lines of input, in order. Raises `BadCase`."""
    lines: list[str] = []
    for entry in a_list(script):
        fields = an_object(entry)
        if "for" in fields:
            letter, first, last = str(fields["for"]), a_number(fields["from"]), a_number(fields["to"])
            for count in range(first, last + 1):
                lines += lines_of(fields["do"], {**(names or {}), letter: count})
        elif "raw" in fields:
            lines.append(str(fields["raw"]))
        else:
            lines.append(json.dumps(expand(entry, names or {}), separators=(",", ":")))
    return lines


def expand(value: Value, names: Names) -> Value:
    """The value with its macros replaced by what they stand for. Raises `BadCase`."""
    match value:
        case str() if names:
            return _IN_A_TEXT.sub(lambda found: str(_term(found, names)), value)
        case list():
            return [expanded for part in value for expanded in _expand_entry(part, names)]
        case {"$n": str(term)}:
            found = _ALONE.fullmatch(term)
            if found is None:
                raise BadCase(f"cannot compute {term!r}")
            return _term(found, names)
        case {"$repeat": [str(text), int(times)]}:
            return text * times
        case {"$concat": list(parts)}:
            return "".join(str(expand(part, names)) for part in parts)
        case dict():
            return {str(expand(key, names)): expand(part, names) for key, part in value.items()}
        case _:
            return value


def _expand_entry(value: Value, names: Names) -> list[Value]:
    match value:
        case {"$range": [str(letter), int(first), int(last), body]}:
            return [expand(body, {**names, letter: count}) for count in range(first, last + 1)]
        case _:
            return [expand(value, names)]


def _term(found: re.Match[str], names: Names) -> int:
    """`i`, `i-1` or `i*2+1`."""
    letter, factor, rest = found.groups()
    if letter not in names:
        raise BadCase(f"{found[0]!r} stands outside of a loop over {letter}")
    return names[letter] * int(factor or 1) + int(rest or 0)


def a_list(value: Value) -> list[Value]:
    """The value, which must be a list. Raises `BadCase`."""
    if not isinstance(value, list):
        raise BadCase(f"a list is wanted, not {value!r}")
    return value


def an_object(value: Value) -> dict[str, Value]:
    """The value, which must be an object. Raises `BadCase`."""
    if not isinstance(value, dict):
        raise BadCase(f"an object is wanted, not {value!r}")
    return value


def a_number(value: Value) -> int:
    """The value, which must be a whole number. Raises `BadCase`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadCase(f"a whole number is wanted, not {value!r}")
    return value
