"""The ticks of schedules: minted, made up for, or skipped, each once (contract section 3, Schedules).

One decision settles all that a schedule has missed, whatever the length of the outage: the ticks are counted,
not gone through.
"""

from __future__ import annotations

from itertools import chain
from typing import Final

from tidelog.core.decision import Decision
from tidelog.core.instance import mint
from tidelog.core.timetable import Timetable
from tidelog_events.bounds import MAX_LISTED_SKIPS
from tidelog_events.cron import Cron, NotACron, UnknownZone
from tidelog_events.identity import JobId
from tidelog_events.instants import SECOND, Instant, format_basic
from tidelog_events.schedule_record import ScheduleRecord
from tidelog_events.states import CatchUp
from tidelog_events.transitions import ScheduleRecomputed, ScheduleTicked

_LATE: Final = 60 * SECOND
"""A tick that is later than so is missed."""
_TICKS_IN_TIME: Final = _LATE // SECOND + 1
"""As many as there can be that are due by now and not missed."""
_WEIGHT_BYTES: Final = 1_024
"""A schedule, and each job of it, counts once for every so many bytes of the payload and the tags that are
written with it against what one decision may do."""
_BYTES_OF_A_CHARACTER: Final = 4
"""In a tag, at most, but for control characters."""


def tick_schedules(decision: Decision, limit: int) -> None:
    """Settle the schedules that are due, by id; those over the limit come first in the next decision.

    Else those that tick every second would never let the others have their turn when there are too many.
    """
    timetable = decision.state.timetable
    if timetable.is_outdated:
        _compute_anew(decision)
    due = timetable.due(decision.now)
    for schedule in due:
        if limit > 0:
            minted = settle(decision, schedule)
            limit -= (1 + minted) * _weight(schedule)
        else:
            timetable.put_off(schedule)


def _weight(schedule: ScheduleRecord) -> int:
    texts = chain.from_iterable((tag,) if isinstance(tag, str) else tag for tag in schedule.tags)
    size = len(schedule.payload) + _BYTES_OF_A_CHARACTER * sum(map(len, texts))
    return 1 + size // _WEIGHT_BYTES


def settle(decision: Decision, schedule: ScheduleRecord) -> int:
    """Settle the ticks of a schedule up to now, and say how many jobs were minted."""
    timetable = decision.state.timetable
    try:
        cron = timetable.cron_of(schedule)
    except (NotACron, UnknownZone) as error:
        _recompute(decision, schedule, None, _said(error))
        return 0
    settled, now = schedule.settled_until, decision.now
    to_mint = _to_mint(decision, schedule, cron)
    skipped_count = cron.count(settled, now) - len(to_mint)
    newest = cron.newest(settled, now, MAX_LISTED_SKIPS + len(to_mint)) if skipped_count else []
    decision.emit(
        ScheduleTicked(
            **decision.event_fields(),
            schedule_id=schedule.schedule_id,
            queue=schedule.queue,
            minted=tuple(to_mint.values()),
            skipped=tuple([tick for tick in newest if tick not in to_mint][-MAX_LISTED_SKIPS:]),
            skipped_count=skipped_count,
            next_due=cron.next_after(now),
        )
    )
    for tick, job_id in to_mint.items():
        mint(decision, schedule, job_id, tick)
    return len(to_mint)


def _to_mint(decision: Decision, schedule: ScheduleRecord, cron: Cron) -> dict[Instant, JobId]:
    """The ticks to be minted, in order of time, with the ids of their jobs."""
    settled, now = schedule.settled_until, decision.now
    missed_until = Instant(max(now - _LATE - 1, settled))
    candidates = cron.newest(missed_until, now, _TICKS_IN_TIME)
    if schedule.catch_up is CatchUp.COALESCE:
        candidates = [*cron.newest(settled, missed_until, 1), *candidates]
    named = {tick: JobId(f"{schedule.schedule_id}@{format_basic(tick)}") for tick in candidates}
    free = {tick: job_id for tick, job_id in named.items() if not decision.state.is_taken(job_id)}
    if not schedule.no_overlap:
        return free
    if schedule.schedule_id in decision.state.timetable.live:
        return {}
    return dict(list(free.items())[:1])


def _compute_anew(decision: Decision) -> None:
    """Another release of the time zones: look where it moves the next ticks, and which zones are gone."""
    timetable = decision.state.timetable
    for schedule_id in sorted(timetable.schedules):
        schedule = timetable.schedules[schedule_id]
        next_due, error = _next_due(timetable, schedule)
        if (next_due, error) != (schedule.next_due, schedule.error):
            _recompute(decision, schedule, next_due, error)
    timetable.release = timetable.zones.release


def _next_due(timetable: Timetable, schedule: ScheduleRecord) -> tuple[Instant | None, str | None]:
    try:
        next_due = timetable.cron_of(schedule).next_after(schedule.settled_until)
    except (NotACron, UnknownZone) as error:
        return None, _said(error)
    return next_due, None if next_due is not None else "never fires again"


def _said(error: NotACron | UnknownZone) -> str:
    return f"{'cron' if isinstance(error, NotACron) else 'time_zone'} {error}"


def _recompute(
    decision: Decision, schedule: ScheduleRecord, next_due: Instant | None, error: str | None
) -> None:
    decision.emit(
        ScheduleRecomputed(
            **decision.event_fields(),
            schedule_id=schedule.schedule_id,
            queue=schedule.queue,
            next_due=next_due,
            error=error,
        )
    )
