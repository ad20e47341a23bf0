"""Whether something printed what a page shows; `…` stands for whatever may differ."""

from __future__ import annotations

import re

ANYTHING = "…"


def assert_shown(shown: str, printed: str, where: str) -> None:
    """Compare line by line; `…` within a line is any text, a line of `…` alone any number of lines."""
    pattern = "".join(map(_line, shown.strip("\n").splitlines()))
    lines = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    if re.fullmatch(pattern, lines) is None:
        raise AssertionError(f"{where} shows\n\n{shown}\n\nbut this was printed\n\n{printed}")


def _line(line: str) -> str:
    if line.strip() == ANYTHING:
        return r"(?:.*\n)*"
    words = (_words(piece) for piece in line.rstrip().split(ANYTHING))
    return ".*".join(words) + r"\n"


def _words(text: str) -> str:
    """Columns move with the widths of ids and times: any space is as good as another."""
    return r" +".join(re.escape(word) for word in re.split(r" +", text))
