"""The outcome of a run as one table."""

from __future__ import annotations

from collections.abc import Mapping

from rich.table import Table
from tests.torture.run import Outcome


def table(title: str, outcome: Outcome) -> Table:
    """Everything that was counted."""
    shown = Table(title=title, show_header=False)
    shown.add_column()
    shown.add_column(justify="right")
    for heading, counts in (
        ("faults", outcome.faults),
        ("processes that ended by themselves", outcome.gave_up),
        ("tracebacks in what a role said", outcome.tracebacks),
        ("audit", outcome.audit.counts),
    ):
        _add(shown, heading, counts)
    shown.add_section()
    shown.add_row("rules broken", str(len(outcome.audit.problems)))
    return shown


def _add(shown: Table, heading: str, counts: Mapping[str, int]) -> None:
    shown.add_section()
    shown.add_row(f"[bold]{heading}[/bold]", "" if counts else "none")
    for name, count in sorted(counts.items()) if heading != "audit" else counts.items():
        shown.add_row(f"  {name}", f"{count:,}")
