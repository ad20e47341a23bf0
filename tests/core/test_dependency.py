"""Parents and dependents (contract section 3, Birth and Dependencies)."""

from __future__ import annotations

import pytest
from tests.core.playing import (
    Script,
    cancel,
    claim,
    dead,
    enqueue,
    lease,
    report,
    requeue,
    success,
    time_of,
    unroutable,
)

from tidelog_events.wire import WireObject


def family(*edges: tuple[str, list[str]], **fields: object) -> Script:
    """A script in which jobs were enqueued at 0, each with its parents."""
    script = Script()
    for key, parents in edges:
        script.do(0, enqueue(f"q/{key}", parents=[f"q/{parent}" for parent in parents], **fields))
    return script


def lease_all(script: Script, at: float) -> None:
    script.do(at, claim("q", "w", max_jobs=500, lease_seconds=1_000))


class TestOnSuccess:
    def test_the_last_parent_releases_the_child(self) -> None:
        script = family(("a", []), ("b", []), ("c", ["a", "b"]))
        lease_all(script, 0)
        first = script.do(1, report("w", success("q/b"), command_id="r"))
        resolved = first.transitions[1]
        assert resolved["type"] == "parent_resolved"
        assert (resolved["parent_id"], resolved["parent_state"], resolved["parents_remaining"]) == (
            "q/b",
            "Succeeded",
            1,
        )
        assert "ordinal" not in resolved
        assert script.record("q/c")["parents_remaining"] == 1
        last = script.do(2, report("w", success("q/a")))
        assert last.steps == ["succeeded q/a", "released q/c"]
        assert script.record("q/c")["parents_remaining"] == 0

    @pytest.mark.parametrize(("own", "due"), [(1, 2), (50, 50)])
    def test_a_released_child_is_due_at_its_own_time_or_now(self, own: int, due: int) -> None:
        script = family(("a", []))
        script.do(0, enqueue("q/c", parents=["q/a"], due_time=time_of(own)))
        lease_all(script, 0)
        assert script.do(2, report("w", success("q/a"))).transitions[1]["due_time"] == time_of(due)

    @pytest.mark.parametrize(
        ("row", "state"),
        [
            (dead("q/a"), "DeadLettered"),
            (unroutable("q/a"), "Quarantined"),
            (lease("q/a", outcome="Cancelled"), "Cancelled"),
        ],
    )
    def test_a_parent_that_ends_otherwise_cancels_at_once(self, row: WireObject, state: str) -> None:
        script = family(("a", []), ("b", []), ("c", ["a", "b"]))
        lease_all(script, 0)
        printed = script.do(1, report("w", row))
        assert printed.steps[1:] == ["cancelled q/c"]
        assert printed.transitions[1]["terminal_cause"] == f"parent-failure:{state}"
        assert script.record("q/c")["parents_remaining"] == 0
        assert script.do(2, report("w", success("q/b"))).steps == ["succeeded q/b"], "no edge resolves twice"

    def test_a_parent_whose_lease_expires_for_good_cancels_too(self) -> None:
        script = Script()
        script.do(0, enqueue("q/a", retry={"max_attempts": 1}))
        script.do(0, enqueue("q/c", parents=["q/a"]))
        script.do(0, claim("q", "w", lease_seconds=5))
        printed = script.wait(5)
        assert printed.steps == ["lease_expired q/a", "cancelled q/c"]
        assert printed.transitions[1]["terminal_cause"] == "parent-failure:DeadLettered"

    def test_a_child_that_was_cancelled_is_never_revived(self) -> None:
        script = family(("a", []), ("c", ["a"]))
        script.do(1, cancel("q/c"))
        lease_all(script, 1)
        assert script.do(2, report("w", success("q/a"))).steps == ["succeeded q/a"]

    def test_a_retry_of_the_parent_resolves_nothing(self) -> None:
        script = family(("a", []), ("c", ["a"]))
        lease_all(script, 0)
        failed = script.do(1, report("w", lease("q/a", outcome="Failure", error="e")))
        assert failed.steps == ["retry_scheduled q/a"]


