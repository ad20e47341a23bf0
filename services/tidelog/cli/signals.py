"""SIGINT and SIGTERM: the first asks for a graceful stop, the second to hurry, the third is the end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

logger = logging.getLogger("tidelog.cli")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class StopRequest(asyncio.Event):
    """Set when the process is to stop. What must hear of it even while the loop is blocked is told then."""

    def __init__(self) -> None:
        super().__init__()
        self._listeners: list[Callable[[], None]] = []

    def tell_at_once(self, listener: Callable[[], None]) -> None:
        """Call it when a signal comes, between two steps of whatever runs then: it must take no lock."""
        self._listeners.append(listener)

    def announce(self) -> None:
        """A signal has come; the loop may be busy for long."""
        while self._listeners:
            self._listeners.pop()()


@asynccontextmanager
async def stop_on_signals(lifeline: int | None = None) -> AsyncIterator[StopRequest]:
    """A request that is made by the first signal; the second one cancels the calling task.

    Args:
        lifeline: a pipe whose other end a parent process holds. When that process is gone, however it went,
            the event is set too: nothing is left running.
    """
    loop = asyncio.get_running_loop()
    stop = StopRequest()
    hurrying = False
    task = asyncio.current_task()

    def on_signal(number: signal.Signals) -> None:
        nonlocal hurrying
        if not stop.is_set():
            logger.info("%s: stopping; once more to hurry", number.name)
            stop.set()
        elif not hurrying and task is not None:
            logger.warning("%s again: stopping at once", number.name)
            hurrying = True
            task.cancel(number.name)
        else:
            # A thread that never ends must not make the process immortal.
            os._exit(128 + number)

    def on_orphaned() -> None:
        if lifeline is not None:
            loop.remove_reader(lifeline)
        logger.warning("the parent process is gone: stopping")
        stop.set()

    for number in _SIGNALS:
        loop.add_signal_handler(number, on_signal, number)
        # The loop hears of signals through a pipe; this handler is called even while it is blocked.
        signal.signal(number, lambda *_: stop.announce())
    if lifeline is not None:
        loop.add_reader(lifeline, on_orphaned)
    try:
        yield stop
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        if lifeline is not None:
            loop.remove_reader(lifeline)
