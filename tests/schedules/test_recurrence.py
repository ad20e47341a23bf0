"""The helpers say in cron what they are called, and refuse what cron cannot say."""

from __future__ import annotations

import pytest

from tidelog import daily, every, monthly, weekly
from tidelog.handler.signature import DefinitionError


@pytest.mark.parametrize(
    ("expression", "cron"),
    [
        (every(seconds=1), "* * * * * *"),
        (every(seconds=15), "*/15 * * * * *"),
        (every(seconds=60), "* * * * *"),
        (every(minutes=1), "* * * * *"),
        (every(minutes=5), "*/5 * * * *"),
        (every(minutes=60), "0 * * * *"),
        (every(hours=1), "0 * * * *"),
        (every(hours=6), "0 */6 * * *"),
        (every(minutes=120), "0 */2 * * *"),
        (every(hours=24), "0 0 * * *"),
        (daily("03:00"), "0 3 * * *"),
        (daily("23:59:07"), "7 59 23 * * *"),
        (weekly("mon", "03:00"), "0 3 * * mon"),
        (weekly(["fri", "mon"], "18:30"), "30 18 * * mon,fri"),
        (monthly(1, "03:00"), "0 3 1 * *"),
        (monthly(31, "00:00:30"), "30 0 0 31 * *"),
        (monthly("last", "03:00"), "0 3 L * *"),
    ],
)
def test_says_it_in_cron(expression: str, cron: str) -> None:
    assert expression == cron


@pytest.mark.parametrize(
    ("interval", "nearest"),
    [
        ({"minutes": 7}, "every(minutes=6) or every(minutes=10)"),
        ({"seconds": 45}, "every(seconds=30) or every(minutes=1)"),
        ({"hours": 1, "minutes": 30}, "every(hours=1) or every(hours=2)"),
        ({"hours": 5}, "every(hours=4) or every(hours=6)"),
        ({"hours": 48}, "every(hours=24)"),
        ({}, "every(seconds=1)"),
    ],
)
def test_refuses_an_interval_that_would_not_be_even(interval: dict[str, int], nearest: str) -> None:
    with pytest.raises(DefinitionError) as refused:
        every(**interval)
    said = ", ".join(f"{unit}={number}" for unit, number in interval.items())
    assert str(refused.value).startswith(f"every({said}) cannot be said in cron")
    assert str(refused.value).endswith(f"Nearest are {nearest}.")


@pytest.mark.parametrize("interval", [{"minutes": -5}, {"seconds": 0.5}, {"hours": True}])
def test_refuses_what_is_no_interval(interval: dict[str, int]) -> None:
    with pytest.raises(DefinitionError, match="must be a whole number"):
        every(**interval)


def test_refuses_what_is_no_time_or_no_day() -> None:
    for at in ("3:00", "24:00", "03:60", "03:00 ", "\u0660\u0663:00", "noon"):
        with pytest.raises(DefinitionError, match="is no time of day; write it as HH:MM"):
            daily(at)
    for days in ("monday", ["mon", "Tue"], []):
        with pytest.raises(DefinitionError, match="day of the week"):
            weekly(days, "03:00")  # type: ignore[arg-type]
    for day in (0, 32, True, "first"):
        with pytest.raises(DefinitionError, match="is no day of a month"):
            monthly(day, "03:00")  # type: ignore[arg-type]
