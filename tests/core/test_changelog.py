"""The changelog: what is kept of a partition, and that it is all that a restart needs."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from tests.core.playing import cancel, claim, dead, enqueue, limit, pause, report, requeue, resume, success

from tidelog.core.changelog import InputPositions, position_change, restore, take_changes
from tidelog.core.decide import decide, fire_timers
from tidelog.core.state import PartitionState, Retention
from tidelog.core.versioned import UnreadableState
from tidelog_events.identity import JobId, Partition
from tidelog_events.instants import SECOND, Instant, Micros
from tidelog_events.parsing import Refusal, parse_command
from tidelog_events.wire import WireObject

RETENTION = Retention(succeeded=Micros(10 * SECOND), dead_lettered=Micros(1_000 * SECOND))


@dataclass
class Kept:
    """A partition and what was written down of it."""

    state: PartitionState = field(default_factory=lambda: PartitionState(Partition(0), 1, RETENTION))
    entries: dict[str, bytes] = field(default_factory=dict)

    def do(self, at: int, *commands: WireObject) -> None:
        now = Instant(at * SECOND)
        fire_timers(self.state, now)
        for written in commands:
            command = parse_command(written)
            assert not isinstance(command, Refusal)
            decide(self.state, command, now, (0,))
        fire_timers(self.state, now)
        for change in (*take_changes(self.state), position_change(self.state, InputPositions(3, 4))):
            if change.value is None:
                del self.entries[change.key]
            else:
                self.entries[change.key] = change.value

    def restored(self) -> PartitionState:
        return restore(self.entries.items(), Partition(0), 1, RETENTION).state


def test_each_entity_has_one_entry_which_goes_with_it() -> None:
    kept = Kept()
    kept.do(0, enqueue("q/a"), claim("q", "w"), pause("q"), limit("r", 2))
    assert set(kept.entries) == {"q/a", "q", "r", "@position"}
    kept.do(1, report("w", success("q/a")), resume("q"), limit("r", None))
    assert set(kept.entries) == {"q/a", "@position"}
    kept.do(11)
    assert set(kept.entries) == {"@position"}


def test_nothing_that_did_not_change_is_written_again() -> None:
    kept = Kept()
    kept.do(0, enqueue("q/a"), pause("q"))
    assert take_changes(kept.state) == []


def test_a_parent_is_not_written_again_for_each_child() -> None:
    """Who waits for it follows from the children's own entries; its payload may be large, and they many."""
    kept = Kept()
    kept.do(0, enqueue("q/p"))
    kept.entries["q/p"] = untouched = b"untouched"
    kept.do(1, enqueue("q/c", parents=["q/p"]), enqueue("q/d", parents=["q/p"]), cancel("q/c"))
    assert kept.entries["q/p"] == untouched


def test_the_position_says_where_inputs_and_time_go_on() -> None:
    kept = Kept()
    kept.do(7, enqueue("q/a"))
    restored = restore(kept.entries.items(), Partition(0), 1, RETENTION)
    assert restored.positions == InputPositions(3, 4)
    assert (restored.state.now, restored.state.sequence) == (7 * SECOND, 1)


def test_an_empty_changelog_is_a_new_partition() -> None:
    restored = restore([], Partition(0), 1, RETENTION)
    assert restored.positions is None
    assert restored.state.last_sequence == -1


def test_a_child_keeps_its_own_parent_and_not_a_later_job_of_that_id() -> None:
    kept = Kept()
    kept.do(0, enqueue("q/p"), enqueue("q/c", parents=["q/p"]), claim("q", "w"))
    kept.do(0, report("w", success("q/p")), claim("q", "w"), report("w", dead("q/c")))
    kept.do(20)
    assert JobId("q/p") not in kept.state.jobs
    kept.do(21, requeue("q/c"), enqueue("q/p"))
    assert kept.restored().jobs[JobId("q/p")].open_dependents == 0
    kept.do(22, enqueue("q/d", parents=["q/p"]))
    assert kept.restored().jobs[JobId("q/p")].open_dependents == 1


def test_children_wait_in_the_order_of_enqueueing_whatever_the_order_of_entries() -> None:
    kept = Kept()
    kept.do(0, enqueue("q/p"), *(enqueue(f"q/{number}", parents=["q/p"]) for number in (3, 1, 2)))
    backwards = list(reversed(kept.entries.items()))
    state = restore(backwards, Partition(0), 1, RETENTION).state
    assert list(state.jobs[JobId("q/p")].waiting) == ["q/3", "q/1", "q/2"]


def test_a_parent_that_is_kept_is_let_go_after_a_restart() -> None:
    kept = Kept()
    kept.do(0, enqueue("q/p"), enqueue("q/c", parents=["q/p"]), claim("q", "w"))
    kept.do(0, report("w", success("q/p")))
    kept.do(50)
    kept.state = kept.restored()
    kept.do(60)
    assert JobId("q/p") in kept.state.jobs
    kept.do(70, cancel("q/c"))
    assert JobId("q/p") not in kept.state.jobs


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("q/a", b"{", "not JSON"),
        ("q/a", b"[]", "version None"),
        ("q/a", b'{"version": 3}', "version 3"),
        ("q/a", b'{"version": 1}', "missing"),
        ("q", b'{"version": 1, "name": "q"}', "missing"),
        ("q", b'{"version": 9}', "version 9"),
        ("@position", b'{"version": 1}', "position"),
        ("@position", b'{"version": 1, "sequence": 1, "now": 5, "commands": 0, "links": 0}', "position"),
        ("@position", b'{"version": 1, "sequence": 1, "now": "no", "commands": 0, "links": 0}', "position"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(key: str, value: bytes, message: str) -> None:
    with pytest.raises(UnreadableState, match=message):
        restore([(key, value)], Partition(0), 1, RETENTION)
