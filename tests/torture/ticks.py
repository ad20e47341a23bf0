"""The audit of schedules: every tick is minted or skipped, once, whoever was killed meanwhile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from tests.torture.lives import Problem

from tidelog_events.identity import JobId, ScheduleId
from tidelog_events.instants import SECOND, Instant, from_datetime
from tidelog_events.transitions import ScheduleFact, SchedulePut, ScheduleTicked, Transition


def problems_of_ticks(events: Sequence[Transition]) -> Iterator[Problem]:
    """What is wrong with the ticks of the schedules of one partition; all of them tick every second."""
    next_due: dict[ScheduleId, Instant] = {}
    for event in events:
        match event:
            case SchedulePut(next_due=due) if due is not None:
                next_due[event.schedule_id] = due
            case ScheduleTicked(next_due=due) if due is not None:
                yield from _problems_of_a_step(event, next_due[event.schedule_id], due)
                next_due[event.schedule_id] = due
            case ScheduleFact(schedule_id=schedule_id):
                next_due.pop(schedule_id, None)


def minted_by(events: Sequence[Transition]) -> list[JobId]:
    """The jobs that ticks have minted, in order."""
    return [job_id for event in events if isinstance(event, ScheduleTicked) for job_id in event.minted]


def _problems_of_a_step(event: ScheduleTicked, first: Instant, after: Instant) -> Iterator[Problem]:
    """From the tick that was due to the one that is due now, and every second has its tick."""
    where = f"{event.schedule_id}, event {event.partition}:{event.sequence}"
    minted = [_tick_of(job_id) for job_id in event.minted]
    named = [*minted, *event.skipped]
    due = (after - first) // SECOND
    if len(minted) + event.skipped_count != due:
        yield (f"{where}: {due} ticks were due, {len(minted)} were minted and {event.skipped_count} skipped")
    if len(set(named)) != len(named):
        yield f"{where}: a tick was settled twice"
    if any(not first <= tick < after or tick % SECOND for tick in named):
        yield f"{where}: a tick was settled that was not due"


def _tick_of(job_id: JobId) -> Instant:
    written = job_id.rpartition("@")[2]
    return from_datetime(datetime.strptime(written, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC))
