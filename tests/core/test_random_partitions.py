"""All commands over several partitions, under every interleaving of commands, messages, time and restarts.

Above all jobs whose parents live in other partitions. Each partition handles its commands when it likes;
messages between two partitions keep their order, and nothing else is in order; a partition may be thrown away
and rebuilt from its changelog at any time. `TIDELOG_RANDOM=slow` looks much longer.
"""

from __future__ import annotations

import os
from collections import deque

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.core import playing
from tests.core.schedule_witness import EVERY
from tests.core.witness import Life, Witness

from tidelog.core.changelog import InputPositions, position_change, restore, take_changes
from tidelog.core.decide import answer_late_links, decide, end_parked_waits, fire_timers, receive
from tidelog.core.decision import Addressed, Decision
from tidelog.core.link import LinkMessage, decode_link, encode_link, target_of
from tidelog.core.state import Job, PartitionState, Retention
from tidelog_events.identity import JobId, Partition, partition_of, queue_of
from tidelog_events.instants import SECOND, Instant, Micros
from tidelog_events.jsontext import Json
from tidelog_events.parsing import parse_command
from tidelog_events.record import RECORD_FIELDS
from tidelog_events.replies import EnqueueReply, Result
from tidelog_events.states import DependencyMode, JobState
from tidelog_events.transitions import Cancelled, Enqueued, JobTransition, Purged, Released, Transition

PARTITIONS = 3
QUEUES = ["a", "b", "f"]
JOB_IDS = [f"{queue}/{number}" for queue in QUEUES for number in range(3)]
RETENTION = Retention(Micros(20 * SECOND), Micros(10 * SECOND), Micros(30 * SECOND), Micros(30 * SECOND))

ANY_JOB = st.sampled_from(JOB_IDS)
ANY_PARTITION = st.sampled_from(range(PARTITIONS))
ANY_QUEUE = st.sampled_from(QUEUES)
ORDERS = ["pause", "resume", "limit", "no limit", "put", "trigger", "remove"]
OUTCOMES: st.SearchStrategy[dict[str, Json]] = st.sampled_from(
    [
        {"outcome": "Success", "output": 7, "add_tags": ["done"]},
        {"outcome": "Failure", "error": "e"},
        {"outcome": "Cancelled"},
        {"outcome": "Unroutable", "reason": "r"},
        {"outcome": "Returned"},
    ]
)


class House:
    """One partition, the commands that were sent to it, its changelog, and a witness of its log."""

    def __init__(self, partition: int, perhaps_held: set[JobId]) -> None:
        self.partition = Partition(partition)
        self.witness = Witness(RETENTION, self.partition, PARTITIONS, perhaps_held)
        self.state = PartitionState(self.partition, PARTITIONS, RETENTION)
        self.commands: list[dict[str, Json]] = []
        self.handled = 0
        self.changelog: dict[str, bytes] = {}

    def commit(self) -> None:
        changes = [*take_changes(self.state), position_change(self.state, InputPositions(self.handled, 0))]
        for change in changes:
            if change.value is None:
                self.changelog.pop(change.key, None)
            else:
                self.changelog[change.key] = change.value

    def restart(self) -> None:
        self.state = restore(self.changelog.items(), self.partition, PARTITIONS, RETENTION).state


class PartitionsMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        assert sorted(partition_of(queue, PARTITIONS) for queue in QUEUES) == [0, 1, 2]
        self.now = Instant(0)
        self.perhaps_held: set[JobId] = set()
        self.houses = [House(partition, self.perhaps_held) for partition in range(PARTITIONS)]
        self.channels: dict[tuple[int, int], deque[bytes]] = {
            (source, target): deque() for source in range(PARTITIONS) for target in range(PARTITIONS)
        }
        self.sent = 0
        self.answers: dict[str, int] = {}
        self.accepted: set[str] = set()
        self.born: set[str] = set()
        self.sent_before: dict[str, set[str]] = {}
        self.job_of: dict[str, str] = {}
        self.enqueued: set[str] = set()
        self.excused: set[str] = set()  # refused or purged at some time, or pending, which others may outwait
        self.purged: set[str] = set()
        self.ended: dict[str, JobState] = {}
        self.lives: dict[JobId, Life] = {}
        self.needed: dict[
            JobId, set[Life]
        ] = {}  # by jobs that have not ended: their parents, as they were then
        self.ended_once: set[str] = set()  # an edge stays resolved, also when its parent is requeued

    # What happens

    def _home(self, job_id: str) -> House:
        return self.houses[partition_of(queue_of(JobId(job_id)), PARTITIONS)]

    def _send(self, **command: Json) -> None:
        self.sent += 1
        command_id = f"c{self.sent}"
        self._home(str(command["job_id"])).commands.append(
            {**command, "command_id": command_id, "reply_to": "me"}
        )
        self.sent_before[command_id] = set(self.enqueued)
        self.job_of[command_id] = str(command["job_id"])
        if command["type"] == "enqueue":
            self.enqueued.add(str(command["job_id"]))

    @rule(
        job_id=ANY_JOB,
        parents=st.lists(ANY_JOB, max_size=3),
        mode=st.sampled_from(list(DependencyMode)),
    )
    def enqueue(self, job_id: str, parents: list[str], mode: DependencyMode) -> None:
        if any(self._home(parent) is not self._home(job_id) for parent in parents):
            self.perhaps_held.update(map(JobId, parents))  # by the pending job, or by a dependent elsewhere
        self._send(
            type="enqueue",
            job_id=job_id,
            wire_name="work",
            parents=list(parents),
            mode=mode.value,
            retry={"max_attempts": 1},
        )

    @rule(
        job_id=ANY_JOB,
        picks=st.lists(st.integers(0, 11), min_size=1, max_size=3),
        mode=st.sampled_from(list(DependencyMode)),
        at_once=st.booleans(),
    )
    def enqueue_below(self, job_id: str, picks: list[int], mode: DependencyMode, at_once: bool) -> None:
        """A job whose parents are there, or at least on their way."""
        there = sorted({str(c["job_id"]) for house in self.houses for c in house.commands} - {job_id})
        self.enqueue(job_id, [there[pick % len(there)] for pick in picks] if there else [], mode)
        if at_once:
            self._hear_everything()

    @rule(parent=ANY_JOB, child=ANY_JOB, mode=st.sampled_from(list(DependencyMode)))
    def grow_a_family(self, parent: str, child: str, mode: DependencyMode) -> None:
        """A parent that ends well, and a child that lives on."""
        self.enqueue(parent, [], mode)
        self.enqueue(child, [parent], mode)
        self._hear_everything()
        self.work_one(queue_of(JobId(parent)), succeeds=True)

    @rule(queue=ANY_QUEUE)
    def end_all(self, queue: str) -> None:
        """Everything of a queue ends, and nobody has heard of it yet."""
        house = self._home(f"{queue}/0")
        for job_id in [job.job_id for job in house.state.jobs.values() if not job.state.is_terminal]:
            self._decide(house, playing.cancel(job_id))

    @rule(job_id=ANY_JOB)
    def cancel(self, job_id: str) -> None:
        self._send(type="cancel", job_id=job_id)

    @rule(job_id=ANY_JOB)
    def requeue(self, job_id: str) -> None:
        self._send(type="requeue", job_id=job_id)

    @rule(queue=ANY_QUEUE, succeeds=st.booleans())
    def work_one(self, queue: str, succeeds: bool) -> None:
        house = self._home(f"{queue}/0")
        self._handle_all(house)
        self._decide(house, playing.claim(queue, "w"))
        for job in [job for job in house.state.jobs.values() if job.lease_owner is not None]:
            row: dict[str, Json] = {"job_id": job.job_id, "attempt": job.attempt}
            row |= {"outcome": "Success"} if succeeds else {"outcome": "Failure", "error": "e"}
            self._decide(house, playing.report(str(job.lease_owner), row))

    @rule(queue=ANY_QUEUE, worker=st.sampled_from("vw"), seconds=st.sampled_from([5, 20]), wait=st.booleans())
    def claim(self, queue: str, worker: str, seconds: int, wait: bool) -> None:
        claim = playing.claim(
            queue, worker, max_jobs=2, lease_seconds=seconds, wait_seconds=15 * wait, reply_to=worker
        )
        self._decide(self._home(f"{queue}/0"), claim)

    @rule(queue=ANY_QUEUE, outcome=OUTCOMES, late=st.booleans())
    def report_one(self, queue: str, outcome: dict[str, Json], late: bool) -> None:
        """The oldest lease ends; or somebody reports whose lease is gone."""
        house = self._home(f"{queue}/0")
        for record in house.witness.in_state(JobState.LEASED)[:1]:
            row = {"job_id": record.job_id, "attempt": record.attempt - late, **outcome}
            self._decide(house, playing.report(str(record.lease_owner), row))

    @rule(queue=ANY_QUEUE)
    def heartbeat(self, queue: str) -> None:
        house = self._home(f"{queue}/0")
        for record in house.witness.in_state(JobState.LEASED)[:1]:
            row = playing.lease(record.job_id, record.attempt)
            self._decide(house, playing.heartbeat(str(record.lease_owner), row, lease_seconds=40))

    @rule(
        queue=ANY_QUEUE,
        orders=st.lists(st.sampled_from(ORDERS), min_size=1, max_size=2),
        cron=st.sampled_from(list(EVERY)),
        catch_up=st.sampled_from(["Skip", "Coalesce"]),
        no_overlap=st.booleans(),
    )
    def steer(self, queue: str, orders: list[str], cron: str, catch_up: str, no_overlap: bool) -> None:
        """Operators and schedules. They are one rule, or they would crowd out the families."""
        house, schedule_id = self._home(f"{queue}/0"), f"{queue}/s"
        commands = {
            "pause": playing.pause(queue),
            "resume": playing.resume(queue),
            "limit": playing.limit(queue, 1),
            "no limit": playing.limit(queue, None),
            "put": playing.put_schedule(schedule_id, cron, catch_up=catch_up, no_overlap=no_overlap),
            "trigger": playing.trigger(schedule_id),
            "remove": playing.remove_schedule(schedule_id),
        }
        for order in orders:
            self._decide(house, commands[order])

    @rule(partition=ANY_PARTITION)
    def handle_one(self, partition: int) -> None:
        house = self.houses[partition]
        if house.handled < len(house.commands):
            house.handled += 1
            self._decide(house, house.commands[house.handled - 1])

    @rule(origin=ANY_PARTITION, destination=ANY_PARTITION, times=st.integers(1, 2))
    def deliver_one(self, origin: int, destination: int, times: int = 1) -> None:
        """The next message, perhaps twice: to hear it again changes nothing."""
        channel = self.channels[origin, destination]
        if channel:
            house = self.houses[destination]
            until = len(house.commands) if house.handled < len(house.commands) else None
            raw = channel.popleft()
            for _ in range(times):
                self._take(house, receive(house.state, decode_link(raw), self.now, until=until))

    @rule(partition=ANY_PARTITION)
    def restart(self, partition: int) -> None:
        self.houses[partition].restart()

    @rule(seconds=st.sampled_from([1, 11, 31]))
    def pass_time(self, seconds: int) -> None:
        self.now = Instant(self.now + seconds * SECOND)
        for house in self.houses:
            fired = fire_timers(house.state, self.now)
            while fired.outputs or fired.messages:
                self._take(house, fired)
                fired = fire_timers(house.state, self.now)
            self._take(house, fired)
            self._take(house, end_parked_waits(house.state, self.now))
            house.witness.check_after_timers(self.now)

    @rule()
    def settle(self) -> None:
        """Handle and deliver everything; then nobody may be left waiting for what will not come."""
        self._hear_everything()
        while any(house.state.admissions for house in self.houses):
            # Pending jobs that have named each other give up, and who stood behind one begins to wait.
            answered = len(self.answers)
            self.pass_time(31)
            self._deliver_all()
            assert len(self.answers) > answered
        self._check_rest()

    def _hear_everything(self) -> None:
        for house in self.houses:
            self._handle_all(house)
        self._deliver_all()

    def _deliver_all(self) -> None:
        while any(self.channels.values()):
            for origin, destination in self.channels:
                self.deliver_one(origin, destination)

    def _handle_all(self, house: House) -> None:
        while house.handled < len(house.commands):
            self.handle_one(house.partition)

    def _decide(self, house: House, command: dict[str, Json]) -> None:
        self._take(house, decide(house.state, parse_command(command), self.now, (house.handled,)))

    def _take(self, house: House, decision: Decision) -> None:
        self._look_at(house, decision)
        if house.state.late_edges:
            self._look_at(house, answer_late_links(house.state, self.now, house.handled))
        house.commit()

    def _look_at(self, house: House, decision: Decision) -> None:
        self.excused.update(house.state.admissions)
        for message in decision.messages:
            self._post(house, message)
        for output in decision.outputs:
            if isinstance(output, Transition):
                house.witness.see(output)
                self._event(output)
            else:
                self._answer(output)
        house.witness.check_between_decisions()

    def _post(self, house: House, message: LinkMessage) -> None:
        self.channels[house.partition, target_of(message, PARTITIONS)].append(encode_link(message))

    # What must hold

    def _event(self, event: Transition) -> None:
        if isinstance(event, Enqueued) and event.cause_command_id in self.job_of:
            assert event.cause_command_id not in self.born, "a command bears one job"
            assert event.job_id == self.job_of[event.cause_command_id]
            self.born.add(event.cause_command_id)
        self._check_parents_are_kept(event)
        match event:
            case Purged():
                self.purged.add(event.job_id)
                self.excused.add(event.job_id)
                self.ended.pop(event.job_id, None)
            case JobTransition():
                if event.state.is_terminal:
                    self.ended[event.job_id] = event.state
                    self.ended_once.add(event.job_id)
                elif isinstance(event, Released):
                    job = self._home(event.job_id).state.jobs[event.job_id]
                    assert self.ended_once.issuperset(job.parents)
                elif event.job_id in self.ended:
                    del self.ended[event.job_id]
                if isinstance(event, Cancelled) and event.terminal_cause.startswith("parent-failure:"):
                    assert event.terminal_cause.removeprefix("parent-failure:") in set(JobState)

    def _check_parents_are_kept(self, event: Transition) -> None:
        """On whatever partition. A job that was requeued holds only what was still there."""
        match event:
            case Enqueued() if not event.state.is_terminal:
                self.needed[event.job_id] = {self.lives[parent] for parent in event.parents}
            case JobTransition() if event.state.is_terminal:
                self.needed.pop(event.job_id, None)
            case Purged():
                gone = self.lives.pop(event.job_id)
                assert not any(gone in lives for lives in self.needed.values()), (
                    "a parent that is needed is kept"
                )
        if isinstance(event, Enqueued):
            self.lives[event.job_id] = (event.job_id, event.sequence)

    def _answer(self, output: Addressed) -> None:
        answer = output.answer
        if not isinstance(answer, EnqueueReply) or answer.command_id is None:
            return
        self.answers[answer.command_id] = self.answers.get(answer.command_id, 0) + 1
        if answer.result is Result.OK:
            self.accepted.add(answer.command_id)
        assert (answer.command_id in self.accepted) is (answer.command_id in self.born), "accepted is present"
        if answer.result is Result.UNKNOWN_PARENT:
            assert answer.message is not None
            unknown = answer.message.split()[4]
            assert unknown not in self.sent_before[answer.command_id] or unknown in self.excused
            self.excused.add(self.job_of[answer.command_id])

    @invariant()
    def records_are_the_fold_of_the_log(self) -> None:
        for house in self.houses:
            assert house.state.jobs.keys() == house.witness.jobs.keys()
            for job_id, job in house.state.jobs.items():
                folded = house.witness.jobs[job_id].record
                assert [(name, getattr(job, name)) for name in RECORD_FIELDS] == [
                    (name, getattr(folded, name)) for name in RECORD_FIELDS
                ]

    @invariant()
    def nothing_waits_without_an_edge(self) -> None:
        for house in self.houses:
            for job in house.state.jobs.values():
                assert (job.parents_remaining > 0) == (job.state is JobState.AWAITING_PARENT)
                assert len(job.open_parents) == job.parents_remaining
                assert job.open_dependents >= 0

    def _check_rest(self) -> None:
        assert all(count == 1 for count in self.answers.values())
        assert self.accepted == self.born
        for house in self.houses:
            assert not house.state.admissions
            assert not house.state.late_edges
            assert not house.state.contested
            for job in house.state.jobs.values():
                for parent_id in job.open_parents:
                    parent = self._home(parent_id).state.jobs[JobId(parent_id)]
                    assert not parent.state.is_terminal
                self._check_edges(job)
        enqueues = [c["command_id"] for h in self.houses for c in h.commands if c["type"] == "enqueue"]
        assert set(self.answers) == set(enqueues)

    def _check_edges(self, parent: Job) -> None:
        for edge in parent.edges.values():
            child = self._home(edge.message.child_id).state.jobs[edge.message.child_id]
            assert child.admission == edge.message.admission
            assert not child.state.is_terminal
            assert edge.is_awaited == (parent.job_id in child.open_parents)


TestPartitions = PartitionsMachine.TestCase
TestPartitions.settings = settings(
    max_examples=600 if os.environ.get("TIDELOG_RANDOM") == "slow" else 60,
    stateful_step_count=80,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
