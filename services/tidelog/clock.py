"""The wall clock, for what is written down. Waits are measured by the monotonic one."""

from __future__ import annotations

import time
from collections.abc import Callable

from tidelog_events.instants import Instant

Clock = Callable[[], Instant]


def wall_clock() -> Instant:
    """This host's clock, in the unit of events."""
    return Instant(time.time_ns() // 1_000)
