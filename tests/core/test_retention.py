"""How long ended jobs are kept, and what keeps a parent longer (contract section 3, Retention)."""

from __future__ import annotations

import pytest
from tests.core.playing import (
    Script,
    cancel,
    claim,
    dead,
    enqueue,
    report,
    requeue,
    success,
    unroutable,
)

from tidelog_events.wire import WireObject

DAY = 24 * 3_600
FORTNIGHT = 14 * DAY


def lease_all(script: Script, at: float) -> None:
    script.do(at, claim("q", "w", max_jobs=500, lease_seconds=1_000_000))


@pytest.mark.parametrize(
    ("end", "keep"),
    [
        (report("w", success("q/a")), DAY),
        (report("w", {"job_id": "q/a", "attempt": 1, "outcome": "Cancelled"}), DAY),
        (report("w", dead("q/a")), FORTNIGHT),
        (report("w", unroutable("q/a")), FORTNIGHT),
    ],
)
def test_each_end_has_its_keep_time(end: WireObject, keep: int) -> None:
    script = Script()
    script.do(0, enqueue("q/a"))
    lease_all(script, 0)
    script.do(10, end)
    assert script.wait(10 + keep - 0.000_001).lines == []
    printed = script.wait(10 + keep)
    assert printed.event == {
        "type": "purged",
        "at": printed.event["at"],
        "partition": 0,
        "sequence": 3,
        "job_id": "q/a",
        "queue": "q",
    }
    assert script.records() == {}


def test_a_purge_that_comes_late_is_dated_by_its_decision() -> None:
    script = Script()
    script.do(0, enqueue("q/a"))
    script.do(0, cancel("q/a"))
    assert script.away(10, 2 * DAY).event["at"] == "2026-01-03T00:00:00Z"


def test_purges_of_one_instant_go_by_enqueue_order() -> None:
    script = Script()
    for key in "abc":
        script.do(0, enqueue(f"q/{key}"))
    for key in "cab":
        script.do(5, cancel(f"q/{key}"))
    assert script.wait(2 * DAY).steps == ["purged q/a", "purged q/b", "purged q/c"]


def test_expiries_come_before_purges() -> None:
    script = Script()
    script.do(0, enqueue("q/old"))
    script.do(10, cancel("q/old"))
    script.do(20, enqueue("q/a"))
    script.do(20, claim("q", "w", lease_seconds=DAY - 10))
    assert script.wait(DAY + 10).steps == ["lease_expired q/a", "purged q/old"]


def test_a_requeued_job_is_not_purged_for_its_earlier_end() -> None:
    script = Script()
    script.do(0, enqueue("q/a"))
    lease_all(script, 0)
    script.do(0, report("w", dead("q/a")))
    script.do(DAY, requeue("q/a"))
    lease_all(script, DAY)
    script.do(2 * DAY, report("w", dead("q/a")))
    assert script.wait(FORTNIGHT + 2 * DAY - 1).lines == []
    assert script.wait(FORTNIGHT + 2 * DAY).steps == ["purged q/a"]


