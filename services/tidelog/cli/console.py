"""Where output goes: results to standard output, everything said to people about them to standard error."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tidelog.cli.text import harmless, harmless_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console
    from rich.table import Table

_UNBOUNDED: Final = 10_000
"""Columns of an output that is no terminal: nothing is cut for the sake of a line's length."""


def console(*, stderr: bool = False) -> Console:
    """A console that takes texts as they are: no markup, no emoji codes, no guessed colours."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    return Console(
        stderr=stderr,
        markup=False,
        emoji=False,
        highlight=False,
        width=None if stream.isatty() else _UNBOUNDED,
    )


def say(message: str) -> None:
    """Tell people something, on standard error."""
    print(harmless_lines(message), file=sys.stderr)  # noqa: T201  this is the place that prints


def print_line(text: str) -> None:
    """One line of a result, on standard output."""
    print(harmless(text))  # noqa: T201  this is the place that prints


def print_json(value: object) -> None:
    """A result for programs: one JSON document on one line of standard output. Fragments are kept as is."""
    import orjson

    sys.stdout.flush()
    sys.stdout.buffer.write(orjson.dumps(value) + b"\n")
    sys.stdout.buffer.flush()


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> Table:
    """A table of texts from anywhere; the columns named in `right` hold numbers."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD if sys.stdout.isatty() else None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(
            column, justify="right" if column in right else "left", no_wrap=column in right, overflow="fold"
        )
    for row in rows:
        made.add_row(*(Text(harmless(cell)) for cell in row))
    return made


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[str] = ()) -> None:
    """Print a table on standard output."""
    console().print(table(columns, rows, right=right))
