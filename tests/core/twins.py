"""Two states of one partition side by side, and a witness who reads what they decide.

One lives on; the other is thrown away and rebuilt from the changelog at random. They must decide alike,
whatever comes. Machines with rules of their own stand on this one.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.core.witness import Witness
from tests.fold import Folded

from tidelog.core.changelog import InputPositions, position_change, restore, take_changes
from tidelog.core.decide import decide, end_parked_waits, fire_timers
from tidelog.core.decision import Decision
from tidelog.core.state import Job, PartitionState, Queue, Retention
from tidelog_events.identity import JobId, Partition, QueueName
from tidelog_events.instants import SECOND, Instant, Micros
from tidelog_events.parsing import Refusal, parse_command
from tidelog_events.record import RECORD_FIELDS, JobRecord
from tidelog_events.states import JobState
from tidelog_events.transitions import LeaseExpired, Transition
from tidelog_events.wire import WireObject

RETENTION = Retention(
    succeeded=Micros(30 * SECOND),
    cancelled=Micros(20 * SECOND),
    dead_lettered=Micros(60 * SECOND),
    quarantined=Micros(0),
)


class TwinMachine(RuleBasedStateMachine):
    """Time, restarts, and what must hold all along."""

    @initialize()
    def begin(self) -> None:
        self.now = Instant(0)
        self.position = 0
        self.living = PartitionState(Partition(0), 1, RETENTION)
        self.twin = PartitionState(Partition(0), 1, RETENTION)
        self.changelog: dict[str, bytes] = {}
        self.witness = Witness(RETENTION)

    @rule(micros=st.sampled_from([1, SECOND // 2, SECOND, 2 * SECOND, 4 * SECOND, 30 * SECOND]))
    def time_passes(self, micros: int) -> None:
        """The engine is asleep in between: what falls due is handled late, all at once."""
        self.now = Instant(self.now + micros)
        self.timers()

    @rule()
    def time_passes_to_the_next_timer(self) -> None:
        """A timer may prove to be nothing; a rebuilt index has others of those than one that has lived."""
        timers = [state.next_timer() for state in (self.living, self.twin)]
        due = min((timer for timer in timers if timer is not None), default=self.now)
        self.now = max(self.now, due)
        self.timers()

    @rule()
    def clock_goes_back(self) -> None:
        decision = self.both(lambda state: fire_timers(state, Instant(self.now - 5 * SECOND)))
        assert decision.now == self.now

    @rule()
    def restart(self) -> None:
        """The twin dies. Parked claims are in memory alone: the living one is made to forget its own."""
        for queue in self.living.waiting_queues.values():
            queue.parked.clear()
        self.living.waiting_queues.clear()
        positions = InputPositions(self.position, 0)
        self.changelog["@position"] = position_change(self.living, positions).value or b""
        restored = restore(self.changelog.items(), Partition(0), 1, RETENTION)
        assert restored.positions == positions
        self.twin = restored.state
        assert essence(self.twin) == essence(self.living)

    @invariant()
    def records_are_the_fold_of_the_log(self) -> None:
        assert self.living.jobs.keys() == self.witness.jobs.keys()
        for job_id, job in self.living.jobs.items():
            seen = self.witness.jobs[job_id].record
            assert fields_of(job) == fields_of(seen)
        for name, queue in self.living.queues.items():
            assert queue.leased == len(self.witness.in_state(JobState.LEASED, name))
        assert self.living.sequence == self.witness.sequence

    def command(self, written: WireObject) -> Decision:
        command = parse_command(written)
        assert not isinstance(command, Refusal), command
        self.timers()
        self.position += 1
        return self.both(lambda state: decide(state, deepcopy(command), self.now, (self.position,)))

    def timers(self) -> None:
        while outputs := self.both(lambda state: fire_timers(state, self.now)).outputs:
            expired = [event.job_id for event in outputs if isinstance(event, LeaseExpired)]
            assert expired == sorted(expired, key=self.enqueue_order), "expiries go by enqueue order"
        self.both(lambda state: end_parked_waits(state, self.now))
        self.witness.check_after_timers(self.now)

    def enqueue_order(self, job_id: JobId) -> int:
        return self.living.jobs[job_id].enqueue_sequence

    def both(self, decision_of: Callable[[PartitionState], Decision]) -> Decision:
        """Let both decide; see that they decide alike, and that it is allowed."""
        decision = decision_of(self.living)
        assert decision_of(self.twin).outputs == decision.outputs
        for output in decision.outputs:
            if isinstance(output, Transition):
                self.witness.see(output)
        self.witness.check_between_decisions()
        for change in take_changes(self.living):
            if change.value is None:
                self.changelog.pop(change.key, None)
            else:
                self.changelog[change.key] = change.value
        return decision


def fields_of(record: JobRecord | Folded) -> list[object]:
    return [getattr(record, name) for name in RECORD_FIELDS]


def essence(state: PartitionState) -> object:
    """All that must survive a restart. What a rebuilt index may hold more or less of is left out."""

    def of_job(job: Job) -> object:
        return (
            fields_of(job),
            (job.ordinal, job.enqueue_command_id, job.lease, job.lease_reply_to),
            (job.parents, job.open_parents, list(job.waiting), job.open_dependents),
        )

    def of_queue(queue: Queue) -> object:
        return queue.paused, queue.paused_at, queue.paused_by, queue.limit, queue.leased

    idle = of_queue(Queue(QueueName("idle")))
    return (
        {job_id: of_job(job) for job_id, job in state.jobs.items()},
        {name: of_queue(queue) for name, queue in state.queues.items() if of_queue(queue) != idle},
        (state.sequence, state.now),
        (state.timetable.schedules, state.timetable.live, state.timetable.triggered),
    )
