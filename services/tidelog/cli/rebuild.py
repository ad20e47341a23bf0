"""`tidelog rebuild`: the projection anew, from the log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tidelog.cli.console import console, print_json, print_line
from tidelog.cli.options import JsonOption
from tidelog.cli.session import open_log, open_projection, read_settings

if TYPE_CHECKING:
    from tidelog.projector.rebuild import RebuildProgress


async def rebuild(as_json: JsonOption = False) -> None:
    """Make the projection anew and put it in the place of the old one, which is read until then."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from tidelog.projector.rebuild import rebuild as rebuild_projection

    settings = read_settings()
    bar = Progress(
        TextColumn("partitions"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[jobs]} jobs, {task.fields[transitions]} transitions"),
        TimeElapsedColumn(),
        console=console(stderr=True),
        disable=not sys.stderr.isatty(),
    )
    async with open_log(settings) as log, open_projection(settings, create=True) as projection:
        with bar:
            task = bar.add_task("", total=None, jobs=0, transitions=0)

            def show(now: RebuildProgress) -> None:
                bar.update(
                    task,
                    total=now.partitions,
                    completed=now.done,
                    jobs=now.jobs,
                    transitions=now.transitions,
                )

            done = await rebuild_projection(log, settings.topics, projection, progress=show)
    if as_json:
        print_json({"partitions": done.partitions, "jobs": done.jobs, "transitions": done.transitions})
    else:
        print_line(
            f"rebuilt from {done.partitions} partitions: {done.jobs} jobs, {done.transitions} transitions"
        )
