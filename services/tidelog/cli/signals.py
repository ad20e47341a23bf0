"""SIGINT and SIGTERM: the first asks for a graceful stop, the second to hurry, the third is the end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

logger = logging.getLogger("tidelog.cli")

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@asynccontextmanager
async def stop_on_signals(lifeline: int | None = None) -> AsyncIterator[asyncio.Event]:
    """An event that is set by the first signal; the second one cancels the calling task.

    Args:
        lifeline: a pipe whose other end a parent process holds. When that process is gone, however it went,
            the event is set too: nothing is left running.
    """
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
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
            task.cancel()
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
    if lifeline is not None:
        loop.add_reader(lifeline, on_orphaned)
    try:
        yield stop
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)
        if lifeline is not None:
            loop.remove_reader(lifeline)
