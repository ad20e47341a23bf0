"""`tidelog demo`: the whole of Tidelog at work on a folder of files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidelog.cli.exits import ExitCode


async def demo(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="What to work on; it is only read.", show_default=False)
    ] = Path(),
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep log and Postgres, and say how to look at them.")
    ] = False,
) -> None:
    """Hash every file of a folder with jobs, let a few fail, and check all of it: about 10 seconds.

    Without a folder it works on the working directory.
    """
    from tidelog.demo.run import run_demo

    if not await run_demo(folder, keep=keep):
        raise typer.Exit(ExitCode.REFUSED)
