"""Times and durations: contract sections 1 and 3 (Numbers)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog_events.instants import (
    FIRST_INSTANT,
    LAST_INSTANT,
    Instant,
    Micros,
    NotAnInstant,
    format_instant,
    from_datetime,
    from_seconds,
    later,
    parse_instant,
    to_datetime,
    to_seconds,
)

instants = st.integers(FIRST_INSTANT, LAST_INSTANT).map(Instant)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("2026-01-31T09:00:00Z", "2026-01-31T09:00:00Z"),
        ("2026-01-31t09:00:00z", "2026-01-31T09:00:00Z"),
        ("2026-01-31T09:00:00+00:00", "2026-01-31T09:00:00Z"),
        ("2026-01-31T09:00:00-00:00", "2026-01-31T09:00:00Z"),
        ("2026-01-31T09:00:00+05:30", "2026-01-31T03:30:00Z"),
        ("2026-01-31T20:00:00-08:00", "2026-02-01T04:00:00Z"),
        ("2026-01-31T00:00:00+23:59", "2026-01-30T00:01:00Z"),
        ("2026-01-31T09:00:00.5Z", "2026-01-31T09:00:00.500000Z"),
        ("2026-01-31T09:00:00.000001Z", "2026-01-31T09:00:00.000001Z"),
        ("2026-01-31T09:00:00.000000Z", "2026-01-31T09:00:00Z"),
        ("2026-01-31T23:59:59.999999Z", "2026-01-31T23:59:59.999999Z"),
        ("2024-02-29T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("2000-02-29T00:00:00Z", "2000-02-29T00:00:00Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
        ("9999-12-31T23:59:59.999999Z", "9999-12-31T23:59:59.999999Z"),
        ("1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59.999999Z"),
    ],
)
def test_any_offset_is_read_and_utc_is_written(text: str, written: str) -> None:
    assert format_instant(parse_instant(text)) == written


@pytest.mark.parametrize(
    "text",
    [
        "2026-01-31T09:00:00",  # no offset: a guess
        "2026-01-31",
        "2026-01-31T09:00Z",
        "2026-01-31 09:00:00Z",
        "2026-01-31T09:00:00.1234567Z",  # seven fraction digits
        "2026-01-31T09:00:00.Z",
        "2026-01-31T09:00:00,5Z",
        "2026-01-31T24:00:00Z",
        "2026-01-31T23:60:00Z",
        "2026-12-31T23:59:60Z",  # a leap second has no instant here
        "2026-01-31T09:00:00+24:00",
        "2026-01-31T09:00:00+0100",
        "2026-01-31T09:00:00+01",
        "2026-02-29T00:00:00Z",  # no leap year
        "1900-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "0000-01-01T00:00:00Z",
        "0001-01-01T00:00:00+00:01",  # before the first year
        "9999-12-31T23:59:59-00:01",  # after the last one
        "20260131T090000Z",
        "2026-W05-6T09:00:00Z",
        " 2026-01-31T09:00:00Z",
        "2026-01-31T09:00:00Z\n",
        "\uff12\uff10\uff12\uff16-01-31T09:00:00Z",
        "1769850000",
        "",
    ],
)
def test_nothing_is_guessed(text: str) -> None:
    with pytest.raises(NotAnInstant):
        parse_instant(text)


@given(instants)
def test_what_is_written_is_read_back(instant: Instant) -> None:
    assert parse_instant(format_instant(instant)) == instant


@given(instants)
def test_datetimes_there_and_back(instant: Instant) -> None:
    assert from_datetime(to_datetime(instant)) == instant


@given(st.datetimes(), st.integers(-1439, 1439))
def test_python_writes_what_is_read(local: datetime, minutes: int) -> None:
    moment = local.replace(tzinfo=timezone(timedelta(minutes=minutes)))
    try:
        instant = from_datetime(moment)
    except NotAnInstant:
        with pytest.raises(NotAnInstant):
            parse_instant(moment.isoformat())
    else:
        assert parse_instant(moment.isoformat()) == instant


def test_a_datetime_without_a_zone_is_a_guess() -> None:
    with pytest.raises(NotAnInstant, match="no time zone"):
        from_datetime(datetime(2026, 1, 31, 9))  # noqa: DTZ001  the subject of the test


def test_a_datetime_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(NotAnInstant, match="outside the years"):
        from_datetime(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1))))


def test_a_delay_beyond_the_calendar_ends_at_its_last_instant() -> None:
    assert later(LAST_INSTANT, Micros(1)) == LAST_INSTANT
    assert later(Instant(0), Micros(5)) == 5
    assert to_datetime(LAST_INSTANT) == datetime.max.replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "micros"),
    [
        (0, 0),
        (1, 1_000_000),
        (0.5, 500_000),
        (0.000001, 1),
        (0.0000014, 1),
        (0.0000016, 2),
        (1_000_000_000, 10**15),
        (999_999_999.999999, 10**15 - 1),
    ],
)
def test_seconds_are_rounded_to_the_microsecond(seconds: float, micros: int) -> None:
    assert from_seconds(seconds) == micros


@given(st.integers(0, 10**15).map(Micros))
def test_durations_there_and_back(micros: Micros) -> None:
    assert from_seconds(to_seconds(micros)) == micros


def test_whole_seconds_are_written_without_a_fraction() -> None:
    assert repr(to_seconds(Micros(5_000_000))) == "5"
    assert repr(to_seconds(Micros(1_500_000))) == "1.5"
