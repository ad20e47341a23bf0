"""The instances of a schedule: the jobs that its ticks and its triggers mint."""

from __future__ import annotations

from tidelog.core.decision import Decision
from tidelog_events.identity import JobId
from tidelog_events.instants import Instant
from tidelog_events.schedule_record import ScheduleRecord
from tidelog_events.states import DependencyMode, JobState
from tidelog_events.transitions import Enqueued


def mint(
    decision: Decision, schedule: ScheduleRecord, job_id: JobId, due_time: Instant, actor: str | None = None
) -> None:
    """Bear a job as the schedule defines it, under an id that is not in use."""
    decision.emit(
        Enqueued(
            **decision.event_fields(),
            actor=actor,
            job_id=job_id,
            queue=schedule.queue,
            wire_name=schedule.wire_name,
            ordinal=0,
            state=JobState.SCHEDULED,
            attempt=0,
            payload=schedule.payload,
            due_time=due_time,
            parents=(),
            mode=DependencyMode.ON_SUCCESS,
            parents_remaining=0,
            tags=schedule.tags,
            retry=schedule.retry,
            trace_context=None,
            workflow_id=None,
            schedule_id=schedule.schedule_id,
            terminal_at=None,
            terminal_cause=None,
        )
    )
    decision.touch(schedule.queue)
