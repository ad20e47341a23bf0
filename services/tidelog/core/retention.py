"""Forgetting jobs that have ended (contract section 3, Retention)."""

from __future__ import annotations

from tidelog.core.decision import Decision
from tidelog_events.transitions import Purged


def purge_ended(decision: Decision, limit: int) -> None:
    """Forget ended jobs whose keep time is over and that no living job names; their ids are free again."""
    for job in decision.state.due_purges(decision.now, limit):
        decision.emit(Purged(**decision.event_fields(), job_id=job.job_id, queue=job.queue))