class TestOnAnyTerminal:
    def test_it_waits_for_all_whatever_their_ends(self) -> None:
        script = Script()
        for key in "abcd":
            script.do(0, enqueue(f"q/{key}"))
        script.do(0, enqueue("q/child", parents=[f"q/{key}" for key in "abcd"], mode="OnAnyTerminal"))
        lease_all(script, 0)
        printed = script.do(1, report("w", dead("q/a"), unroutable("q/b"), success("q/c")))
        assert [step for step in printed.steps if "child" in step] == ["parent_resolved q/child"] * 3
        assert [event["parent_state"] for event in printed.transitions if "parent_state" in event] == [
            "DeadLettered",
            "Quarantined",
            "Succeeded",
        ]
        last = script.do(2, report("w", lease("q/d", outcome="Cancelled")))
        assert last.steps == ["cancelled q/d", "released q/child"]

    def test_ended_parents_do_not_count_at_birth(self) -> None:
        script = family(("a", []), ("b", []))
        script.do(1, cancel("q/a"))
        born = script.do(2, enqueue("q/c", parents=["q/a", "q/b"], mode="OnAnyTerminal")).event
        assert (born["state"], born["parents_remaining"]) == ("AwaitingParent", 1)
        script.do(3, cancel("q/b"))
        born = script.do(4, enqueue("q/d", parents=["q/a", "q/b"], mode="OnAnyTerminal")).event
        assert (born["state"], born["parents_remaining"]) == ("Scheduled", 0)

    def test_an_edge_stays_resolved_when_the_parent_is_requeued(self) -> None:
        script = family(("a", []), ("b", []))
        script.do(0, enqueue("q/c", parents=["q/a", "q/b"], mode="OnAnyTerminal"))
        lease_all(script, 0)
        script.do(1, report("w", dead("q/a")))
        script.do(2, requeue("q/a"))
        assert script.record("q/c")["parents_remaining"] == 1
        assert script.do(3, report("w", success("q/b"))).steps == ["succeeded q/b", "released q/c"]
        lease_all(script, 4)
        assert script.do(5, report("w", success("q/a"))).steps == ["succeeded q/a"]

    def test_both_modes_below_one_parent(self) -> None:
        script = family(("a", []))
        script.do(0, enqueue("q/any", parents=["q/a"], mode="OnAnyTerminal"))
        script.do(0, enqueue("q/success", parents=["q/a"]))
        script.do(0, enqueue("q/after", parents=["q/success"], mode="OnAnyTerminal"))
        assert script.do(1, cancel("q/a")).steps == [
            "cancelled q/a",
            "released q/any",
            "cancelled q/success",
            "released q/after",
        ]


class TestCascades:
    def test_they_go_breadth_first_in_enqueue_order(self) -> None:
        script = family(
            ("root", []),
            ("b", ["root"]),
            ("a", ["root"]),
            ("a1", ["a"]),
            ("b1", ["b"]),
            ("a2", ["a"]),
            ("b2", ["b1"]),
        )
        steps = script.do(1, cancel("q/root")).steps
        assert steps == [f"cancelled q/{key}" for key in ("root", "b", "a", "b1", "a1", "a2", "b2")]

    def test_a_diamond_ends_once(self) -> None:
        script = family(("root", []), ("a", ["root"]), ("b", ["root"]), ("c", ["a", "b"]))
        printed = script.do(1, cancel("q/root"))
        assert printed.steps == [f"cancelled q/{key}" for key in ("root", "a", "b", "c")]

    def test_a_child_of_parent_and_grandparent_goes_with_the_nearer_cause(self) -> None:
        script = family(("root", []), ("a", ["root"]), ("c", ["a", "root"]))
        lease_all(script, 0)
        printed = script.do(1, report("w", dead("q/root")))
        assert printed.steps == ["dead_lettered q/root", "cancelled q/a", "cancelled q/c"]
        assert printed.transitions[2]["terminal_cause"] == "parent-failure:DeadLettered"

    def test_a_diamond_that_succeeds_opens_level_by_level(self) -> None:
        script = family(("root", []), ("a", ["root"]), ("b", ["root"]), ("c", ["a", "b"]))
        lease_all(script, 0)
        assert script.do(1, report("w", success("q/root"))).steps[1:] == ["released q/a", "released q/b"]
        lease_all(script, 1)
        assert script.do(2, report("w", success("q/a"), success("q/b"))).steps == [
            "succeeded q/a",
            "parent_resolved q/c",
            "succeeded q/b",
            "released q/c",
        ]

    def test_across_queues_of_one_partition_it_wakes_the_claims_of_each(self) -> None:
        script = Script()
        script.do(0, enqueue("p/a"))
        script.do(0, enqueue("c/1", parents=["p/a"]))
        script.do(0, claim("p", "w"))
        script.do(0, claim("c", "v", wait_seconds=99))
        assert script.do(1, report("w", success("p/a"))).steps == [
            "succeeded p/a",
            "released c/1",
            "leased c/1",
        ]

    def test_five_thousand_children_of_one_parent(self) -> None:
        script = Script()
        script.do(0, enqueue("q/p"))
        script.do_all(0, (enqueue(f"q/{number}", parents=["q/p"]) for number in range(5_000)))
        lease_all(script, 0)
        printed = script.do(1, report("w", success("q/p")))
        assert printed.steps == ["succeeded q/p", *(f"released q/{number}" for number in range(5_000))]
        assert printed.reply["sequence"] == printed.transitions[-1]["sequence"]

    def test_a_chain_of_ten_thousand(self) -> None:
        script = Script()
        script.do(0, enqueue("q/0"))
        script.do_all(0, (enqueue(f"q/{number}", parents=[f"q/{number - 1}"]) for number in range(1, 10_000)))
        printed = script.do(1, cancel("q/0"))
        assert printed.steps == [f"cancelled q/{number}" for number in range(10_000)]
