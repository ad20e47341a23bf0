"""Ticks that nobody was there to mint: skipped, or made up for once (contract section 3, Schedules)."""

from __future__ import annotations

import pytest
from tests.core.playing import Script, enqueue, put_schedule, time_of, trigger

YEAR = 365 * 24 * 3_600
YEARS_SECONDS = 31_536_000


def tick_id(seconds: int) -> str:
    return f"q/s@{time_of(seconds).replace('-', '').replace(':', '')}"


def away(cron: str, until: float, **fields: object) -> tuple[list[str], list[str], int]:
    """What an outage comes to that began at once: minted, skipped, and how many were skipped."""
    script = Script()
    script.do(0, put_schedule("q/s", cron, **fields))
    printed = script.away(1, until)
    ticked, *born = printed.transitions
    assert [event["job_id"] for event in born] == ticked["minted"]
    assert script.wait(until).lines == []
    return ticked["minted"], ticked["skipped"], ticked["skipped_count"]


def test_a_tick_that_is_a_minute_late_is_not_missed() -> None:
    assert away("0 1 * * *", 3_660) == ([tick_id(3_600)], [], 0)
    assert away("0 1 * * *", 3_660.000_001) == ([], [time_of(3_600)], 1)


def test_skip_records_what_was_missed_and_mints_what_was_not() -> None:
    minted, skipped, count = away("* * * * *", 630)

    assert minted == [tick_id(600)]
    assert skipped == [time_of(seconds) for seconds in range(60, 541, 60)]
    assert count == 9


def test_coalesce_makes_up_for_the_latest_missed_one_before_those_in_time() -> None:
    minted, skipped, count = away("*/30 * * * * *", 330, catch_up="Coalesce")

    assert minted == [tick_id(240), tick_id(270), tick_id(300), tick_id(330)]
    assert skipped == [time_of(seconds) for seconds in range(30, 211, 30)]
    assert count == 7


def test_coalesce_makes_up_for_nothing_when_nothing_was_missed() -> None:
    assert away("0 1 * * *", 3_601, catch_up="Coalesce") == ([tick_id(3_600)], [], 0)


def test_with_no_overlap_the_first_is_minted_and_the_rest_skipped() -> None:
    minted, skipped, count = away("* * * * *", 330, catch_up="Coalesce", no_overlap=True)

    assert minted == [tick_id(240)]
    assert skipped == [time_of(60), time_of(120), time_of(180), time_of(300)]
    assert count == 4


def test_with_a_living_instance_not_even_the_missed_one_is_made_up_for() -> None:
    script = Script()
    script.do(0, put_schedule("q/s", "* * * * *", catch_up="Coalesce", no_overlap=True))
    script.do(1, trigger("q/s"))
    ticked = script.away(2, 600).event

    assert (ticked["minted"], ticked["skipped_count"]) == ([], 10)


def test_a_make_up_whose_job_exists_is_skipped_too() -> None:
    script = Script()
    script.do(0, put_schedule("q/s", "0 * * * *", catch_up="Coalesce"))
    script.do(1, enqueue(tick_id(3_600)))
    ticked = script.away(2, 7_000).event

    assert (ticked["minted"], ticked["skipped"]) == ([], [time_of(3_600)])


@pytest.mark.parametrize("zone", ["UTC", "America/New_York"])
def test_a_year_of_every_second_is_one_decision_and_one_make_up(zone: str) -> None:
    script = Script()
    script.do(0, put_schedule("q/s", "* * * * * *", time_zone=zone, catch_up="Coalesce", no_overlap=True))
    printed = script.away(0, YEAR)
    ticked, born = printed.transitions

    assert ticked["minted"] == [born["job_id"]] == ["q/s@20261231T235859Z"]
    assert ticked["skipped_count"] == YEARS_SECONDS - 1
    assert ticked["skipped"][0] == "2026-12-31T23:59:29Z"
    assert ticked["skipped"][-1] == ticked["at"] == "2027-01-01T00:00:00Z"
    assert len(ticked["skipped"]) == 32
    assert ticked["next_due"] == "2027-01-01T00:00:01Z"


def test_a_year_of_every_second_without_no_overlap_mints_what_is_in_time() -> None:
    script = Script()
    script.do(0, put_schedule("q/s", "* * * * * *", catch_up="Coalesce"))
    ticked, *born = script.away(0, YEAR).transitions

    assert len(born) == len(ticked["minted"]) == 1 + 61
    assert ticked["skipped_count"] == YEARS_SECONDS - 62
    assert ticked["skipped"][-1] == "2026-12-31T23:58:58Z"


def test_the_rest_of_the_calendar_is_one_decision() -> None:
    script = Script()
    script.do(0, put_schedule("q/s", "* * * * *"))
    printed = script.away(0, "9999-12-30T12:00:30Z")

    assert printed.transitions[0]["skipped_count"] > 4_000_000_000
    assert len(printed.transitions[0]["skipped"]) == 32
