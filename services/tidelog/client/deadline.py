"""How long a call may still wait, by the monotonic clock."""

from __future__ import annotations

import time


class Deadline:
    """The end of a wait; it moves when there is progress."""

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self.renew()

    def renew(self) -> None:
        """Start the time again."""
        self._end = time.monotonic() + self._timeout

    @property
    def left(self) -> float:
        """Seconds, 0 when it has passed."""
        return max(0.0, self._end - time.monotonic())
