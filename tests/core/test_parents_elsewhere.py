"""A parent in another partition: the orders of events that matter, each played out."""

from __future__ import annotations

from collections import deque

from tests.core import playing

from tidelog.core.changelog import InputPositions, position_change, restore, take_changes
from tidelog.core.decide import answer_late_links, decide, fire_timers, receive
from tidelog.core.decision import Decision
from tidelog.core.link import LinkMessage, ParentLinked, target_of
from tidelog.core.state import PartitionState, Retention
from tidelog.log.port import MAX_RECORD_BYTES
from tidelog_events.identity import JobId, Partition, partition_of, queue_of
from tidelog_events.instants import SECOND, Instant
from tidelog_events.parsing import parse_command
from tidelog_events.replies import Reply
from tidelog_events.states import JobState
from tidelog_events.transitions import Transition
from tidelog_events.wire import WireObject

PARTITIONS = 3
# Queue a lives in partition 1, b in 2, f in 0.
PARENT, OTHER_PARENT, CHILD = "a/p", "b/p", "f/c"
DAY = 24 * 3_600


class World:
    """Three partitions, and messages that arrive when the test says so."""

    def __init__(self) -> None:
        self.now = Instant(0)
        self.states = [PartitionState(Partition(number), PARTITIONS) for number in range(PARTITIONS)]
        self.changelogs: list[dict[str, bytes]] = [{} for _ in range(PARTITIONS)]
        self.messages: deque[LinkMessage] = deque()
        self.events: list[Transition] = []
        self.results: dict[str | None, str] = {}

    def do(self, job_id: str, command: WireObject) -> None:
        """Let the partition of a job decide a command."""
        state = self.states[partition_of(queue_of(JobId(job_id)), PARTITIONS)]
        self._keep(decide(state, parse_command(command), self.now, (1,)))

    def enqueue(self, job_id: str, *parents: str, **fields: object) -> None:
        """Enqueue a job; its result is found under its id."""
        self.do(job_id, playing.enqueue(job_id, parents=list(parents), command_id=job_id, **fields))

    def deliver(self, kind: type[LinkMessage] = LinkMessage, *, until: int | None = None) -> None:
        """Deliver the first message of a kind."""
        message = next(message for message in self.messages if isinstance(message, kind))
        self.messages.remove(message)
        state = self.states[target_of(message, PARTITIONS)]
        self._keep(receive(state, message, self.now, until=until))

    def deliver_all(self) -> None:
        """Deliver messages until there are none."""
        while self.messages:
            self.deliver()

    def wait(self, seconds: int) -> None:
        """Let time pass and every timer fire."""
        self.now = Instant(self.now + seconds * SECOND)
        for state in self.states:
            self._keep(fire_timers(state, self.now))

    def restart(self) -> None:
        """Throw every partition away and take it over from its changelog."""
        for number, changelog in enumerate(self.changelogs):
            restored = restore(changelog.items(), Partition(number), PARTITIONS, Retention())
            self.states[number] = restored.state

    def caught_up(self, partition: int, handled: int) -> None:
        """The partition has handled its commands up to an offset."""
        self._keep(answer_late_links(self.states[partition], self.now, handled))

    def state(self, job_id: str) -> JobState | None:
        """The state of a job; None when there is none."""
        job = self.states[partition_of(queue_of(JobId(job_id)), PARTITIONS)].jobs.get(JobId(job_id))
        return None if job is None else job.state

    def _keep(self, decision: Decision) -> None:
        self.messages.extend(decision.messages)
        for output in decision.outputs:
            if isinstance(output, Transition):
                self.events.append(output)
            elif isinstance(output.answer, Reply):
                self.results[output.answer.command_id] = output.answer.result
        changelog = self.changelogs[decision.state.partition]
        for change in (*take_changes(decision.state), position_change(decision.state, InputPositions(0, 0))):
            if change.value is None:
                changelog.pop(change.key, None)
            else:
                changelog[change.key] = change.value


def test_a_job_is_invisible_until_its_parents_are_known() -> None:
    world = World()
    world.enqueue(PARENT)
    world.enqueue(CHILD, PARENT)
    assert (world.state(CHILD), world.results) == (None, {PARENT: "Ok"})
    world.deliver_all()
    assert (world.state(CHILD), world.results[CHILD]) == (JobState.AWAITING_PARENT, "Ok")


