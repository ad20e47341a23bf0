"""When a cron expression fires, and which ones are refused (contract section 3, Schedules)."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tidelog_events.cron import BUNDLED, Cron, NotACron, UnknownZone, read_cron
from tidelog_events.instants import SECOND, Instant, format_instant, parse_instant


def fires(cron: Cron, after: str, count: int) -> list[str | None]:
    """So many times in a row."""
    times: list[str | None] = []
    instant: Instant | None = parse_instant(after)
    while instant is not None and len(times) < count:
        instant = cron.next_after(instant)
        times.append(None if instant is None else format_instant(instant))
    return times


def in_utc(*times: str) -> list[str]:
    """`2027-03-14T07:00` as an instant is written."""
    return [f"{time}:00Z" if len(time) == 16 else f"{time}T00:00:00Z" for time in times]


@pytest.mark.parametrize(
    ("expression", "zone", "after", "expected"),
    [
        pytest.param(
            "0 0 31 * *",
            "UTC",
            "2027-01-31T00:00:00Z",
            in_utc("2027-03-31", "2027-05-31", "2027-07-31", "2027-08-31"),
            id="no 31st, no run",
        ),
        pytest.param(
            "0 0 13 * 5",
            "UTC",
            "2026-11-01T00:00:00Z",
            in_utc("2026-11-06", "2026-11-13", "2026-11-20", "2026-11-27", "2026-12-04"),
            id="either day field, and both at once",
        ),
        pytest.param(
            "0 0 */2 * 1",
            "UTC",
            "2026-11-01T00:00:00Z",
            in_utc("2026-11-09", "2026-11-23", "2026-12-07"),
            id="both day fields when one starts with a star",
        ),
        pytest.param(
            "*/7 * * * *",
            "UTC",
            "2026-11-29T21:50:00Z",
            in_utc("2026-11-29T21:56", "2026-11-29T22:00", "2026-11-29T22:07", "2026-11-29T22:14"),
            id="steps start again each hour",
        ),
        pytest.param(
            "0 0 * * 5-7",
            "UTC",
            "2026-11-26T00:00:00Z",
            in_utc("2026-11-27", "2026-11-28", "2026-11-29", "2026-12-04"),
            id="7 is Sunday in a range",
        ),
        pytest.param(
            "0 0 * jan,DEC MON-fri",
            "UTC",
            "2026-11-29T00:00:00Z",
            in_utc("2026-12-01", "2026-12-02", "2026-12-03"),
            id="names in any case, in lists and ranges",
        ),
        pytest.param(
            "0 9 * * 1-5",
            "Asia/Kathmandu",
            "2026-11-27T09:00:00+05:45",
            in_utc("2026-11-30T03:15", "2026-12-01T03:15"),
            id="an offset of 45 minutes",
        ),
        pytest.param(
            "0 0 1 1 *",
            "Pacific/Kiritimati",
            "2026-11-29T00:00:00+14:00",
            in_utc("2026-12-31T10:00"),
            id="the first new year",
        ),
        pytest.param(
            "0 0 1 1 *",
            "Pacific/Pago_Pago",
            "2026-11-29T00:00:00-11:00",
            in_utc("2027-01-01T11:00"),
            id="the last new year",
        ),
        pytest.param(
            "0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", in_utc("2104-02-29"), id="no leap day in 2100"
        ),
        pytest.param("0 0 L * *", "UTC", "2028-02-01T00:00:00Z", in_utc("2028-02-29", "2028-03-31"), id="L"),
        pytest.param(
            "0 0 LW * *", "UTC", "2026-05-01T00:00:00Z", in_utc("2026-05-29", "2026-06-30"), id="LW"
        ),
        pytest.param(
            "0 0 * * 5L", "UTC", "2026-11-01T00:00:00Z", in_utc("2026-11-27", "2026-12-25"), id="5L"
        ),
        pytest.param(
            "0 0 * * fri#5", "UTC", "2026-11-01T00:00:00Z", in_utc("2027-01-29", "2027-04-30"), id="fri#5"
        ),
        pytest.param(
            "*/20 5 * * * *",
            "UTC",
            "2026-01-01T00:05:20Z",
            ["2026-01-01T00:05:40Z", "2026-01-01T01:05:00Z"],
            id="six fields",
        ),
        pytest.param(
            "\t0   9\t*  * * ",
            "UTC",
            "2026-01-01T00:00:00Z",
            in_utc("2026-01-01T09:00"),
            id="tabs and blanks",
        ),
    ],
)
def test_it_fires(expression: str, zone: str, after: str, expected: list[str]) -> None:
    assert fires(read_cron(expression, zone), after, len(expected)) == expected


def test_the_argument_is_excluded_to_the_microsecond() -> None:
    cron = read_cron("*/5 * * * *", "UTC")

    assert fires(cron, "2026-01-01T12:04:59.999999Z", 1) == ["2026-01-01T12:05:00Z"]
    assert fires(cron, "2026-01-01T12:05:00Z", 1) == ["2026-01-01T12:10:00Z"]
    assert fires(cron, "2026-01-01T12:05:00.000001Z", 1) == ["2026-01-01T12:10:00Z"]


@pytest.mark.parametrize("sunday", ["0", "7", "SUN", "0,7", "sun,7"])
def test_sunday_has_two_numbers_and_fires_once(sunday: str) -> None:
    cron = read_cron(f"0 0 * * {sunday}", "UTC")

    assert fires(cron, "2026-11-23T00:00:00Z", 2) == in_utc("2026-11-29", "2026-12-06")


@pytest.mark.parametrize(
    ("expression", "field"),
    [
        ("60 * * * *", "minute"),
        ("60 * * * * *", "second"),
        ("* 24 * * *", "hour"),
        ("0 0 0 * *", "day-of-month"),
        ("0 0 32 * *", "day-of-month"),
        ("0 0 * 13 *", "month"),
        ("0 0 * foo *", "month"),
        ("0 0 * * 8", "day-of-week"),
        ("*/0 * * * *", "minute"),
        ("5-1 * * * *", "minute"),
        ("0 0 * * SAT-SUN", "day-of-week"),
        ("0 0 ? * 1", "day-of-month"),
        ("0 0 * * ?", "day-of-week"),
        ("0 0 * * monday", "day-of-week"),
        ("0 0 * * 1#6", "day-of-week"),
        ("0 0 30 2 *", "day-of-month"),
        ("0 0 31 2 *", "day-of-month"),
        ("0 0 31 4,6,9,11 *", "day-of-month"),
        ("1.5 * * * *", "minute"),
        ("-1 * * * *", "minute"),
        ("\u0661 * * * *", "minute"),  # a digit, but none of cron's
        ("9" * 400 + " * * * *", "minute"),
    ],
)
def test_the_wrong_field_is_named(expression: str, field: str) -> None:
    with pytest.raises(NotACron, match=rf"\b{field} field"):
        read_cron(expression, "UTC")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("", "5 fields, or 6 with leading seconds, and has 0"),
        ("* * * *", "has 4"),
        ("* * * * * * *", "has 7"),
        ("0 0 * * *\n0 1 * * *", "one line"),
        ("0 0 *\n* *", "one line"),
        ("0 0 *\x00* * *", "one line"),
        ("0\u00a00 * * *", "one line"),
        ("@daily", "names such as @daily"),
        ("@reboot", "names such as @daily"),
        ("0 0 */29 2 mon#5", "never fires"),
        ("* " * 300, "600 characters"),
    ],
)
def test_what_is_no_expression(expression: str, message: str) -> None:
    with pytest.raises(NotACron, match=message):
        read_cron(expression, "UTC")


@pytest.mark.parametrize("expression", ["0 0 29 2 *", "0 0 31 4 1", "0 0 30 2,3 *"])
def test_a_rare_day_is_no_impossible_one(expression: str) -> None:
    assert fires(read_cron(expression, "UTC"), "2026-01-01T00:00:00Z", 1) != [None]


def test_a_time_that_a_zone_always_skips_never_fires() -> None:
    cron = read_cron("*/5 2 * 3 0L", "Europe/Berlin")  # the hour that goes missing each spring

    assert fires(cron, "2026-01-01T00:00:00Z", 1) == [None]
    assert fires(cron, "1979-01-01T00:00:00Z", 1) == ["1979-03-25T01:00:00Z"]  # before there was summer time


@pytest.mark.parametrize("name", ["UTC", "EST", "US/Eastern", "Etc/GMT-2", "America/Argentina/Ushuaia"])
def test_a_zone_is_a_key_of_the_database(name: str) -> None:
    assert BUNDLED.zone(name) is BUNDLED.zone(name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "Nowhere",
        "europe/berlin",
        "Europe",
        "Europe/",
        "+02:00",
        "UTC+2",
        "../UTC",
        "/etc/localtime",
        "Europe/../UTC",
        "posix/Europe/Berlin",
        "right/UTC",
        "localtime",
        "Factory",
        "zone.tab",
        "UTC\x00",
        "x" * 5_000,
    ],
)
def test_what_is_no_zone(name: str) -> None:
    with pytest.raises(UnknownZone) as refused:
        BUNDLED.zone(name)
    assert len(str(refused.value)) < 250


def test_an_offset_is_told_apart() -> None:
    with pytest.raises(UnknownZone, match="Etc/GMT-2"):
        BUNDLED.zone("+02:00")


def test_a_year_of_every_second() -> None:
    cron = read_cron("* * * * * *", "Europe/Berlin")
    begin, end = parse_instant("2026-01-01T00:00:00Z"), parse_instant("2027-01-01T00:00:00Z")

    assert cron.count(begin, end) == 365 * 86_400
    assert cron.newest(begin, end, 3) == [Instant(end - 2 * SECOND), Instant(end - SECOND), end]


def test_the_ends_of_the_calendar() -> None:
    cron = read_cron("0 0 1 1 *", "America/New_York")

    assert fires(cron, "0001-01-01T00:00:00Z", 1) == ["0002-01-01T04:56:02Z"]
    assert fires(cron, "9998-12-31T00:00:00Z", 2) == ["9999-01-01T05:00:00Z", None]
    assert cron.count(parse_instant("0001-01-01T00:00:00Z"), parse_instant("9999-12-31T23:59:59Z")) == 9_998


NUMBERS = st.sampled_from(["*", "*/2", "*/13", "0", "5", "7,9", "3-6", "1-12/5", "10/4"])
EXPRESSIONS = st.builds(
    lambda *fields: " ".join(fields),
    NUMBERS,
    NUMBERS,
    NUMBERS,
    st.sampled_from(["*", "1", "28-31", "L", "LW", "*/9", "13"]),
    st.sampled_from(["*", "FEB", "1-6/2", "*/5", "dec,jan"]),
    st.sampled_from(["*", "1", "FRI-7", "5L", "2#3", "*/3"]),
)
SECONDS_OF_A_DECADE = st.integers(0, 10 * 366 * 86_400)


@settings(max_examples=150, deadline=None)
@given(EXPRESSIONS, SECONDS_OF_A_DECADE, st.integers(0, 5_000_000), st.integers(0, 999_999))
@example("* * * * * *", 0, 1, 0)
def test_counting_comes_to_the_same_as_going_step_by_step(
    expression: str, start: int, length: int, fraction: int
) -> None:
    cron = read_cron(expression, "America/New_York")
    after = Instant(parse_instant("2020-01-01T00:00:00Z") + start * SECOND + fraction)
    until = Instant(after + length * SECOND)
    steps: list[Instant] = []
    while len(steps) < 200 and (tick := cron.next_after(steps[-1] if steps else after)) is not None:
        if tick > until:
            break
        assert tick > (steps[-1] if steps else after)
        steps.append(tick)
    end = steps[-1] if len(steps) == 200 else until

    assert cron.count(after, end) == len(steps)
    assert cron.newest(after, end, 500) == steps
    assert cron.newest(after, end, 7) == steps[-7:]


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=30) | st.from_regex(r"([0-9L#W*/,A-Z-]{1,8} ){5}[0-9L#*]", fullmatch=True))
@example("0 0 * * 5L/2")
@example("0 0 L/2 * *")
@example("0 0 LW-3 * *")
@example("0 0 * * 1#2/3")
@example("0 0 * * L")
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        cron = read_cron(text, "UTC")
    except NotACron:
        return
    assert cron.next_after(parse_instant("2026-01-01T00:00:00Z")) is not None
