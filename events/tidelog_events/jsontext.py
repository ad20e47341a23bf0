"""JSON exactly as RFC 8259 has it (contract section 1): nothing is guessed and no digit is lost.

orjson does nearly all of the work. What it cannot do right is done here, slowly and without recursion:
whole numbers beyond 64 bits (orjson makes floats of them), nesting of any depth, and strings with lone
surrogates (both are JSON; a command that carries them is refused by name, not as noise).
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from math import isinf
from typing import TypeAlias

import orjson

from tidelog_events.bounds import MAX_JSON_DEPTH


@dataclass(frozen=True, slots=True)
class HugeInt:
    """A whole number with more digits than Python likes to convert; kept as its digits."""

    digits: str


Json: TypeAlias = "bool | int | float | str | HugeInt | list[Json] | dict[str, Json] | None"
"""A JSON value in memory."""

JsonBytes: TypeAlias = bytes
"""A JSON value as compact UTF-8 text, the form in which payloads and outputs are kept."""

NULL: JsonBytes = b"null"


class NotJson(ValueError):
    """The text is not JSON."""


class NotStorable(ValueError):
    """A value has no JSON form that Tidelog keeps: NaN, a lone surrogate, too deep, or of no JSON type."""


# What may be a whole number beyond 64 bits, which orjson would round. Before a number stands one of these
# characters or nothing: digits within an id, of which a large grant has hundreds, are none.
_LONG_DIGITS = re.compile(rb"(?:^|[\[:,\s])(?:-\d{19}|\d{20})")
# Nearly no text has them, and every text is searched: to blank out all but digits and look for a run of
# zeros takes a seventh (short texts) to a twentieth (long ones) of the time that the expression takes.
_DIGITS_AS_ZEROS = bytes(ord("0") if byte in b"0123456789" else ord(" ") for byte in range(256))
_RUN_OF_DIGITS = b"0" * 19
_PYTHON_INT_DIGITS = sys.int_info.str_digits_check_threshold
"""Python always converts so many digits, whatever PYTHONINTMAXSTRDIGITS says."""


def loads(text: bytes) -> Json:
    """Read one JSON value from UTF-8 text.

    Of a key that stands twice the last counts. Raises `NotJson`; NaN, Infinity, numbers that overflow a
    double and bytes that are no UTF-8 are not JSON.
    """
    if not _has_long_digits(text):
        try:
            value: Json = orjson.loads(text)
        except orjson.JSONDecodeError:
            return _loads_any_depth(text)
        return value
    return _loads_any_depth(text)


def _has_long_digits(text: bytes) -> bool:
    return _RUN_OF_DIGITS in text.translate(_DIGITS_AS_ZEROS) and _LONG_DIGITS.search(text) is not None


def dumps(value: Json) -> JsonBytes:
    """Write a value that `loads` returned as compact UTF-8 text.

    Raises:
        NotStorable: a string has a lone surrogate, or there are more than 512 levels.
    """
    try:
        return orjson.dumps(value, option=orjson.OPT_PASSTHROUGH_DATACLASS)
    except TypeError:  # beyond 64 bits, deeper than 254 levels, a HugeInt, or a lone surrogate
        return _dumps_any_depth(value)


def from_python(value: object) -> JsonBytes:
    """Write a Python value of JSON's types as compact UTF-8 text, with whole numbers of any size.

    Raises:
        NotStorable: NaN or infinity, a lone surrogate, more than 512 levels, or a type that JSON lacks.
    """
    try:
        text = _PYTHON_ENCODER.encode(value).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise NotStorable(f"not a JSON value: {error}") from None
    # Only a text with so many brackets can be too deep; to look closer costs more than to write it.
    if text.count(b"[") + text.count(b"{") > MAX_JSON_DEPTH and is_too_deep(loads(text)):
        raise NotStorable(_TOO_DEEP)
    return text


_TOO_DEEP = f"more than {MAX_JSON_DEPTH} levels of nesting"
_PYTHON_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def is_too_deep(value: Json) -> bool:
    """Whether a value has more than 512 levels of lists and objects."""
    if not isinstance(value, list | dict):
        return False
    level: list[list[Json] | dict[str, Json]] = [value]
    for _ in range(MAX_JSON_DEPTH):
        level = [
            child
            for parent in level
            for child in (parent if isinstance(parent, list) else parent.values())
            if isinstance(child, list | dict)
        ]
        if not level:
            return False
    return True


_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
        (?P<mark>[\[\]{}:,])
      | (?P<string>"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+")
      | (?P<number>-?(?:0|[1-9][0-9]*)(?P<real>(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?))
      | (?P<word>true|false|null)
    )""",
    re.VERBOSE,
)
_BLANKS = re.compile(r"[ \t\n\r]*")
_WORDS: dict[str, Json] = {"true": True, "false": False, "null": None}


