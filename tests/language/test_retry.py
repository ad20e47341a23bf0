"""The retry table: contract section 3, Retry."""

from __future__ import annotations

import pytest

from tidelog_events.instants import SECOND, Micros
from tidelog_events.retry import DEFAULT_RETRY, RetryPolicy


def seconds(*values: float) -> tuple[Micros, ...]:
    return tuple(Micros(round(value * SECOND)) for value in values)


@pytest.mark.parametrize(
    ("charged", "delay"),
    [(1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 64), (7, 128), (8, 256), (9, 300), (10, 300), (1000, 300)],
)
def test_without_delays_the_wait_doubles_up_to_five_minutes(charged: int, delay: int) -> None:
    assert DEFAULT_RETRY.delay_after(charged) == delay * SECOND


@pytest.mark.parametrize(("charged", "delay"), [(1, 1), (2, 0.5), (3, 0), (4, 0), (99, 0)])
def test_the_last_delay_repeats(charged: int, delay: float) -> None:
    policy = RetryPolicy(max_attempts=100, delays=seconds(1, 0.5, 0))

    assert policy.delay_after(charged) == delay * SECOND


def test_the_ceiling() -> None:
    assert not DEFAULT_RETRY.is_exhausted(9)
    assert DEFAULT_RETRY.is_exhausted(10)
    assert RetryPolicy(max_attempts=1).is_exhausted(1)


@pytest.mark.parametrize("attempts", [1, 1000])
@pytest.mark.parametrize("delays", [seconds(0), seconds(*[1_000_000_000] * 20)])
def test_exactly_the_bounds_are_accepted(attempts: int, delays: tuple[Micros, ...]) -> None:
    assert RetryPolicy(attempts, delays).delays == delays


@pytest.mark.parametrize("attempts", [0, -1, 1001])
def test_attempts_beyond_the_bounds(attempts: int) -> None:
    with pytest.raises(ValueError, match="max_attempts"):
        RetryPolicy(attempts)


@pytest.mark.parametrize(
    "delays", [(), seconds(*[1] * 21), seconds(1, -1), seconds(1_000_000_001)], ids=["0", "21", "-1", "long"]
)
def test_delays_beyond_the_bounds(delays: tuple[Micros, ...]) -> None:
    with pytest.raises(ValueError, match="delay"):
        RetryPolicy(3, delays)
