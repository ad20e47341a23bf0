"""A witness of schedules: the log alone tells it which ticks there were, and that each was settled once."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from tests.fold import Folded

from tidelog_events.identity import JobId, ScheduleId
from tidelog_events.instants import SECOND, Instant
from tidelog_events.states import CatchUp
from tidelog_events.transitions import (
    Enqueued,
    ScheduleFact,
    SchedulePut,
    ScheduleRemoved,
    ScheduleTicked,
    ScheduleTriggered,
    Transition,
)

EVERY: dict[str, int] = {
    "*/20 * * * * *": 20,
    "*/30 * * * * *": 30,
    "* * * * *": 60,
    "*/5 * * * *": 300,
}
"""Expressions whose ticks anybody can tell: one each so many seconds of the clock."""

MINUTE = 60 * SECOND


@dataclass(slots=True)
class _Seen:
    put: SchedulePut
    settled_until: Instant

    def ticks(self, until: Instant) -> list[Instant]:
        step = EVERY[self.put.cron] * SECOND
        first = (self.settled_until // step + 1) * step
        return [Instant(tick) for tick in range(first, until + 1, step)]


@dataclass(slots=True)
class ScheduleWitness:
    """Reads the events in their order; every broken promise is an `AssertionError`."""

    schedules: dict[ScheduleId, _Seen] = field(default_factory=dict)
    explained: list[tuple[JobId, Instant]] = field(default_factory=list)

    def see(self, event: Transition, jobs: Collection[Folded]) -> None:
        """Take the next event in; `jobs` are those that were there before it."""
        if self.explained:
            job_id, due_time = self.explained.pop(0)
            assert isinstance(event, Enqueued), "what a tick or a trigger mints follows at once"
            assert (event.job_id, event.due_time) == (job_id, due_time)
            assert event.schedule_id in self.schedules
        if isinstance(event, ScheduleFact):
            self._see_fact(event, jobs)

    def check_after_timers(self, now: Instant) -> None:
        """No tick was forgotten."""
        assert not self.explained
        for seen in self.schedules.values():
            assert not seen.ticks(now), "each tick is settled when it is due"

    def _see_fact(self, event: ScheduleFact, jobs: Collection[Folded]) -> None:
        match event:
            case SchedulePut():
                before = self.schedules.get(event.schedule_id)
                assert before is None or not before.ticks(event.at), "old ticks are settled first"
                self.schedules[event.schedule_id] = _Seen(event, event.at)
                self._check_next_due(event.schedule_id, event.next_due)
            case ScheduleRemoved():
                assert not self.schedules.pop(event.schedule_id).ticks(event.at)
            case ScheduleTriggered():
                assert event.schedule_id in self.schedules
                self.explained.append((event.job_id, event.at))
            case ScheduleTicked():
                self._see_ticks(event, {job.job_id: job for job in jobs})
                self.schedules[event.schedule_id].settled_until = event.at
                self._check_next_due(event.schedule_id, event.next_due)

    def _see_ticks(self, event: ScheduleTicked, jobs: dict[JobId, Folded]) -> None:
        seen = self.schedules[event.schedule_id]
        ticks = seen.ticks(event.at)
        minted = [tick for tick in ticks if _name(event.schedule_id, tick) in event.minted]
        skipped = [tick for tick in ticks if tick not in minted]
        assert ticks, "something was due"
        assert [_name(event.schedule_id, tick) for tick in minted] == list(event.minted)
        assert list(event.skipped) == skipped[-32:], "each tick is minted or skipped"
        assert event.skipped_count == len(skipped)
        late = [tick for tick in ticks if tick < event.at - MINUTE]
        to_mint = [tick for tick in ticks if tick >= event.at - MINUTE]
        if seen.put.catch_up is CatchUp.COALESCE:
            to_mint = late[-1:] + to_mint
        to_mint = [tick for tick in to_mint if _name(event.schedule_id, tick) not in jobs]
        if seen.put.no_overlap:
            living = any(
                job.schedule_id == event.schedule_id and not job.state.is_terminal for job in jobs.values()
            )
            to_mint = [] if living else to_mint[:1]
        assert minted == to_mint
        self.explained.extend((_name(event.schedule_id, tick), tick) for tick in minted)

    def _check_next_due(self, schedule_id: ScheduleId, next_due: Instant | None) -> None:
        assert next_due is not None
        assert self.schedules[schedule_id].ticks(next_due) == [next_due]


def _name(schedule_id: ScheduleId, tick: Instant) -> JobId:
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tick)
    return JobId(f"{schedule_id}@{at:%Y%m%dT%H%M%SZ}")