def _scalar(token: re.Match[str]) -> Json:
    if (quoted := token["string"]) is not None:
        text: str = json.loads(quoted)
        return text
    if (number := token["number"]) is not None:
        if not token["real"]:
            return int(number) if len(number) <= _PYTHON_INT_DIGITS else HugeInt(number)
        real = float(number)
        if isinf(real):
            raise NotJson(f"the number {number[:40]} overflows a double")
        return real
    return _WORDS[token["word"]]


@dataclass(slots=True)
class _Open:
    """A list or an object that is being read."""

    value: list[Json] | dict[str, Json]
    key: str | None = None

    def add(self, child: Json) -> None:
        if isinstance(self.value, list):
            self.value.append(child)
        elif self.key is not None:
            self.value[self.key] = child


class _Reader:
    """Walks over the tokens of a text, one at a time."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.position = 0

    def next(self) -> re.Match[str]:
        token = _TOKEN.match(self.text, self.position)
        if token is None:
            raise NotJson(f"not JSON at character {self.position + 1}")
        self.position = token.end()
        return token

    def peek_mark(self) -> str:
        at = _BLANKS.match(self.text, self.position)
        end = at.end() if at is not None else self.position
        return self.text[end : end + 1]

    def expect(self, mark: str) -> None:
        if self.next()["mark"] != mark:
            raise NotJson(f"not JSON at character {self.position}: {mark!r} is missing")

    def key(self) -> str:
        token = self.next()
        if token["string"] is None:
            raise NotJson(f"not JSON at character {self.position}: an object's key must be a string")
        text: str = json.loads(token["string"])
        self.expect(":")
        return text


def _loads_any_depth(raw: bytes) -> Json:
    try:
        reader = _Reader(raw.decode())
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8: {error}") from None
    stack: list[_Open] = []
    while True:
        value = _start_value(reader, stack)
        while not isinstance(value, _Open):
            if not stack:
                if reader.text[reader.position :].strip(" \t\n\r"):
                    raise NotJson(f"more than one JSON value: character {reader.position + 1}")
                return value
            stack[-1].add(value)
            if not _goes_on(reader, stack[-1]):
                value = stack.pop().value
                continue
            break


def _start_value(reader: _Reader, stack: list[_Open]) -> Json | _Open:
    """Read a scalar or an empty container whole; open any other container and leave it on the stack."""
    token = reader.next()
    match token["mark"]:
        case None:
            return _scalar(token)
        case "[":
            if reader.peek_mark() == "]":
                reader.next()
                return []
            stack.append(_Open([]))
        case "{":
            if reader.peek_mark() == "}":
                reader.next()
                return {}
            stack.append(_Open({}, reader.key()))
        case mark:
            raise NotJson(f"not JSON at character {reader.position}: {mark!r} stands where a value should")
    return stack[-1]


def _goes_on(reader: _Reader, container: _Open) -> bool:
    """Whether another entry follows in the container; its key, if it has one, is read."""
    mark = reader.next()["mark"]
    if mark == ",":
        if isinstance(container.value, dict):
            container.key = reader.key()
        return True
    if mark != ("]" if isinstance(container.value, list) else "}"):
        raise NotJson(f"not JSON at character {reader.position}: a comma or a closing bracket is missing")
    return False


def _dumps_any_depth(value: Json) -> JsonBytes:
    if is_too_deep(value):
        raise NotStorable(_TOO_DEEP)
    try:
        return "".join(_pieces(value)).encode()
    except UnicodeEncodeError:
        raise NotStorable("a string has a lone surrogate") from None


def _pieces(value: Json) -> list[str]:
    """The text of a value in pieces, by a stack of what is still to be written."""
    pieces: list[str] = []
    todo: list[tuple[bool, Json | str]] = [(False, value)]
    while todo:
        is_text, item = todo.pop()
        match item:
            case str() if is_text:
                pieces.append(item)
            case HugeInt(digits):
                pieces.append(digits)
            case float():  # as the fast path writes it, so that a value has one size
                pieces.append(orjson.dumps(item).decode())
            case list():
                todo.append((True, "]"))
                for index in range(len(item) - 1, -1, -1):
                    todo.append((False, item[index]))
                    if index:
                        todo.append((True, ","))
                todo.append((True, "["))
            case dict():
                todo.append((True, "}"))
                for index, key in reversed(list(enumerate(item))):
                    todo.append((False, item[key]))
                    todo.append((True, f"{',' if index else ''}{_PYTHON_ENCODER.encode(key)}:"))
                todo.append((True, "{"))
            case _:
                pieces.append(_PYTHON_ENCODER.encode(item))
    return pieces