def test_a_parent_that_ends_while_another_is_asked_after_counts_as_ended() -> None:
    world = World()
    world.enqueue(PARENT)
    world.enqueue(OTHER_PARENT)
    world.enqueue(CHILD, PARENT, OTHER_PARENT)
    world.deliver()  # the link to the first parent
    world.deliver(ParentLinked)  # it lives
    world.do(PARENT, playing.cancel(PARENT))
    world.restart()
    world.deliver_all()
    job = world.states[0].jobs[JobId(CHILD)]
    assert (job.state, job.terminal_cause) == (JobState.CANCELLED, "parent-failure:Cancelled")
    assert world.results[CHILD] == "Ok"


def test_an_unknown_parent_lets_the_known_ones_go() -> None:
    world = World()
    world.enqueue(PARENT)
    world.enqueue(CHILD, PARENT, "b/nobody")
    world.deliver_all()
    assert (world.state(CHILD), world.results[CHILD]) == (None, "UnknownParent")
    world.do(PARENT, playing.cancel(PARENT))
    world.wait(DAY)
    assert world.state(PARENT) is None


def test_a_link_waits_for_commands_that_stood_before_it() -> None:
    world = World()
    world.enqueue(CHILD, PARENT)
    world.deliver(until=7)  # the parent's enqueue is among the commands up to 7
    world.restart()
    world.caught_up(1, 6)
    world.deliver_all()
    assert world.results == {}
    world.enqueue(PARENT)
    world.caught_up(1, 7)
    world.deliver_all()
    assert world.results[CHILD] == "Ok"


def test_a_link_does_not_wait_for_what_never_comes() -> None:
    world = World()
    world.enqueue(CHILD, PARENT)
    world.deliver(until=7)
    world.caught_up(1, 7)
    world.deliver_all()
    assert world.results[CHILD] == "UnknownParent"


def test_what_is_asked_about_a_pending_job_waits_for_it() -> None:
    world = World()
    world.enqueue(PARENT)
    world.enqueue(CHILD, PARENT)
    world.do(CHILD, playing.enqueue(CHILD, command_id="again"))
    world.do(CHILD, playing.cancel(CHILD, command_id="cancel"))
    world.restart()
    assert world.results.keys() == {PARENT}
    world.deliver_all()
    assert world.results == {
        PARENT: "Ok",
        CHILD: "Ok",
        "again": "Duplicate",
        "cancel": "CancelledImmediately",
    }


def test_a_parent_named_thousands_of_times_is_one_and_takes_no_more_room() -> None:
    world = World()
    world.enqueue(PARENT)
    for _ in range(20):
        world.enqueue(CHILD, *[PARENT] * 10_000)
    assert max(map(len, world.changelogs[0].values())) < 10_000
    world.deliver_all()
    assert world.state(CHILD) is JobState.AWAITING_PARENT


def test_very_many_repeats_of_a_pending_job_fit_into_its_entry() -> None:
    world = World()
    world.enqueue(PARENT)
    payload = "x" * 60_000
    for number in range(20):
        command = playing.enqueue(CHILD, parents=[PARENT], payload=payload, command_id=f"c{number}")
        world.do(CHILD, command)
    assert max(map(len, world.changelogs[0].values())) < MAX_RECORD_BYTES
    world.deliver_all()
    assert world.results.pop(PARENT) == "Ok"
    assert sorted(world.results.values()) == ["Duplicate"] * 19 + ["Ok"]


def test_a_chain_of_pending_jobs_is_decided_from_its_root() -> None:
    world = World()
    world.enqueue(PARENT)
    world.enqueue(CHILD, PARENT)
    world.enqueue("f/grandchild", CHILD)
    world.enqueue("b/great-grandchild", "f/grandchild")
    world.restart()
    world.deliver_all()
    assert [world.results[job] for job in (CHILD, "f/grandchild", "b/great-grandchild")] == ["Ok"] * 3
    assert world.state("b/great-grandchild") is JobState.AWAITING_PARENT


