"""`tidelog replay`: decisions without any service (contract section 6)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from tidelog.cli.exits import WrongUse


def replay(
    file: Annotated[str, typer.Argument(help="A script of JSON lines; - for standard input.")],
    partitions: Annotated[int, typer.Option(min=1, help="How many partitions queues are spread over.")] = 1,
    state: Annotated[bool, typer.Option("--state", help="End with one line for each job's record.")] = False,
) -> None:
    """Run a script of commands through the engine's own rules, in memory and under virtual time."""
    from tidelog.core.replay import BadInput, Replay

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
        raise WrongUse(f"replay: {error}") from None
    except OSError as error:
        if error.filename is None:  # not the script: whoever reads the results is gone
            raise
        raise WrongUse(f"replay: {file} cannot be read: {error.strerror}") from None
    finally:
        out.flush()
