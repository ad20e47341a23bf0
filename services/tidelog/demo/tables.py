"""The tables at the end of the demonstration, each from one SQL statement."""

from __future__ import annotations

from tidelog.cli.console import print_line, print_table
from tidelog.demo import findings
from tidelog.demo.findings import Row
from tidelog_projections.projection import Projection


async def show_tables(projection: Projection) -> None:
    """States and counts, kinds of files, the slowest jobs, and the retries."""
    for title, statement, columns, right in (
        ("Jobs by queue and state", findings.STATES, ("queue", "state", "jobs", "attempts"), 2),
        ("Files by kind", findings.KINDS, ("kind", "files", "bytes"), 1),
        ("The slowest", findings.SLOWEST, ("job", "wire name", "path", "milliseconds"), 3),
        ("Retried", findings.RETRIES, ("job", "retries", "last error"), 1),
    ):
        rows = await findings.rows(projection, statement)
        print_line("")
        print_line(f"{title} (SQL, from Postgres)")
        numbers = [name for name in columns[right:] if name != "last error"]
        print_table(columns, [_texts(row) for row in rows], right=numbers)


def _texts(row: Row) -> list[str]:
    return [_text(value) for value in row]


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)
