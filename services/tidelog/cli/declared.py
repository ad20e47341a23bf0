"""The declared schedules of a worker's application, put there beside the worker's work."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from tidelog.cli.exits import WrongUse
from tidelog.cli.session import open_client
from tidelog.cli.threads import Role, on_own_loop

if TYPE_CHECKING:
    from tidelog.app import App

logger = logging.getLogger("tidelog.cli")


def require_name(app: App, *, prune: bool) -> None:
    """Raise `WrongUse` when schedules are to be pruned and nothing tells which are the application's."""
    if prune and app.name is None:
        raise WrongUse(
            "--prune-schedules removes schedules that this application has put and declares no more; to tell "
            "them from those of others, the application needs a name: App(name=...)."
        )


@asynccontextmanager
async def declared_schedules(app: App, *, prune: bool) -> AsyncIterator[None]:
    """Put them from the start of the block on, until it is done or the block ends.

    That goes on on a loop of its own: handlers may block the one of the worker, and the worker does not wait.
    """
    if not app.schedules and not prune:
        yield
        return
    stop = asyncio.Event()
    async with on_own_loop("tidelog-schedules", lambda: _sync(app, prune=prune)) as put:
        work = asyncio.ensure_future(_unless_it_fails(put, stop))
        try:
            yield
        finally:
            stop.set()
            await work


async def _unless_it_fails(put: Role, stop: asyncio.Event) -> None:
    try:
        await put(stop)
    except Exception:
        # A fault of ours; jobs are worth more than schedules, which the next start will put.
        logger.exception("The declared schedules could not be put; the worker goes on without that.")


@asynccontextmanager
async def _sync(app: App, *, prune: bool) -> AsyncIterator[Role]:
    from tidelog.scheduling.sync import ScheduleSync

    yield ScheduleSync(
        app.schedules, lambda: open_client(app.settings, reads=prune), name=app.name, prune=prune
    ).run
