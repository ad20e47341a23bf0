"""How much of a job's history the projection keeps (contract section 11, `TIDELOG_HISTORY`)."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum

from tidelog_events.transitions import DeadLettered, JobTransition, RetryScheduled


class History(StrEnum):
    """What the projection keeps of a job's history; the log keeps all of it in any case."""

    OFF = "off"
    """Nothing but the job itself."""
    TRANSITIONS = "transitions"
    """Its transitions, without failure details."""
    DETAIL = "detail"
    """Its transitions, and the failure details."""

    def kept(self, event: JobTransition) -> JobTransition | None:
        """The event as a row is to show it; None when there is to be no row."""
        match self:
            case History.OFF:
                return None
            case History.TRANSITIONS if isinstance(event, RetryScheduled | DeadLettered):
                return replace(event, failure_detail=None)
            case _:
                return event
