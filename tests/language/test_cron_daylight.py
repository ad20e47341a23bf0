"""Cron where clocks change: as Debian's cron has it, with five fields and with six (contract section 3)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from tidelog_events.cron import BUNDLED, Cron, read_cron
from tidelog_events.instants import SECOND, Instant, format_instant, from_datetime, parse_instant
from tidelog_events.zones import DAY, Seconds, Shift

HOUR = 3_600


def fires(cron: Cron, after: str, count: int) -> list[str]:
    """So many times in a row, without the seconds when there are none."""
    times: list[str] = []
    instant: Instant | None = parse_instant(after)
    while len(times) < count:
        assert instant is not None
        instant = cron.next_after(instant)
        times.append("never" if instant is None else format_instant(instant).removesuffix(":00Z"))
    return times


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        pytest.param(
            "30 2 * * *",
            "America/New_York",
            "2027-03-13T03:00:00-05:00",
            ["2027-03-14T07:00", "2027-03-15T06:30", "2027-03-16T06:30"],
            id="a skipped time runs at the first instant after the gap",
        ),
        pytest.param(
            "30 1 * * *",
            "America/New_York",
            "2026-10-31T12:00:00-04:00",
            ["2026-11-01T05:30", "2026-11-02T06:30", "2026-11-03T06:30"],
            id="a repeated time runs in the first pass",
        ),
        pytest.param(
            "0 * * * *",
            "America/New_York",
            "2026-11-01T00:30:00-04:00",
            ["2026-11-01T05:00", "2026-11-01T06:00", "2026-11-01T07:00", "2026-11-01T08:00"],
            id="a star hour runs in both passes",
        ),
        pytest.param(
            "0 * * * *",
            "America/Los_Angeles",
            "2026-11-01T07:30:00Z",
            ["2026-11-01T08:00", "2026-11-01T09:00", "2026-11-01T10:00", "2026-11-01T11:00"],
            id="nor does it miss the hour after",
        ),
        pytest.param(
            "*/30 * * * *",
            "America/New_York",
            "2027-03-14T01:10:00-05:00",
            ["2027-03-14T06:30", "2027-03-14T07:00", "2027-03-14T07:30", "2027-03-14T08:00"],
            id="a star minute passes over the gap",
        ),
        pytest.param(
            "30 2 * * *",
            "Europe/London",
            "2026-10-24T12:00:00+01:00",
            ["2026-10-25T02:30", "2026-10-26T02:30"],
            id="London repeats the hour before",
        ),
        pytest.param(
            "15 1 * * *",
            "Europe/London",
            "2027-03-27T12:00:00Z",
            ["2027-03-28T01:00", "2027-03-29T00:15", "2027-03-30T00:15"],
            id="London skips one o'clock",
        ),
        pytest.param(
            "0 0 * * *",
            "Africa/Cairo",
            "2026-04-22T12:00:00+02:00",
            ["2026-04-22T22:00", "2026-04-23T22:00", "2026-04-24T21:00"],
            id="a gap at midnight",
        ),
        pytest.param(
            "30 0 * * *",
            "America/Havana",
            "2024-11-02T12:00:00-04:00",
            ["2024-11-03T04:30", "2024-11-04T05:30"],
            id="the same date twice",
        ),
        pytest.param(
            "15 2 * * *",
            "Australia/Lord_Howe",
            "2026-10-03T12:00:00+10:30",
            ["2026-10-03T15:30", "2026-10-04T15:15"],
            id="half an hour forward",
        ),
        pytest.param(
            "45 1 * * *",
            "Australia/Lord_Howe",
            "2026-04-03T12:00:00Z",
            ["2026-04-03T14:45", "2026-04-04T14:45", "2026-04-05T15:15"],
            id="half an hour back",
        ),
        pytest.param(
            "30 2 * * *",
            "Africa/Casablanca",
            "2026-02-14T12:00:00+01:00",
            ["2026-02-15T01:30", "2026-02-16T02:30"],
            id="back in February",
        ),
        pytest.param(
            "5,10 2 * * *",
            "Europe/Berlin",
            "2026-10-24T23:00:00Z",
            ["2026-10-25T00:05", "2026-10-25T00:10", "2026-10-26T01:05"],
            id="none again all through the repeated hour",
        ),
        pytest.param(
            "0,15,30 2 * * *",
            "America/New_York",
            "2027-03-14T06:59:00Z",
            ["2027-03-14T07:00", "2027-03-15T06:00", "2027-03-15T06:15"],
            id="several skipped times come to one run",
        ),
        pytest.param(
            "0,30 2,3 * * *",
            "America/New_York",
            "2027-03-14T06:59:00Z",
            ["2027-03-14T07:00", "2027-03-14T07:30", "2027-03-15T06:00"],
            id="a skipped time and one just after the gap come to one run",
        ),
        pytest.param(
            "0 1/1 * * *",
            "America/New_York",
            "2026-11-01T04:30:00Z",
            ["2026-11-01T05:00", "2026-11-01T07:00"],
            id="fixed-time is told by the stars alone",
        ),
        pytest.param(
            "30 * * * *",
            "Europe/Helsinki",
            "2017-10-29T01:30:00Z",
            ["2017-10-29T02:30", "2017-10-29T03:30"],
            id="from within the second pass",
        ),
        pytest.param(
            "20 0 * * *",
            "Antarctica/Casey",
            "2010-03-04T00:00:00Z",
            ["2010-03-04T13:20", "2010-03-05T16:20"],
            id="three hours back are still a change of clocks",
        ),
        pytest.param(  # Debian's cron counts a minute more, and takes just this one for a correction
            "15 0 * * *",
            "Antarctica/Casey",
            "2016-10-21T00:00:00Z",
            ["2016-10-21T16:00", "2016-10-22T13:15"],
            id="three hours forward too",
        ),
        pytest.param(
            "0 12 30 12 *",
            "Pacific/Apia",
            "2011-01-14T00:00:00Z",
            ["2012-12-29T22:00"],
            id="a day that was dropped is a correction",
        ),
        pytest.param(
            "0 12 18,19 10 *",
            "America/Juneau",
            "1867-10-17T00:00:00Z",
            ["1867-10-17T20:57:41Z", "1867-10-18T20:57:41Z", "1867-10-19T20:57:41Z"],
            id="and so is a day that came twice",
        ),
    ],
)
def test_five_fields(expression: str, zone: str, after: str, expected: list[str]) -> None:
    assert fires(read_cron(expression, zone), after, len(expected)) == expected


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        pytest.param(
            "30 30 2 * * *",
            "America/New_York",
            "2027-03-13T12:00:00Z",
            ["2027-03-14T07:00", "2027-03-15T06:30:30Z"],
            id="a skipped time runs at the first instant after the gap",
        ),
        pytest.param(
            "*/30 */20 2 * * *",
            "America/New_York",
            "2027-03-14T06:59:00Z",
            ["2027-03-15T06:00", "2027-03-15T06:00:30Z"],
            id="a star minute passes over the gap",
        ),
        pytest.param(
            "* 30 2 * * *",
            "America/New_York",
            "2027-03-14T06:59:00Z",
            ["2027-03-14T07:00", "2027-03-15T06:30", "2027-03-15T06:30:01Z"],
            id="a star second makes no wildcard",
        ),
        pytest.param(
            "*/30 59 1 * * *",
            "America/New_York",
            "2026-11-01T05:00:00Z",
            ["2026-11-01T05:59", "2026-11-01T05:59:30Z", "2026-11-02T06:59"],
            id="a repeated time runs in the first pass",
        ),
        pytest.param(
            "10 0 * * * *",
            "America/New_York",
            "2026-11-01T04:30:00Z",
            ["2026-11-01T05:00:10Z", "2026-11-01T06:00:10Z", "2026-11-01T07:00:10Z"],
            id="a star hour runs in both passes",
        ),
    ],
)
def test_six_fields(expression: str, zone: str, after: str, expected: list[str]) -> None:
    assert fires(read_cron(expression, zone), after, len(expected)) == expected


def test_a_thousand_in_a_row_over_each_change_of_a_decade() -> None:
    cron = read_cron("30 * * * *", "Europe/Helsinki")
    helsinki = BUNDLED.zone("Europe/Helsinki")
    for shift in helsinki.shifts(seconds("2020-01-01T00:00:00Z"), seconds("2030-01-01T00:00:00Z")):
        instant = Instant((shift.at - 20 * DAY) * SECOND + 30 * 60 * SECOND)
        for _ in range(1_000):
            expected = Instant(instant - instant % (HOUR * SECOND) + HOUR * SECOND + 30 * 60 * SECOND)
            assert cron.next_after(instant) == expected
            instant = expected


ZONES = (
    "America/New_York",
    "Europe/Berlin",
    "Africa/Cairo",
    "America/Havana",
    "Australia/Lord_Howe",
    "Africa/Casablanca",
    "America/Sao_Paulo",
    "Antarctica/Troll",
    "Pacific/Chatham",
    "Asia/Gaza",
)


def seconds(text: str) -> Seconds:
    return Seconds(parse_instant(text) // SECOND)


SHIFTS = [
    (zone, shift)
    for zone in ZONES
    for shift in BUNDLED.zone(zone).shifts(seconds("2005-01-01T00:00:00Z"), seconds("2031-01-01T00:00:00Z"))
]
MINUTES = st.sampled_from(["*", "*/20", "0", "5,30", "15-45/15", "59", "0/7"])
HOURS = st.sampled_from(["*", "*/2", "0", "1", "2", "3", "0-3", "1,2", "23,0", "23/1", "0/1"])
DAYS = st.sampled_from(["*", "*", "*/2", "1-15"])
WEEKDAYS = st.sampled_from(["*", "*", "SUN", "6-7"])


def names(expression: str, wall: datetime) -> bool:
    """Whether an expression names a time on the wall, by cronsim alone."""
    return next(CronSim(expression, wall - timedelta(minutes=1))) == wall


def minute_by_minute(expression: str, zone: str, first: datetime, minutes: int) -> list[datetime]:
    """What Debian's cron does: look at the wall clock each minute, and where it leaps see what was missed."""
    minute_field, hour_field = expression.split()[:2]
    is_fixed = not minute_field.startswith("*") and not hour_field.startswith("*")
    found: list[datetime] = []
    for number in range(minutes):
        now = first + timedelta(minutes=number)
        on_the_wall = now.astimezone(ZoneInfo(zone))
        wall = on_the_wall.replace(tzinfo=None, fold=0)
        before = (now - timedelta(minutes=1)).astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
        walls = [wall]
        if is_fixed and on_the_wall.fold:
            walls = []
        elif is_fixed:
            skipped = (wall - before) // timedelta(minutes=1) - 1
            walls.extend(wall - timedelta(minutes=back) for back in range(1, skipped + 1))
        if any(names(expression, one) for one in walls):
            found.append(now)
    return found


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(SHIFTS), MINUTES, HOURS, DAYS, WEEKDAYS)
def test_as_a_cron_that_looks_each_minute(
    change: tuple[str, Shift], minute: str, hour: str, day: str, weekday: str
) -> None:
    zone, shift = change
    expression = f"{minute} {hour} {day} * {weekday}"
    first = datetime.fromtimestamp(shift.at - 4 * HOUR, UTC)
    minutes = 9 * 60
    expected = [from_datetime(at) for at in minute_by_minute(expression, zone, first, minutes)]
    cron = read_cron(expression, zone)
    after = Instant(from_datetime(first) - 1)
    until = Instant(from_datetime(first) + (minutes - 1) * 60 * SECOND)

    assert cron.newest(after, until, 1_000) == expected
    assert cron.count(after, until) == len(expected)
    assert [cron.next_after(Instant(at - 1)) for at in expected] == expected
