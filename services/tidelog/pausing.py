"""Waiting for a while, but not longer than until a stop is asked for."""

from __future__ import annotations

import asyncio


async def pause(stop: asyncio.Event, seconds: float) -> None:
    """Return after so many seconds, or as soon as `stop` is set."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return


class Backoff:
    """The pauses between the tries of something that is away: each twice as long as the last one.

    Args:
        first: the first pause, in seconds.
        longest: none is longer.

    Attributes:
        seconds: the length of the next one.
    """

    def __init__(self, first: float = 0.1, longest: float = 5.0) -> None:
        self._first = first
        self._longest = longest
        self.seconds = first

    async def pause(self, stop: asyncio.Event) -> None:
        """Wait for the next try, or until `stop` is set."""
        seconds, self.seconds = self.seconds, min(self.seconds * 2, self._longest)
        await pause(stop, seconds)

    def reset(self) -> None:
        """It worked: the next pause is the first one again."""
        self.seconds = self._first