class TestKeptParents:
    def test_a_living_child_keeps_its_parent(self) -> None:
        script = Script()
        script.do(0, enqueue("q/p"))
        script.do(0, enqueue("q/c", parents=["q/p"]))
        lease_all(script, 0)
        script.do(0, report("w", success("q/p")))
        lease_all(script, 0)
        assert script.wait(5 * DAY).lines == []
        printed = script.do(5 * DAY, report("w", success("q/c")))
        assert printed.steps == ["succeeded q/c"]
        assert script.wait(5 * DAY).steps == ["purged q/p"], "at the instant the last of them ends"
        assert script.wait(6 * DAY).steps == ["purged q/c"]

    def test_a_child_that_ends_before_the_keep_time_changes_nothing(self) -> None:
        script = Script()
        script.do(0, enqueue("q/p"))
        script.do(0, enqueue("q/c", parents=["q/p"]))
        lease_all(script, 0)
        script.do(0, report("w", success("q/p")))
        script.do(100, cancel("q/c"))
        assert script.wait(DAY).steps == ["purged q/p"]

    def test_a_child_enqueued_after_the_end_keeps_it_too(self) -> None:
        script = Script()
        script.do(0, enqueue("q/p"))
        lease_all(script, 0)
        script.do(0, report("w", success("q/p")))
        script.do(DAY - 1, enqueue("q/c", parents=["q/p"]))
        assert script.wait(3 * DAY).lines == []
        script.do(3 * DAY, cancel("q/c"))
        assert script.wait(3 * DAY).steps == ["purged q/p"]

    def test_a_child_born_cancelled_keeps_nothing(self) -> None:
        script = Script()
        script.do(0, enqueue("q/p"))
        script.do(0, cancel("q/p"))
        script.do(10, enqueue("q/c", parents=["q/p"]))
        assert script.wait(DAY).steps == ["purged q/p"]
        assert script.wait(DAY + 10).steps == ["purged q/c"]

    def test_the_last_of_several_counts(self) -> None:
        script = Script()
        script.do(0, enqueue("q/p"))
        lease_all(script, 0)
        script.do(0, report("w", success("q/p")))
        for key in "ab":
            script.do(1, enqueue(f"q/{key}", parents=["q/p"]))
        script.do(2 * DAY, cancel("q/a"))
        assert script.wait(3 * DAY).steps == ["purged q/a"]
        script.do(3 * DAY, cancel("q/b"))
        assert script.wait(3 * DAY).steps == ["purged q/p"]

    def test_a_requeued_dependent_keeps_it_again(self) -> None:
        script = Script()
        script.do(0, enqueue("q/p"))
        script.do(0, enqueue("q/c", parents=["q/p"]))
        lease_all(script, 0)
        script.do(0, report("w", success("q/p")))
        lease_all(script, 0)
        script.do(1, report("w", dead("q/c")))
        script.do(2, requeue("q/c"))
        assert script.wait(2 * DAY).lines == []
        lease_all(script, 2 * DAY)
        script.do(2 * DAY, report("w", success("q/c")))
        assert script.wait(2 * DAY).steps == ["purged q/p"]

    def test_a_requeued_dependent_whose_parent_is_gone_goes_on_alone(self) -> None:
        script = Script()
        script.do(0, enqueue("q/p"))
        script.do(0, enqueue("q/c", parents=["q/p"]))
        lease_all(script, 0)
        script.do(0, report("w", success("q/p")))
        lease_all(script, 0)
        script.do(1, report("w", dead("q/c")))
        assert script.wait(2 * DAY).steps == ["purged q/p"]
        script.do(2 * DAY, enqueue("q/p"))
        script.do(2 * DAY, cancel("q/p"))
        script.do(2 * DAY, requeue("q/c"))
        assert script.wait(3 * DAY).steps == ["purged q/p"], "the new job of that id is not its parent"
        lease_all(script, 3 * DAY)
        assert script.do(3 * DAY, report("w", success("q/c"))).steps == ["succeeded q/c"]

    def test_one_decision_may_let_a_whole_line_go(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a"))
        script.do(0, enqueue("q/b", parents=["q/a"]))
        script.do(0, enqueue("q/c", parents=["q/a", "q/b"]))
        for key in "ab":
            lease_all(script, 0)
            script.do(0, report("w", success(f"q/{key}")))
        script.do(2 * DAY, cancel("q/c"))
        assert script.wait(2 * DAY).steps == ["purged q/a", "purged q/b"]

    def test_a_purge_that_a_command_makes_due_fires_before_the_next_line(self) -> None:
        script = Script()
        script.do(0, enqueue("q/p"))
        lease_all(script, 0)
        script.do(0, report("w", success("q/p")))
        script.do(1, enqueue("q/c", parents=["q/p"]))
        script.do(2 * DAY, cancel("q/c"))
        printed = script.do(2 * DAY, enqueue("q/p"))
        assert printed.steps == ["purged q/p", "enqueued q/p"]
