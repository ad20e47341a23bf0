"""All commands of `tidelog`, by name."""

from __future__ import annotations

import typer

from tidelog.cli.replay import replay

app = typer.Typer(
    name="tidelog",
    help="Background jobs as an event-sourced service.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Background jobs as an event-sourced service."""


app.command()(replay)
