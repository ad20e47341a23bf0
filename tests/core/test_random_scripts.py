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
from tests.fold import Folded

from tidelog.core.changelog import InputPositions, position_change, restore, take_changes
from tidelog.core.decide import decide, end_parked_waits, fire_timers
from tidelog.core.decision import Addressed, Decision
from tidelog.core.state import Job, PartitionState, Queue, Retention
from tidelog_events.identity import JobId, Partition, QueueName
from tidelog_events.instants import SECOND, Instant, Micros
from tidelog_events.parsing import Refusal, parse_command
from tidelog_events.record import RECORD_FIELDS, JobRecord
from tidelog_events.replies import CancelRequestedPush, ReportReply, RowResult
from tidelog_events.states import JobState
from tidelog_events.transitions import Leased, LeaseExpired, Transition
from tidelog_events.wire import WireObject

RETENTION = Retention(
    succeeded=Micros(30 * SECOND),
    cancelled=Micros(20 * SECOND),
    dead_lettered=Micros(60 * SECOND),
    quarantined=Micros(0),
)

QUEUES = st.sampled_from(["q", "r"])
ALL_JOB_IDS = [f"{queue}/{number}" for queue in "qr" for number in range(8)]
JOB_IDS = st.sampled_from(ALL_JOB_IDS)
MODES = st.sampled_from(["OnSuccess", "OnAnyTerminal"])
DUE_TIMES = st.sampled_from([None, None, None, "1970-01-01T00:00:20Z", "1970-01-01T00:00:00Z"])
ERRORS = st.sampled_from([None] * 9 + ["attempt", "lease", "worker"])
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
OUTCOMES: st.SearchStrategy[WireObject] = st.sampled_from(
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

    @rule(data=st.data(), count=st.integers(1, 4), retry=RETRIES, command_id=COMMAND_IDS)
    def enqueue(
        self, data: st.DataObject, count: int, retry: WireObject | None, command_id: str | None
    ) -> None:
        """Bear jobs under free ids, mostly below jobs that are there."""
        for _ in range(count):
            free = [job_id for job_id in ALL_JOB_IDS if JobId(job_id) not in self.witness.jobs]
            if not free:
                return
            known = sorted(self.witness.jobs)
            parents = data.draw(st.lists(st.sampled_from(known), max_size=3)) if known else []
            self.command(
                playing.enqueue(
                    data.draw(st.sampled_from(free)),
                    parents=parents,
                    mode=data.draw(MODES),
                    due_time=data.draw(DUE_TIMES),
                    retry=retry,
                    command_id=command_id,
                )
            )

    @rule(job_id=JOB_IDS, parents=st.lists(JOB_IDS, max_size=2), mode=MODES, command_id=COMMAND_IDS)
    def enqueue_blindly(self, job_id: str, parents: list[str], mode: str, command_id: str | None) -> None:
        """Under any id, perhaps a taken one, below any others, perhaps unknown ones."""
        self.command(playing.enqueue(job_id, parents=parents, mode=mode, command_id=command_id))

    @rule(data=st.data(), queue=QUEUES, worker=WORKERS, max_jobs=st.integers(1, 4))
    def work(self, data: st.DataObject, queue: str, worker: str, max_jobs: int) -> None:
        """Claim, and report at once what was granted."""
        self.command(playing.claim(queue, worker, max_jobs=max_jobs, reply_to=f"inbox-{worker}"))
        held = [job for job in self.witness.in_state(JobState.LEASED) if job.lease_owner == worker]
        rows = [{**playing.lease(job.job_id, job.attempt), **data.draw(OUTCOMES)} for job in held]
        self.report_rows(worker, rows)

    @rule(
        queue=QUEUES,
        worker=WORKERS,
        max_jobs=st.integers(1, 4),
        lease_seconds=st.sampled_from([1, 2, 10]),
        wait_seconds=st.sampled_from([0, 0, 2, 5]),
    )
    def claim(self, queue: str, worker: str, max_jobs: int, lease_seconds: int, wait_seconds: int) -> None:
        self.timers()
        grantable = self.witness.grantable(QueueName(queue), self.now)
        decision = self.command(
            playing.claim(
                queue,
                worker,
                max_jobs=max_jobs,
                lease_seconds=lease_seconds,
                wait_seconds=wait_seconds,
                reply_to=f"inbox-{worker}",
            )
        )
        leased = [output for output in decision.outputs if isinstance(output, Leased)]
        assert len(leased) == min(max_jobs, grantable), "what is due is granted"

    @rule(data=st.data(), outcomes=st.lists(OUTCOMES, min_size=1, max_size=3))
    def report(self, data: st.DataObject, outcomes: list[WireObject]) -> None:
        worker, rows = self.rows_of_a_worker(data, len(outcomes))
        self.report_rows(worker, [{**row, **outcome} for row, outcome in zip(rows, outcomes, strict=True)])

    @rule(data=st.data(), seconds=st.sampled_from([0.5, 1, 4, 20]), count=st.integers(1, 3))
    def heartbeat(self, data: st.DataObject, seconds: float, count: int) -> None:
        worker, rows = self.rows_of_a_worker(data, count)
        self.command(playing.heartbeat(worker, *rows, lease_seconds=seconds))

    @rule(data=st.data(), actor=st.sampled_from([None, "ann"]))
    def cancel(self, data: st.DataObject, actor: str | None) -> None:
        leased = [record.job_id for record in self.witness.in_state(JobState.LEASED)]
        job_id = data.draw(st.sampled_from([*leased, *leased, *ALL_JOB_IDS]))
        self.timers()
        seen = self.witness.jobs.get(JobId(job_id))
        owner = None if seen is None else seen.record.lease_owner
        decision = self.command(playing.cancel(job_id, actor=actor))
        told = [
            output.to
            for output in decision.outputs
            if isinstance(output, Addressed) and isinstance(output.answer, CancelRequestedPush)
        ]
        assert told == ([] if owner is None else [f"inbox-{owner}"]), "the owner is told"

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

    @invariant()
    def no_claim_waits_beside_work_that_it_could_have(self) -> None:
        for name in self.living.waiting_queues:
            assert self.witness.grantable(name, self.now) == 0

    def report_rows(self, worker: str, rows: list[WireObject]) -> None:
        for row in rows:
            if row.get("output") == "too large":
                row["output"] *= 10_000
        self.timers()
        held = [self.holds(worker, row) for row in rows]
        decision = self.command(playing.report(worker, *rows))
        (reply,) = [
            output.answer
            for output in decision.outputs
            if isinstance(output, Addressed) and isinstance(output.answer, ReportReply)
        ]
        for result, was_held in zip(reply.results, held, strict=True):
            assert was_held or result is RowResult.STALE_LEASE, "the fence holds"

    def holds(self, worker: str, row: WireObject) -> bool:
        """The fence, as the log alone tells it."""
        seen = self.witness.jobs.get(row["job_id"])
        if seen is None or seen.record.state is not JobState.LEASED:
            return False
        record = seen.record
        return (record.lease_owner, record.attempt, seen.lease) == (
            worker,
            row["attempt"],
            row.get("lease", seen.lease),
        )

    def rows_of_a_worker(self, data: st.DataObject, count: int) -> tuple[str, list[WireObject]]:
        """Leases that a worker holds, mostly: a row, or the worker, is wrong now and then."""
        held = self.witness.in_state(JobState.LEASED)
        if not held:
            return data.draw(WORKERS), [playing.lease(data.draw(JOB_IDS)) for _ in range(count)]
        rows: list[WireObject] = []
        worker = str(held[0].lease_owner)
        for _ in range(count):
            record = data.draw(st.sampled_from(held))
            lease = self.witness.jobs[record.job_id].lease
            assert lease is not None
            match data.draw(ERRORS):
                case "attempt":
                    rows.append(playing.lease(record.job_id, record.attempt + 1))
                case "lease":
                    rows.append(playing.lease(record.job_id, record.attempt, lease=lease - 1))
                case "worker":
                    worker = "somebody else"
                case _:
                    worker = str(record.lease_owner)
                    rows.append(playing.lease(record.job_id, record.attempt, lease=lease))
        return worker, rows + [playing.lease("q/none")] * (count - len(rows))

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
    )


_slow = os.environ.get("TIDELOG_RANDOM") == "slow"
TestRandomScripts = PartitionMachine.TestCase
TestRandomScripts.settings = settings(
    max_examples=2_000 if _slow else 150,
    stateful_step_count=120 if _slow else 50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
