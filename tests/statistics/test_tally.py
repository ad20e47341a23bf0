"""What transitions add to the statistics, played by the core itself."""

from __future__ import annotations

from collections import defaultdict

import pytest
from tests.projection.story import Story

from tidelog.statistics.histogram import Histogram, add, percentile
from tidelog.statistics.tally import Followed, Step, Window, count, empty_window, window_start
from tidelog_events.identity import JobId
from tidelog_events.instants import Instant
from tidelog_events.transitions import JobTransition, Transition

COUNTS = ("enqueued", "started", "succeeded", "failed", "dead_lettered", "quarantined", "cancelled")


def counted(events: list[Transition]) -> dict[Instant, Window]:
    """The windows of all these events, as if of one wire name."""
    jobs: dict[JobId, Followed] = {}
    windows: defaultdict[Instant, Window] = defaultdict(empty_window)
    for event in events:
        if isinstance(event, JobTransition):
            step = Step.over(jobs.pop(event.job_id, None), event)
            if step.followed is not None:
                jobs[event.job_id] = step.followed
            count(windows[window_start(event.at)], event, step)
    return dict(windows)


def only(events: list[Transition]) -> Window:
    (window,) = counted(events).values()
    return window


def test_every_end_of_a_try_is_counted() -> None:
    story = Story()
    for key in ("good", "bad", "dead", "nobody", "back", "gone"):
        story.enqueue(f"default/{key}", retry={"max_attempts": 2, "delays": [1_000]})
    story.claim(max_jobs=5)
    story.report("default/good")
    story.report("default/bad", "Failure", error="e")
    story.report("default/dead", "Failure", error="e", next_due=None)
    story.report("default/nobody", "Unroutable", reason="r")
    story.report("default/back", "Returned")
    story.do("cancel", job_id="default/gone")
    window = only(story.events)
    assert [window[name] for name in COUNTS] == [6, 5, 1, 2, 1, 1, 1]  # type: ignore[literal-required]


def test_a_lease_that_runs_out_is_a_failed_try() -> None:
    story = Story()
    story.enqueue(retry={"max_attempts": 2, "delays": [0]})
    story.claim()
    story.pass_time(600)
    story.claim()
    story.pass_time(600)
    windows = counted(story.events)
    assert [window["failed"] for window in windows.values()] == [0, 1, 1]
    assert [window["dead_lettered"] for window in windows.values()] == [0, 0, 1]
    assert not any(window["run"] for window in windows.values()), "nobody knows how long it ran"


def test_waiting_is_from_due_to_lease_and_running_from_lease_to_outcome() -> None:
    story = Story()
    story.enqueue("default/parent")
    story.enqueue("default/child", parents=["default/parent"])
    story.pass_time(2)
    story.claim()
    story.pass_time(4)
    story.report("default/parent")
    story.pass_time(8)
    story.claim()
    story.pass_time(16)
    story.report("default/child", "Failure", error="e", next_due="2026-01-01T00:00:31Z")
    story.pass_time(3)
    story.claim()
    window = only(story.events)
    wait, run = window["wait"], window["run"]
    assert [percentile(wait, share) for share in (0.3, 0.6, 1)] == pytest.approx([2, 2, 8], rel=0.05)
    assert [percentile(run, share) for share in (0.5, 1)] == pytest.approx([4, 16], rel=0.05)


def test_an_event_that_comes_again_is_not_counted_again() -> None:
    story = Story()
    story.enqueue()
    story.claim()
    story.report()
    twice = [*story.events, *story.events]
    assert only(twice) == only(story.events)


def test_each_minute_has_its_own_window() -> None:
    story = Story()
    for _ in range(3):
        story.enqueue(f"default/{len(story.events)}")
        story.pass_time(45)
    windows = counted(story.events)
    assert [window["enqueued"] for window in windows.values()] == [2, 1]
    assert [start % 60_000_000 for start in windows] == [0, 0]


@pytest.mark.parametrize("seconds", [0.0, 0.0004, 0.01, 0.5, 1, 59, 3_600, 86_400])
def test_a_percentile_is_within_five_percent(seconds: float) -> None:
    histogram: Histogram = {}
    for _ in range(10):
        add(histogram, seconds)
    assert percentile(histogram, 0.5) == pytest.approx(seconds, rel=0.05, abs=0.001)


def test_percentiles_of_a_spread() -> None:
    histogram: Histogram = {}
    for milliseconds in range(1, 1_001):
        add(histogram, milliseconds / 1_000)
    assert percentile(histogram, 0.5) == pytest.approx(0.5, rel=0.06)
    assert percentile(histogram, 0.95) == pytest.approx(0.95, rel=0.06)
    assert percentile({}, 0.5) is None
