"""The role that delivers transitions to the observers of an application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.exits import WrongUse
from tidelog.cli.loading import load_app
from tidelog.cli.logs import LogLevel, set_up_logging
from tidelog.cli.options import AppArgument, LifelineOption, LogLevelOption
from tidelog.cli.session import open_log
from tidelog.cli.signals import stop_on_signals
from tidelog.cli.threads import Role, on_own_loop
from tidelog.cli.waiting import require_topics, run_when_possible

if TYPE_CHECKING:
    from tidelog.observer.definition import ObserverDefinition
    from tidelog.settings import Settings

logger = logging.getLogger("tidelog.cli")


async def observe(
    target: AppArgument,
    observer: Annotated[
        list[str] | None, typer.Option("--observer", metavar="ID", help="Only this one; may be repeated.")
    ] = None,
    grace_seconds: Annotated[
        float, typer.Option(min=0.0, help="How long deliveries under way may go on after a stop.")
    ] = 30.0,
    lifeline: LifelineOption = None,
    log_level: LogLevelOption = None,
) -> None:
    """Observe: tell the observers of an application what happens to jobs."""
    set_up_logging(log_level or LogLevel.INFO)
    app = load_app(target)
    definitions = app.observers.chosen(observer or ())
    if not definitions:
        raise WrongUse(f"{target} declares no observers: decorate a function with @app.observer(…).")
    settings = app.settings
    async with stop_on_signals(lifeline) as stop:
        await run_when_possible(lambda: observers(settings, definitions, grace_seconds), stop)


@asynccontextmanager
async def observers(
    settings: Settings, definitions: Sequence[ObserverDefinition], grace_seconds: float
) -> AsyncIterator[Role]:
    """A role that runs observers side by side, each on a thread and with a connection of its own."""
    async with AsyncExitStack() as stack:
        roles = [
            await stack.enter_async_context(
                on_own_loop(
                    f"tidelog-observe-{definition.observer_id}",
                    partial(_observer, settings, definition, grace_seconds),
                )
            )
            for definition in definitions
        ]

        async def together(stop: asyncio.Event) -> None:
            await asyncio.gather(*(role(stop) for role in roles))
            await stop.wait()  # without observers there is nothing to do, which is not to have failed

        yield together


@asynccontextmanager
async def _observer(
    settings: Settings, definition: ObserverDefinition, grace_seconds: float
) -> AsyncIterator[Role]:
    from tidelog.observer.keeping import keep_observing
    from tidelog.observer.observer import Observer, ObserverSettings
    from tidelog.observer.start import beginnings_of

    async with open_log(settings) as log:
        await require_topics(log, settings.topics)
        beginnings = await beginnings_of(log, settings.topics.transitions, definition.start)
        logger.info("observer %s starts on the log %s", definition.observer_id, log.address)

        def make() -> Observer:
            chosen = ObserverSettings(grace_seconds=grace_seconds)
            return Observer(log, settings.topics, definition, settings=chosen, beginnings=beginnings)

        yield partial(keep_observing, definition.observer_id, make)
