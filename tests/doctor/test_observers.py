"""What the doctor says of observers."""

from __future__ import annotations

import pytest

from tidelog.doctor.findings import Health
from tidelog.doctor.observers import judge_observer
from tidelog.observer.status import ObserverStatus, PartitionPosition
from tidelog_events.instants import SECOND, Instant

NOW = Instant(1_000_000 * SECOND)


def status(
    *, events: int = 0, age: float = 0.0, members: int = 1, letters: int = 0, in_log: bool = True
) -> ObserverStatus:
    oldest = Instant(NOW - round(age * SECOND)) if events else None
    position = PartitionPosition(3, 7, events, oldest, is_in_log=in_log)
    return ObserverStatus("alerts", members, (position,), letters, "ValueError: no" if letters else None)


@pytest.mark.parametrize(
    ("of", "health", "words"),
    [
        (status(), Health.OK, "alerts has been told everything"),
        (status(events=5, age=3), Health.OK, "yet to be told 5 events; the oldest is 3.0 s old"),
        (status(events=5, age=300), Health.WARNING, "300.0 s old"),
        (status(events=1, age=3, members=0), Health.WARNING, "no process runs it"),
    ],
)
def test_how_far_it_is(of: ObserverStatus, health: Health, words: str) -> None:
    [finding] = judge_observer(of, NOW)
    assert finding.health is health
    assert words in finding.message
    assert (finding.advice is None) is (health is Health.OK)


def test_an_event_that_fails_is_told_before_it_is_late() -> None:
    failing = PartitionPosition(3, 7, 1, NOW, failing="try 2 of event 3-7 failed: ValueError: no")
    of = ObserverStatus("alerts", 1, (PartitionPosition(2, 1, 0, None), failing), 0, None)
    lag, finding = judge_observer(of, NOW)
    assert lag.health is Health.OK
    assert finding.health is Health.WARNING
    assert finding.message == (
        "alerts does not get on at partition 3: try 2 of event 3-7 failed: ValueError: no"
    )
    assert finding.advice is not None


def test_dead_letters_and_a_stand_still_are_told_beside_it() -> None:
    _, lost, letters = judge_observer(status(letters=2, in_log=False), NOW)
    assert (lost.health, "stands still at partition 3" in lost.message) == (Health.ERROR, True)
    assert letters.health is Health.WARNING
    assert letters.message == "alerts has given up on 2 events; the newest: ValueError: no"
    assert "tidelog observers redrive alerts" in (letters.advice or "")


def test_one_that_nobody_needs_can_be_forgotten() -> None:
    [finding] = judge_observer(status(events=1, age=3, members=0), NOW)
    assert "`tidelog observers forget alerts`" in (finding.advice or "")
