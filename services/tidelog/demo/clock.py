"""The schedule of the demonstration: it ticks every second, and is removed after a few ticks."""

from __future__ import annotations

import asyncio
import time
from typing import Final

from tidelog.cli.exits import Unreachable
from tidelog.demo import findings
from tidelog.demo.jobs import EVERY_SECOND
from tidelog.demo.plan import OPERATOR
from tidelog.demo.stage import Stage
from tidelog_events.identity import JobId
from tidelog_events.instants import SECOND, Instant, format_basic

_TICKS: Final = 2
_PATIENCE_SECONDS: Final = 30.0
_LOOK_SECONDS: Final = 0.1


async def stop_clock(stage: Stage) -> list[JobId]:
    """Wait for its first ticks, remove the schedule, and return the jobs that it must have enqueued.

    These are worked out from when it was put and removed, by whom the audit says, and not by its own code.

    Raises:
        Unreachable: nothing of it is seen for half a minute.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while await findings.count_instances(stage.projection, EVERY_SECOND.schedule_id) < _TICKS:
        await _look_again(stage, deadline)
    await stage.client.remove_schedule(EVERY_SECOND.schedule_id, actor=OPERATOR, timeout=_PATIENCE_SECONDS)
    while (life := await findings.life_of(stage.projection, EVERY_SECOND.schedule_id)) is None:
        await _look_again(stage, deadline)
    return ticks_between(*life)


def ticks_between(put_at: Instant, removed_at: Instant) -> list[JobId]:
    """The jobs of the full seconds after the first instant, up to and with the second one."""
    seconds = range(put_at // SECOND + 1, removed_at // SECOND + 1)
    return [
        JobId(f"{EVERY_SECOND.schedule_id}@{format_basic(Instant(second * SECOND))}") for second in seconds
    ]


async def _look_again(stage: Stage, deadline: float) -> None:
    if time.monotonic() > deadline:
        raise Unreachable(
            f"Postgres does not show within {_PATIENCE_SECONDS:.0f} s that {EVERY_SECOND.schedule_id} ticks "
            f"and is removed. {stage.last_words()}"
        )
    await asyncio.sleep(_LOOK_SECONDS)
