"""Texts from anywhere, made harmless for a terminal.

Wire names, errors, tags and payloads are other people's: an escape sequence in one of them could move the
cursor or rename the window, a line break could forge a row, and a bidirectional mark could turn text around.
"""

from __future__ import annotations

import re
from typing import Final

_HARMFUL: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # control characters, the escape among them
    "\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"  # marks of direction, and separators of lines
    "\ud800-\udfff]"  # halves of characters, which no terminal can be given
)


def harmless(text: str) -> str:
    """The text on one line, with what a terminal would act upon shown as escapes such as `\\x1b`."""
    return _HARMFUL.sub(_escape, text)


def harmless_lines(text: str) -> str:
    """As `harmless`, but the lines of a text that is meant to have several stay lines."""
    return "\n".join(harmless(line) for line in text.split("\n"))


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode("ascii")
