"""Schedules over restarts and other releases of the time zones (contract section 3, Schedules)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.core.playing import put_schedule, remove_schedule, trigger

from tidelog.core.changelog import InputPositions, position_change, restore, take_changes
from tidelog.core.decide import decide, fire_timers
from tidelog.core.decision import Decision
from tidelog.core.state import PartitionState, Retention
from tidelog_events.cron import BUNDLED, ZoneDatabase
from tidelog_events.identity import Partition, ScheduleId
from tidelog_events.instants import Instant, format_instant, parse_instant
from tidelog_events.parsing import parse_command
from tidelog_events.transitions import ScheduleRecomputed, ScheduleTicked, Transition
from tidelog_events.wire import WireObject

NOON = parse_instant("2026-06-01T12:00:00Z")
BERLIN = ScheduleId("q/berlin")
CITY = ScheduleId("q/city")
MOVED = ZoneDatabase("later", {**BUNDLED.keys, "Europe/Berlin": "Europe/London"})
WITHOUT = ZoneDatabase("later", {name: key for name, key in BUNDLED.keys.items() if name != "Europe/Berlin"})


class Kept:
    """A partition, what was written down of it, and the restarts that it survives."""

    def __init__(self) -> None:
        self.entries: dict[str, bytes] = {}
        self.state = PartitionState(Partition(0), 1)

    def do(self, at: Instant, *commands: WireObject) -> list[Transition]:
        found = self._events(fire_timers(self.state, at))
        for command in commands:
            found += self._events(decide(self.state, parse_command(command), at, (0,)))
        self.write()
        return found

    def write(self) -> None:
        for change in (*take_changes(self.state), position_change(self.state, InputPositions(0, 0))):
            if change.value is None:
                self.entries.pop(change.key, None)
            else:
                self.entries[change.key] = change.value

    def restart(self, zones: ZoneDatabase = BUNDLED) -> None:
        self.state = restore(self.entries.items(), Partition(0), 1, Retention(), zones).state

    def next_due(self, schedule_id: ScheduleId) -> str | None:
        instant = self.state.timetable.schedules[schedule_id].next_due
        return None if instant is None else format_instant(instant)

    @staticmethod
    def _events(decision: Decision) -> list[Transition]:
        return [output for output in decision.outputs if isinstance(output, Transition)]


@pytest.fixture
def kept() -> Kept:
    kept = Kept()
    kept.do(
        NOON,
        put_schedule(BERLIN, "0 3 * * *", time_zone="Europe/Berlin", payload={"a": [1, "é"]}, tags=["t"]),
        put_schedule(CITY, "0 4 * * *", time_zone="Europe/Paris", catch_up="Coalesce", no_overlap=True),
    )
    return kept


def hours(count: float) -> Instant:
    return Instant(NOON + round(count * 3_600_000_000))


def test_a_restart_forgets_nothing(kept: Kept) -> None:
    kept.do(hours(1), trigger(CITY, command_id="no key"))
    before = kept.state.timetable
    kept.restart()

    assert kept.state.timetable.schedules == before.schedules
    assert (kept.state.timetable.live, kept.state.timetable.triggered) == (before.live, before.triggered)
    assert kept.do(hours(2), trigger(CITY, command_id="no key")) == []
    assert [event.TYPE for event in kept.do(hours(13))] == ["schedule_ticked", "enqueued"]
    skipped = kept.do(hours(14))
    assert [event.skipped_count for event in skipped if isinstance(event, ScheduleTicked)] == [1]


def test_the_entry_of_a_schedule_goes_with_it(kept: Kept) -> None:
    assert set(kept.entries) == {"%q/berlin", "%q/city", "@position"}
    kept.do(hours(1), remove_schedule(CITY))
    assert set(kept.entries) == {"%q/berlin", "@position"}


def test_with_the_same_release_nothing_is_computed_anew(kept: Kept) -> None:
    kept.restart()

    assert kept.state.next_timer() == parse_instant("2026-06-02T01:00:00Z")
    assert kept.do(hours(1)) == []


def test_another_release_moves_the_next_tick_and_says_so(kept: Kept) -> None:
    kept.restart(MOVED)
    due = kept.state.next_timer()
    assert due is not None
    assert due <= hours(0)
    (recomputed,) = kept.do(hours(1))

    assert isinstance(recomputed, ScheduleRecomputed)
    assert recomputed.schedule_id == BERLIN
    assert recomputed.next_due == parse_instant("2026-06-02T02:00:00Z")
    assert recomputed.error is None
    kept.restart(MOVED)
    assert kept.next_due(BERLIN) == "2026-06-02T02:00:00Z"
    assert kept.do(hours(2)) == []


def test_what_the_first_writing_after_a_restart_says_is_not_that_all_is_computed(kept: Kept) -> None:
    """An engine writes its position before the first timer fires, and may die right after."""
    kept.restart(MOVED)
    kept.write()
    kept.restart(MOVED)

    assert len(kept.do(hours(1))) == 1


def test_a_tick_that_was_settled_does_not_come_again_an_hour_later(kept: Kept) -> None:
    ticked = kept.do(parse_instant("2026-06-02T01:00:00Z"))
    assert [event.TYPE for event in ticked] == ["schedule_ticked", "enqueued"]
    kept.restart(MOVED)
    kept.do(parse_instant("2026-06-02T01:30:00Z"))

    # At three o'clock of the new rule nothing was minted yet: it is another instant, and fires.
    assert kept.next_due(BERLIN) == "2026-06-02T02:00:00Z"


def test_a_schedule_whose_zone_is_gone_stays_with_its_error_and_the_others_go_on(kept: Kept) -> None:
    kept.restart(WITHOUT)
    faulty, ticked, _ = kept.do(hours(14))

    assert isinstance(faulty, ScheduleRecomputed)
    assert (faulty.schedule_id, faulty.next_due) == (BERLIN, None)
    assert faulty.error is not None
    assert faulty.error.startswith("time_zone 'Europe/Berlin'")
    assert isinstance(ticked, ScheduleTicked)
    assert ticked.schedule_id == CITY
    kept.restart(WITHOUT)
    assert kept.state.timetable.schedules[BERLIN].error == faulty.error
    assert kept.do(hours(15), trigger(BERLIN, command_id="by-hand"))[1].TYPE == "enqueued"


def test_a_release_that_has_the_zone_again_heals_it(kept: Kept) -> None:
    kept.restart(WITHOUT)
    kept.do(hours(1))
    kept.restart(replace(BUNDLED, release="latest"))
    healed, ticked = kept.do(hours(14))[:2]

    assert isinstance(healed, ScheduleRecomputed)
    assert (healed.next_due, healed.error) == (parse_instant("2026-06-02T01:00:00Z"), None)
    assert isinstance(ticked, ScheduleTicked)
    assert (ticked.schedule_id, ticked.skipped_count) == (BERLIN, 1)


def test_a_new_definition_heals_it(kept: Kept) -> None:
    kept.restart(WITHOUT)
    kept.do(hours(1))
    kept.do(hours(2), put_schedule(BERLIN, "0 3 * * *", time_zone="Europe/Paris"))

    assert kept.state.timetable.schedules[BERLIN].error is None
    assert kept.next_due(BERLIN) == "2026-06-02T01:00:00Z"


def test_an_expression_that_can_no_longer_be_read_is_found_at_its_tick(kept: Kept) -> None:
    kept.state.timetable.schedules[CITY].cron = "what an earlier release took"
    faulty = kept.do(parse_instant("2026-06-02T02:00:00Z"))[-1]

    assert isinstance(faulty, ScheduleRecomputed)
    assert (faulty.schedule_id, faulty.next_due) == (CITY, None)
    assert faulty.error is not None
    assert faulty.error.startswith("cron ")
    assert kept.do(parse_instant("2026-06-02T03:00:00Z")) == []
