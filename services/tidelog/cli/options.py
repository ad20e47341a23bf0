"""Options and arguments that several commands share."""

from __future__ import annotations

import getpass
import os
from typing import Annotated, TypeAlias

import typer

from tidelog.cli.logs import LogLevel


def current_user() -> str:
    """Who runs this command, for the audit: `$USER`, else the account's name or number."""
    named = os.environ.get("USER")
    if named:
        return named
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # an account without a name, as in many containers
        return f"uid-{os.getuid()}"


JobIdArgument: TypeAlias = Annotated[str, typer.Argument(metavar="ID", help="The job's id: <queue>/<key>.")]
ScheduleIdArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ID", help="The schedule's id: <queue>/<name>.")
]
QueueArgument: TypeAlias = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue's name.")]
AppArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="MODULE:APP", help="The application, for example shop.jobs:app.")
]
JsonOption: TypeAlias = Annotated[
    bool, typer.Option("--json", help="One JSON document on standard output, for programs.")
]
ActorOption: TypeAlias = Annotated[
    str,
    typer.Option(default_factory=current_user, show_default="$USER", help="Who asks; it is written down."),
]
TimeoutOption: TypeAlias = Annotated[
    float, typer.Option(min=0.1, help="Seconds to wait for an engine's answer.")
]
LogLevelOption: TypeAlias = Annotated[
    LogLevel | None, typer.Option("--log-level", help="How much to log, on standard error.")
]
LifelineOption: TypeAlias = Annotated[
    int | None, typer.Option(hidden=True, help="A pipe: the process stops when its other end is closed.")
]
