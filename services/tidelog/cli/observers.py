"""Looking at observers, redriving their dead letters, saying where they go on, and forgetting them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.console import print_json, print_table, say
from tidelog.cli.entry import command
from tidelog.cli.exits import Refused
from tidelog.cli.options import ActorOption, JsonOption
from tidelog.cli.session import open_log, read_settings
from tidelog.cli.showing import print_result
from tidelog.cli.values import read_time
from tidelog.words import plural

if TYPE_CHECKING:
    from tidelog.observer.start import Start
    from tidelog.observer.status import ObserverStatus
    from tidelog_events.instants import Instant

app = typer.Typer(invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})


@app.callback()
def observers(context: typer.Context, as_json: JsonOption = False) -> None:
    """List observers: how far behind they are, and their dead letters; `redrive` delivers these again."""
    if context.invoked_subcommand is None:
        command(_list)(as_json=as_json)
    elif as_json:
        raise typer.BadParameter(f"say it behind {context.invoked_subcommand}", param_hint="--json")


async def _list(*, as_json: bool) -> None:
    from tidelog.clock import wall_clock
    from tidelog.observer.status import observer_statuses

    settings = read_settings()
    async with open_log(settings) as log:
        found = await observer_statuses(log, settings.topics)
    now = wall_clock()
    if as_json:
        print_json({"observers": [_written(status, now) for status in found]})
        return
    print_table(
        ("observer", "processes", "behind", "seconds", "dead letters", "stands still", "last error"),
        [
            (
                status.observer_id,
                str(status.members),
                str(status.events),
                f"{status.lag_seconds(now):.1f}",
                str(status.dead_letters),
                ", ".join(map(str, status.lost)),
                next((position.failing for position in status.failing), status.last_error) or "",
            )
            for status in found
        ],
        right=("processes", "behind", "seconds", "dead letters"),
    )


@app.command()
def redrive(
    observer_id: Annotated[str, typer.Argument(metavar="ID", help="The observer's id.")],
    actor: ActorOption,
    limit: Annotated[
        int | None, typer.Option(min=1, help="At most so many, the oldest first; all of them without it.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Have the dead letters of an observer delivered again, by its own process, now or when it next runs."""
    command(_redrive)(observer_id, actor=actor, limit=limit, as_json=as_json)


async def _redrive(observer_id: str, *, actor: str, limit: int | None, as_json: bool) -> None:
    from tidelog.clock import wall_clock
    from tidelog.observer.letters import request_redrive
    from tidelog.observer.status import group_of

    settings = read_settings()
    topics = settings.topics
    async with open_log(settings) as log:
        with _refusals():
            group = await group_of(log, topics, observer_id)
        count = await request_redrive(log, topics, observer_id, actor=actor, at=wall_clock(), limit=limit)
    print_result("Ok", {"observer": observer_id, "dead_letters": count}, as_json=as_json)
    if not count:
        say(f"{observer_id} has no dead letters.")
    elif not group.members:
        say(f"{plural(count, 'dead letter')} will be delivered when {observer_id} runs (`tidelog observe`).")
    else:
        say(f"{observer_id} delivers {plural(count, 'dead letter')} again now.")


@app.command()
def seek(
    observer_id: Annotated[str, typer.Argument(metavar="ID", help="The observer's id.")],
    start: Annotated[
        str, typer.Argument(metavar="beginning|now|TIME", help="Where it goes on; TIME as RFC 3339.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Say where an observer that does not run is to go on. What lies between is told again, or never."""
    command(_seek)(observer_id, start, as_json=as_json)


async def _seek(observer_id: str, start: str, *, as_json: bool) -> None:
    from tidelog.observer.seeking import seek as set_offsets

    to: Start
    match start:
        case "beginning" | "now":
            to = start
        case _:
            to = read_time("The start", start)
    settings = read_settings()
    async with open_log(settings) as log:
        with _refusals():
            offsets = await set_offsets(log, settings.topics, observer_id, to)
    if as_json:
        print_json({"result": "Ok", "observer": observer_id, "next_offsets": list(offsets.values())})
    else:
        print_result("Ok", {}, as_json=False)


@app.command()
def forget(
    observer_id: Annotated[str, typer.Argument(metavar="ID", help="The observer's id.")],
    as_json: JsonOption = False,
) -> None:
    """Forget an observer that nobody runs any more. If it comes back, it begins at its declared start."""
    command(_forget)(observer_id, as_json=as_json)


async def _forget(observer_id: str, *, as_json: bool) -> None:
    from tidelog.observer.forgetting import forget as forget_observer

    settings = read_settings()
    async with open_log(settings) as log:
        with _refusals():
            await forget_observer(log, settings.topics, observer_id)
    print_result("Ok", {"observer": observer_id}, as_json=as_json)
    say(f"If {observer_id} runs again, it begins at its declared start. Its dead letters stay in the log.")


@contextmanager
def _refusals() -> Iterator[None]:
    """Say why nothing is done to an observer, in the words of a command."""
    from tidelog.observer.errors import ObserverRuns, UnknownObserver

    try:
        yield
    except UnknownObserver as error:
        raise Refused("NotFound", str(error)) from None
    except ObserverRuns as error:
        raise Refused("Running", str(error)) from None


def _written(status: ObserverStatus, now: Instant) -> dict[str, object]:
    from tidelog_events.instants import format_instant

    return {
        "observer": status.observer_id,
        "processes": status.members,
        "lag_events": status.events,
        "lag_seconds": round(status.lag_seconds(now), 3),
        "dead_letters": status.dead_letters,
        "last_error": status.last_error,
        "positions": [
            {
                "partition": position.partition,
                "next_offset": position.next_offset,
                "lag_events": position.events,
                "oldest": None if position.oldest is None else format_instant(position.oldest),
                "in_log": position.is_in_log,
                "failing": position.failing,
            }
            for position in status.positions
        ],
    }
