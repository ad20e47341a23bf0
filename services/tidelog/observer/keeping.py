"""Keeping an observer going: a fault of Tidelog in one of them ends neither the process nor another one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tidelog.pausing import pause

if TYPE_CHECKING:
    from tidelog.observer.observer import Observer

_logger: Final = logging.getLogger("tidelog.observer")

_PAUSE_SECONDS: Final = 5.0


async def keep_observing(
    observer_id: str,
    make: Callable[[], Observer],
    stop: asyncio.Event,
    *,
    pause_seconds: float = _PAUSE_SECONDS,
) -> None:
    """Run an observer until `stop` is set; after a failure that is not the log's, run a new one.

    What it had not committed is delivered again, so nothing is lost by that.
    """
    while not stop.is_set():
        try:
            await make().run(stop)
        except Exception:
            _logger.exception(
                "observer %s has failed, and is started again in %.0f s", observer_id, pause_seconds
            )
            await pause(stop, pause_seconds)
