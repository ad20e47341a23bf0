"""Whether something printed what a page shows, but for what differs from run to run."""

from __future__ import annotations

import re
from typing import Final

ANYTHING: Final = "…"

_VARYING: Final = {
    "instant": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)",
    "uuid": r"[0-9a-f]{32}",
    "member": r"[\w.-]+-\d+-[0-9a-f]{12}",  # a worker: host, process, something new
    "duration": r"\d+\.\d+ ?s\b",
}
_PARTS: Final = re.compile(
    "|".join(f"(?P<{name}>{form})" for name, form in _VARYING.items()) + "|(?P<gap> +)"
)


def assert_shown(shown: str, printed: str, where: str) -> None:
    """Compare line by line.

    An instant stands for any other one, and so do ids that are minted and durations. `…` within a line is any
    text, a line of `…` alone any number of lines. Columns move with the widths of what varies, so any number
    of spaces is as good as another.

    Raises:
        AssertionError: something else was printed.
    """
    pattern = "".join(map(_line, shown.strip("\n").splitlines()))
    lines = "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())
    if re.fullmatch(pattern, lines) is None:
        raise AssertionError(f"{where} shows\n\n{shown}\n\nbut this was printed\n\n{printed}")


def _line(line: str) -> str:
    if line.strip() == ANYTHING:
        return r"(?:.*\n)*"
    return ".*".join(map(_piece, line.rstrip().split(ANYTHING))) + r"\n"


def _piece(text: str) -> str:
    """What matches a text and all that differs from it only by what varies."""
    pattern, end = "", 0
    for part in _PARTS.finditer(text):
        varying = " +" if part.lastgroup == "gap" else _VARYING[str(part.lastgroup)]
        pattern += re.escape(text[end : part.start()]) + varying
        end = part.end()
    return pattern + re.escape(text[end:])
