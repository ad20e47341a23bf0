"""The schedules of a partition: their definitions, when they are due, and their instances."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final, TypeAlias

from tidelog_events.cron import BUNDLED, Cron, ZoneDatabase, read_cron
from tidelog_events.identity import CommandId, JobId, ScheduleId
from tidelog_events.instants import Instant
from tidelog_events.record import JobRecord
from tidelog_events.schedule_record import ScheduleRecord

Tick: TypeAlias = tuple[Instant, ScheduleId]

# A heap is swept when most of its entries no longer count, and not for a handful.
_SWEEP_FLOOR: Final = 64
_TRIGGER_MARK: Final = "@trigger-"


def trigger_job_id(schedule_id: ScheduleId, name: str) -> JobId:
    """The id of a triggered instance (contract section 3, Schedules)."""
    return JobId(f"{schedule_id}{_TRIGGER_MARK}{name}")


def _is_triggered(job_id: JobId, schedule_id: ScheduleId) -> bool:
    return job_id.startswith(f"{schedule_id}{_TRIGGER_MARK}")


@dataclass(slots=True)
class Timetable:
    """What a partition knows of its schedules.

    Attributes:
        zones: the time zones by which ticks are computed.
        release: that of the zones by which every `next_due` was computed; another one than that of `zones`
            after a change of releases, until all are computed anew.
        schedules: by id.
        live: how many instances of a schedule have not ended, also of schedules that are gone.
        triggered: the instances that commands asked for, by schedule and command.
        dirty: what changed since the changelog was last written, in order.
    """

    zones: ZoneDatabase = BUNDLED
    release: str | None = BUNDLED.release
    schedules: dict[ScheduleId, ScheduleRecord] = field(default_factory=dict)
    live: dict[ScheduleId, int] = field(default_factory=dict)
    triggered: dict[tuple[ScheduleId, CommandId], JobId] = field(default_factory=dict)
    dirty: dict[ScheduleId, None] = field(default_factory=dict)
    _ticks: list[Tick] = field(default_factory=list)
    _next_turn: ScheduleId | None = None

    @property
    def is_outdated(self) -> bool:
        """Whether the next ticks were computed with another release of the zones."""
        return self.release != self.zones.release

    def cron_of(self, schedule: ScheduleRecord) -> Cron:
        """When a schedule fires. Raises `NotACron` or `UnknownZone` for one that no longer can."""
        return read_cron(schedule.cron, schedule.time_zone, self.zones)

    def index(self, schedule: ScheduleRecord) -> None:
        """Let a schedule be found when its next tick is due."""
        if schedule.next_due is None:
            return
        heappush(self._ticks, (schedule.next_due, schedule.schedule_id))
        if len(self._ticks) > 2 * len(self.schedules) + _SWEEP_FLOOR:
            self._ticks = [
                (other.next_due, schedule_id)
                for schedule_id, other in self.schedules.items()
                if other.next_due is not None
            ]
            heapify(self._ticks)

    def _is_next(self, tick: Tick) -> bool:
        schedule = self.schedules.get(tick[1])
        return schedule is not None and schedule.next_due == tick[0]

    def next_timer(self, now: Instant) -> Instant | None:
        """The earliest instant at which a schedule may be due."""
        if self.is_outdated:
            return now
        return self._ticks[0][0] if self._ticks else None

    def put_off(self, schedule: ScheduleRecord) -> None:
        """Leave one that was taken out as due to the next decision, which begins with the first such."""
        if self._next_turn is None:
            self._next_turn = schedule.schedule_id
        self.index(schedule)

    def due(self, now: Instant) -> list[ScheduleRecord]:
        """Take out the schedules that are due, by id, or by id from the one on that was put off."""
        due: dict[ScheduleId, ScheduleRecord] = {}
        while self._ticks and self._ticks[0][0] <= now:
            tick = heappop(self._ticks)
            if self._is_next(tick):
                due[tick[1]] = self.schedules[tick[1]]
        by_id = sorted(due)
        if self._next_turn is not None:
            turn = bisect_left(by_id, self._next_turn)
            by_id = by_id[turn:] + by_id[:turn]
            self._next_turn = None
        return [due[schedule_id] for schedule_id in by_id]

    def note_birth(self, job: JobRecord, schedule_id: ScheduleId, command_id: CommandId | None) -> None:
        """A job of a schedule is there."""
        if not job.state.is_terminal:
            self._count(schedule_id, 1)
        if command_id is not None and _is_triggered(job.job_id, schedule_id):
            self.triggered[schedule_id, command_id] = job.job_id

    def note_step(self, schedule_id: ScheduleId, *, was_ended: bool, is_ended: bool) -> None:
        """A job of a schedule has taken a step."""
        if was_ended is not is_ended:
            self._count(schedule_id, -1 if is_ended else 1)

    def note_purge(self, job: JobRecord, schedule_id: ScheduleId, command_id: CommandId | None) -> None:
        """A job of a schedule that has ended is forgotten."""
        if command_id is not None and self.triggered.get((schedule_id, command_id)) == job.job_id:
            del self.triggered[schedule_id, command_id]

    def _count(self, schedule_id: ScheduleId, change: int) -> None:
        count = self.live.get(schedule_id, 0) + change
        if count:
            self.live[schedule_id] = count
        else:
            self.live.pop(schedule_id, None)
