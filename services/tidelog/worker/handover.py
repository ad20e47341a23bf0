"""Calls handed from any thread to an event loop, with one wake-up for many.

To wake a loop is a write to a socket and a switch of threads; when hundreds of jobs start or end at once,
that would cost more than all else that the worker does for them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable


class LoopCalls:
    """Runs calls on an event loop, in the order in which they were handed over. Calls must not raise.

    It takes no lock, so that a signal handler may use it. Two threads may both wake the loop; once too often
    is harmless, and never is impossible: `_run` lowers the flag before it takes the calls.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._calls: deque[Callable[[], None]] = deque()
        self._is_awake = False

    def hand_over(self, call: Callable[[], None]) -> bool:
        """Run the call on the loop soon. False when the loop is closed, and it will never run."""
        self._calls.append(call)
        if not self._is_awake:
            self._is_awake = True
            try:
                self._loop.call_soon_threadsafe(self._run)
            except RuntimeError:  # the loop is closed
                self._is_awake = False
                return False
        return True

    def _run(self) -> None:
        self._is_awake = False
        while self._calls:
            self._calls.popleft()()
