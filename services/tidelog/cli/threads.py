"""A role on a thread and an event loop of its own, beside what may block the main one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

Role = Callable[[asyncio.Event], Awaitable[None]]
"""Works until the event is set, then ends gracefully."""

OpenRole = Callable[[], AbstractAsyncContextManager[Role]]
"""Opens what a role works with, on the loop that will run it."""


class _RoleThread:
    """One role on its thread. All but `_main` and below is for the loop that made it."""

    def __init__(self, name: str, open_role: OpenRole) -> None:
        self._open_role = open_role
        self._loop = asyncio.new_event_loop()
        self._go = asyncio.Event()
        self._stop = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self.opened: Future[None] = Future()
        self.ended: Future[None] = Future()
        self._thread = threading.Thread(target=self._main, name=name, daemon=True)

    async def open(self) -> None:
        """Start the thread and wait until the role is ready to work. Raises what opening it raises."""
        self._thread.start()
        await asyncio.wrap_future(self.opened)

    async def run(self, stop: asyncio.Event) -> None:
        """The role, as if it ran here."""
        self._tell(self._go.set)
        ended = asyncio.wrap_future(self.ended)
        asked = asyncio.ensure_future(stop.wait())
        either: list[asyncio.Future[Any]] = [ended, asked]
        try:
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
            self._tell(self._stop.set)
            await asyncio.shield(ended)
        except asyncio.CancelledError:
            await self.close()
            raise
        finally:
            asked.cancel()

    async def close(self) -> None:
        """End the role at once if it has not ended, and wait for what it leaves in order."""
        self._tell(self._cancel)
        ended = asyncio.wrap_future(self.ended)
        await asyncio.wait([ended])
        ended.exception()  # what it ended with is raised in `run`; asyncio would report that nobody asked

    def _tell(self, call: Callable[[], object]) -> None:
        if not self.ended.done():
            try:
                self._loop.call_soon_threadsafe(call)
            except RuntimeError:  # it has ended just now, and closed its loop
                return

    def _cancel(self) -> None:
        if self._work is not None:
            self._work.cancel()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._work = self._loop.create_task(self._run())
        try:
            self._loop.run_until_complete(self._work)
        except BaseException as error:  # noqa: BLE001  it is raised again where the role is awaited
            self._fail(error)
        finally:
            self._loop.close()
            if not self.ended.done():
                self.ended.set_result(None)

    def _fail(self, error: BaseException) -> None:
        if not self.opened.done():
            self.opened.set_exception(error)
        elif not isinstance(error, asyncio.CancelledError):
            self.ended.set_exception(error)

    async def _run(self) -> None:
        async with self._open_role() as role:
            self.opened.set_result(None)
            await self._go.wait()
            await role(self._stop)


@asynccontextmanager
async def on_own_loop(name: str, open_role: OpenRole) -> AsyncIterator[Role]:
    """A role that works on a loop of its own from the moment that it is called, and is closed with the block.

    Args:
        name: of the thread.
        open_role: called on the new loop.
    """
    thread = _RoleThread(name, open_role)
    await thread.open()
    try:
        yield thread.run
    finally:
        await thread.close()
