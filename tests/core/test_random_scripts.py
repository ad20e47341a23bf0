"""Random commands and time against one partition: what never happens, and that a restart changes nothing.

Two states are driven side by side. One lives on; the other is thrown away and rebuilt from the changelog at
random. They must decide alike, whatever comes. `TIDELOG_RANDOM=slow` looks much longer.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import deepcopy

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from tests.core import playing
from tests.core.witness import Witness

from tidelog.core.changelog import InputPositions, position_change, restore, take_changes
from tidelog.core.decide import decide, end_parked_waits, fire_timers
from tidelog.core.decision import Decision
from tidelog.core.state import Job, PartitionState, Queue, Retention
from tidelog_events.identity import JobId, Partition, QueueName
from tidelog_events.instants import SECOND, Instant, Micros
from tidelog_events.parsing import Refusal, parse_command
from tidelog_events.record import RECORD_FIELDS, JobRecord
from tidelog_events.states import JobState
from tidelog_events.transitions import Transition
from tidelog_events.wire import WireObject

RETENTION = Retention(
    succeeded=Micros(30 * SECOND),
    cancelled=Micros(20 * SECOND),
    dead_lettered=Micros(60 * SECOND),
    quarantined=Micros(0),
)

QUEUES = st.sampled_from(["q", "r"])
JOB_IDS = st.builds("{}/{}".format, QUEUES, st.integers(0, 7))
WORKERS = st.sampled_from(["v", "w"])
DELAYS = st.sampled_from([0, 0.5, 1, 3, 7])
COMMAND_IDS = st.sampled_from(["c", "d", None])
RETRIES = st.one_of(
    st.none(),
    st.builds(
        lambda tries, delays: {"max_attempts": tries, "delays": delays},
        st.integers(1, 3),
        st.lists(DELAYS, min_size=1, max_size=2),
    ),
)
OUTCOMES = st.sampled_from(
    [
        {"outcome": "Success", "output": 7, "add_tags": ["done"]},
        {"outcome": "Success", "output": "too large"},
        {"outcome": "Failure", "error": "e"},
        {"outcome": "Failure", "error": "e", "next_due": None},
        {"outcome": "Failure", "error": "e", "next_due": "1970-01-01T00:00:05Z", "add_tags": ["tried"]},
        {"outcome": "Failure", "error": "e", "next_due": "1970-01-01T00:01:00Z"},
        {"outcome": "Cancelled"},
        {"outcome": "Unroutable", "reason": "r"},
        {"outcome": "Returned"},
    ]
)


class PartitionMachine(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.now = Instant(0)
        self.position = 0
        self.living = PartitionState(Partition(0), 1, RETENTION)
        self.twin = PartitionState(Partition(0), 1, RETENTION)
        self.changelog: dict[str, bytes] = {}
        self.witness = Witness(RETENTION)

    @rule(
        job_id=JOB_IDS,
        parents=st.lists(JOB_IDS, max_size=3),
        mode=st.sampled_from(["OnSuccess", "OnAnyTerminal"]),
        retry=RETRIES,
        due=st.sampled_from([None, None, "1970-01-01T00:00:20Z", "1970-01-01T00:00:00Z"]),
        command_id=COMMAND_IDS,
    )
    def enqueue(
        self,
        job_id: str,
        parents: list[str],
        mode: str,
        retry: WireObject | None,
        due: str | None,
        command_id: str | None,
    ) -> None:
        known = [parent for parent in parents if JobId(parent) in self.witness.jobs]
        fields = {"mode": mode, "retry": retry, "due_time": due, "command_id": command_id}
        self.command(playing.enqueue(job_id, parents=known or parents[:1], **fields))

    @rule(
        queue=QUEUES,
        worker=WORKERS,
        max_jobs=st.integers(1, 4),
        lease_seconds=st.sampled_from([1, 2, 10]),
        wait_seconds=st.sampled_from([0, 0, 2, 5]),
    )
    def claim(self, queue: str, worker: str, max_jobs: int, lease_seconds: int, wait_seconds: int) -> None:
        self.command(
            playing.claim(
                queue,
                worker,
                max_jobs=max_jobs,
                lease_seconds=lease_seconds,
                wait_seconds=wait_seconds,
                reply_to=f"inbox-{worker}",
            )
        )

    @rule(data=st.data(), outcomes=st.lists(OUTCOMES, min_size=1, max_size=3), off=st.integers(-1, 9))
    def report(self, data: st.DataObject, outcomes: list[WireObject], off: int) -> None:
        rows = [{**self.lease_row(data, off), **outcome} for outcome in outcomes]
        for row in rows:
            if row.get("output") == "too large":
                row["output"] *= 10_000
        self.command(playing.report(data.draw(WORKERS), *rows))

    @rule(data=st.data(), seconds=st.sampled_from([0.5, 1, 4, 20]), off=st.integers(-1, 9))
    def heartbeat(self, data: st.DataObject, seconds: float, off: int) -> None:
        row = self.lease_row(data, off)
        self.command(playing.heartbeat(data.draw(WORKERS), row, row, lease_seconds=seconds))

    @rule(job_id=JOB_IDS, actor=st.sampled_from([None, "ann"]))
    def cancel(self, job_id: str, actor: str | None) -> None:
        self.command(playing.cancel(job_id, actor=actor))

    @rule(job_id=JOB_IDS)
    def requeue(self, job_id: str) -> None:
        self.command(playing.requeue(job_id))

    @rule(queue=QUEUES)
    def pause(self, queue: str) -> None:
        self.command(playing.pause(queue, actor="ann"))

    @rule(queue=QUEUES)
    def resume(self, queue: str) -> None:
        self.command(playing.resume(queue))

    @rule(queue=QUEUES, bound=st.sampled_from([None, 1, 2]))
    def limit(self, queue: str, bound: int | None) -> None:
        self.command(playing.limit(queue, bound))

    @rule(micros=st.sampled_from([1, SECOND // 2, SECOND, 4 * SECOND, 30 * SECOND]))
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

    def lease_row(self, data: st.DataObject, off: int) -> WireObject:
        """A lease that is held, mostly; its numbers are off by some now and then."""
        held = self.witness.in_state(JobState.LEASED)
        if not held:
            return playing.lease(data.draw(JOB_IDS))
        record = data.draw(st.sampled_from(held))
        lease = self.living.jobs[record.job_id].lease
        assert lease is not None
        if off == 0:
            return playing.lease(record.job_id, record.attempt + 1)
        return playing.lease(record.job_id, record.attempt, lease=lease - 1 if off == -1 else lease)

    def command(self, written: WireObject) -> None:
        command = parse_command(written)
        assert not isinstance(command, Refusal), command
        self.timers()
        self.position += 1
        self.both(lambda state: decide(state, deepcopy(command), self.now, (self.position,)))

    def timers(self) -> None:
        while self.both(lambda state: fire_timers(state, self.now)).outputs:
            pass
        self.both(lambda state: end_parked_waits(state, self.now))
        self.witness.check_after_timers(self.now)

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


def fields_of(record: JobRecord) -> list[object]:
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
    )


_slow = os.environ.get("TIDELOG_RANDOM") == "slow"
TestRandomScripts = PartitionMachine.TestCase
TestRandomScripts.settings = settings(
    max_examples=2_000 if _slow else 60,
    stateful_step_count=120 if _slow else 50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
