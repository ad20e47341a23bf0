"""How far the demonstration has come: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tidelog.cli.console import console, say
from tidelog.cli.exits import Unreachable
from tidelog.demo import findings
from tidelog.demo.stage import Stage
from tidelog_events.states import JobState

_STALLED_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.1
_SAY_SECONDS: Final = 2.0


class Shown(Protocol):
    """Shows how many jobs have ended, and in what states all of them are."""

    def __call__(self, ended: int, states: dict[JobState, int]) -> None: ...


async def until_all_have_ended(stage: Stage, total: int) -> None:
    """Show the progress until so many jobs have ended, as Postgres has it.

    Raises:
        Unreachable: nothing changed for half a minute.
    """
    before: dict[JobState, int] = {}
    changed = time.monotonic()
    with _shown(total) as show:
        while True:
            states = await findings.progress(stage.projection)
            ended = sum(count for state, count in states.items() if state.is_terminal)
            show(ended, states)
            if ended >= total:
                return
            if states != before:
                before, changed = states, time.monotonic()
            elif time.monotonic() - changed > _STALLED_SECONDS:
                raise Unreachable(
                    f"Nothing changed for {_STALLED_SECONDS:.0f} s; {ended} of {total} jobs have ended "
                    f"({_in_words(states)}). {stage.last_words()}"
                )
            await asyncio.sleep(_LOOK_SECONDS)


@contextmanager
def _shown(total: int) -> Iterator[Shown]:
    if not sys.stderr.isatty():
        yield _lines(total)
        return
    columns = (TextColumn("jobs"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[states]}"))
    with Progress(*columns, TimeElapsedColumn(), console=console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, states="")
        yield lambda ended, states: bar.update(task, completed=ended, states=_in_words(states))


def _lines(total: int) -> Shown:
    said = 0.0

    def show(ended: int, states: dict[JobState, int]) -> None:
        nonlocal said
        if ended >= total or time.monotonic() - said > _SAY_SECONDS:
            said = time.monotonic()
            say(f"  {ended} of {total} jobs have ended ({_in_words(states) or 'none is there yet'})")

    return show


def _in_words(states: dict[JobState, int]) -> str:
    return ", ".join(f"{states[state]} {state}" for state in JobState if states.get(state))
