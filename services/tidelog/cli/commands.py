"""All commands of `tidelog`, by name.

The modules of the commands import what they work with inside their functions: `tidelog --help`, a typing
error and `tidelog replay` must not pay for the clients of Postgres.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Annotated

import typer

from tidelog.cli import (
    demo,
    doctor,
    enqueue,
    history,
    init,
    job,
    jobs,
    observe,
    observers,
    queues,
    rebuild,
    replay,
    roles,
    schedules,
    stats,
    why,
    workers,
)
from tidelog.cli.console import print_line
from tidelog.cli.entry import command
from tidelog.cli.logs import LogLevel, set_up_logging
from tidelog.cli.options import LogLevelOption

app = typer.Typer(
    name="tidelog",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print_line(f"tidelog {version('tidelog')}")
        raise typer.Exit


@app.callback()
def _root(
    log_level: LogLevelOption = None,
    version: Annotated[  # noqa: ARG001  handled by its callback, before anything else
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Background jobs as an event-sourced service.

    Exit codes: 0 done, 1 refused, 2 wrong use, 3 a service is not reachable.
    """
    set_up_logging(log_level or LogLevel.WARNING, is_brief=log_level is None)


_PANELS: dict[str, dict[str, Callable[..., Coroutine[None, None, None] | None]]] = {
    "Try it": {"demo": demo.demo, "up": roles.up},
    "Jobs": {
        "enqueue": enqueue.enqueue,
        "jobs": jobs.jobs,
        "job": job.job,
        "history": history.history,
        "why": why.why,
        "cancel": jobs.cancel,
        "requeue": jobs.requeue,
    },
    "Queues": {
        "queues": queues.queues,
        "pause": queues.pause,
        "resume": queues.resume,
        "limit": queues.limit,
    },
    "Schedules": {
        "schedules": schedules.schedules,
        "schedule": schedules.schedule,
        "trigger": schedules.trigger,
        "unschedule": schedules.unschedule,
    },
    "Roles": {
        "engine": roles.engine,
        "worker": roles.worker,
        "projector": roles.projector,
        "stats": stats.stats,
        "observe": observe.observe,
    },
    "Installation": {
        "init": init.init,
        "doctor": doctor.doctor,
        "workers": workers.workers,
        "rebuild": rebuild.rebuild,
        "replay": replay.replay,
    },
}
for _panel, _commands in _PANELS.items():
    for _name, _function in _commands.items():
        app.command(_name, rich_help_panel=_panel)(command(_function))
app.add_typer(observers.app, name="observers", rich_help_panel="Observers")