def test_pending_jobs_that_name_each_other_do_not_wait_for_ever() -> None:
    world = World()
    world.enqueue("a/1", "b/1")
    world.enqueue("b/1", "a/1")
    world.deliver_all()
    assert world.results == {}
    world.wait(30)
    world.deliver_all()
    assert world.results == {"a/1": "UnknownParent", "b/1": "UnknownParent"}


def test_a_parent_is_kept_until_its_child_elsewhere_has_ended() -> None:
    world = World()
    world.enqueue(PARENT)
    world.enqueue(CHILD, PARENT, mode="OnAnyTerminal")
    world.deliver_all()
    world.do(PARENT, playing.cancel(PARENT))
    world.deliver_all()
    world.wait(2 * DAY)
    world.restart()
    assert (world.state(PARENT), world.state(CHILD)) == (JobState.CANCELLED, JobState.SCHEDULED)
    world.do(CHILD, playing.cancel(CHILD))
    world.deliver_all()
    world.wait(0)
    assert world.state(PARENT) is None


def test_a_requeued_child_keeps_its_parent_again() -> None:
    world = World()
    world.enqueue(PARENT)
    world.enqueue(CHILD, PARENT, mode="OnAnyTerminal", retry={"max_attempts": 1})
    world.deliver_all()
    world.do(PARENT, playing.cancel(PARENT))
    world.deliver_all()
    world.do(CHILD, playing.claim("f", "w"))
    world.do(CHILD, playing.report("w", playing.dead(CHILD)))
    world.deliver_all()
    world.do(CHILD, playing.requeue(CHILD))
    world.deliver_all()
    world.wait(2 * DAY)
    assert world.state(PARENT) is JobState.CANCELLED


def test_a_late_message_about_another_life_of_a_child_is_ignored() -> None:
    world = World()
    world.enqueue(PARENT)
    world.enqueue(CHILD, PARENT)
    world.deliver_all()
    world.do(CHILD, playing.cancel(CHILD))
    world.wait(DAY)  # purged, before the parent has heard of the end
    late = list(world.messages)
    world.messages.clear()
    world.enqueue(CHILD, PARENT)
    world.deliver_all()
    world.messages.extend(late)
    world.deliver_all()
    assert world.state(CHILD) is JobState.AWAITING_PARENT
    world.do(PARENT, playing.cancel(PARENT))
    world.deliver_all()
    assert world.state(CHILD) is JobState.CANCELLED


def test_five_thousand_children_elsewhere_are_resolved_and_each_is_an_entry_of_its_own() -> None:
    world = World()
    world.enqueue(PARENT)
    for number in range(5_000):
        world.enqueue(f"f/{number}", PARENT, mode="OnAnyTerminal")
    world.deliver_all()
    assert max(map(len, world.changelogs[1].values())) < 2_000
    world.restart()
    world.do(PARENT, playing.cancel(PARENT))
    world.deliver_all()
    assert all(world.state(f"f/{number}") is JobState.SCHEDULED for number in range(5_000))


def test_a_job_knows_its_parents_in_the_order_in_which_it_named_them() -> None:
    """Wherever they live: a rebuild makes the rows of dependencies from this."""
    world = World()
    for parent in (PARENT, OTHER_PARENT, "f/p"):
        world.enqueue(parent)
    named = [("f/p", OTHER_PARENT, PARENT), (PARENT, "f/p", OTHER_PARENT), (OTHER_PARENT, PARENT, "f/p")]
    for number, parents in enumerate(named):
        world.enqueue(f"f/c{number}", *parents)
        world.deliver_all()
    for _ in range(2):
        jobs = world.states[0].jobs
        assert [tuple(jobs[JobId(f"f/c{number}")].parents) for number in range(3)] == named
        world.restart()


def test_an_answer_to_an_earlier_admission_of_an_id_is_not_taken_for_one_to_this() -> None:
    world = World()
    world.enqueue(CHILD, PARENT)
    world.deliver()  # the link: there is no such parent yet
    late = world.messages[0]
    world.deliver_all()
    assert world.results[CHILD] == "UnknownParent"

    world.enqueue(PARENT)
    world.enqueue(CHILD, PARENT)
    world.messages.appendleft(late)
    world.deliver_all()
    assert (world.results[CHILD], world.state(CHILD)) == ("Ok", JobState.AWAITING_PARENT)
