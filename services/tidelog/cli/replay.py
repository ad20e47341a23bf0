"""`tidelog replay`: decisions without any service (contract section 6)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tidelog.core.replay import BadInput, Replay

WRONG_USE = 2


def replay(
    file: Annotated[str, typer.Argument(help="A script of JSON lines; - for standard input.")],
    partitions: Annotated[int, typer.Option(min=1, help="How many partitions queues are spread over.")] = 1,
    state: Annotated[bool, typer.Option("--state", help="End with one line for each job's record.")] = False,
) -> None:
    """Run a script of commands through the engine's own rules, in memory and under virtual time."""
    runner = Replay(partitions)
    out = sys.stdout.buffer
    try:
        with sys.stdin.buffer if file == "-" else Path(file).open("rb") as lines:
            for line in runner.run(lines):
                out.write(line + b"\n")
            if state:
                for line in runner.records():
                    out.write(line + b"\n")
    except BadInput as error:
        out.flush()
        typer.echo(f"tidelog replay: {error}", err=True)
        raise typer.Exit(WRONG_USE) from None
    except OSError as error:
        typer.echo(f"tidelog replay: {file} cannot be read: {error.strerror}", err=True)
        raise typer.Exit(WRONG_USE) from None
    finally:
        out.flush()
