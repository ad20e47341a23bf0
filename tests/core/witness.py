"""A witness of a partition: it knows the log and nothing else, and says what must never happen."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.core.schedule_witness import ScheduleWitness
from tests.fold import Folded

from tidelog.core.state import Retention
from tidelog_events.identity import JobId, Partition, QueueName, Sequence, partition_of, queue_of
from tidelog_events.instants import Instant
from tidelog_events.states import LEGAL_STEPS, DependencyMode, JobState
from tidelog_events.transitions import (
    ConcurrencyLimitSet,
    Enqueued,
    JobFact,
    JobTransition,
    Leased,
    LeaseExpired,
    ParentResolved,
    Purged,
    QueueFact,
    QueuePaused,
    QueueResumed,
    Requeued,
    ScheduleTicked,
    Transition,
)

ONLY = Partition(0)

Life = tuple[JobId, Sequence]
"""A job by its id and its enqueue sequence: an id may be born again."""


@dataclass(slots=True)
class _Seen:
    """A job as the log has told it."""

    record: Folded
    ordinal: int
    parents: list[Life]
    parents_elsewhere: list[JobId]
    resolved: set[Life] = field(default_factory=set)
    resolved_elsewhere: set[JobId] = field(default_factory=set)
    lease: Sequence | None = None

    @property
    def life(self) -> Life:
        return self.record.job_id, self.record.enqueue_sequence


@dataclass(slots=True)
class _SeenQueue:
    paused: bool = False
    limit: int | None = None


@dataclass(slots=True)
class Witness:
    """Reads the events in their order; every broken promise is an `AssertionError`.

    Of parents in other partitions it knows only what this partition's log says. A job that may be held back
    by what its log does not show, a pending job or a dependent in another partition, is not expected to go
    (`perhaps_held`, which the test fills).
    """

    retention: Retention
    partition: Partition = ONLY
    partitions: int = 1
    perhaps_held: set[JobId] = field(default_factory=set)
    jobs: dict[JobId, _Seen] = field(default_factory=dict)
    queues: dict[QueueName, _SeenQueue] = field(default_factory=dict)
    schedules: ScheduleWitness = field(default_factory=ScheduleWitness)
    sequence: int = 0
    now: Instant = Instant(0)

    def queue(self, name: QueueName) -> _SeenQueue:
        return self.queues.setdefault(name, _SeenQueue())

    def in_state(self, state: JobState, queue: QueueName | None = None) -> list[Folded]:
        """The records of the jobs in a state, in the order of enqueueing."""
        return [
            seen.record
            for seen in self.jobs.values()
            if seen.record.state is state and queue in (None, seen.record.queue)
        ]

    def grantable(self, name: QueueName, now: Instant) -> int:
        """How many jobs of a queue a claim could be granted now."""
        queue = self.queue(name)
        if queue.paused:
            return 0
        due = sum(job.due_time <= now for job in self.in_state(JobState.SCHEDULED, name))
        if queue.limit is None:
            return due
        return max(0, min(due, queue.limit - len(self.in_state(JobState.LEASED, name))))

    def see(self, event: Transition) -> None:
        """Take the next event in."""
        assert event.sequence == self.sequence, "sequences are dense"
        assert event.at >= self.now, "time never goes back"
        self.sequence += 1
        self.now = event.at
        ticked = isinstance(event, ScheduleTicked)
        self.schedules.see(event, [seen.record for seen in self.jobs.values()] if ticked else ())
        match event:
            case Enqueued():
                self._see_birth(event)
            case JobFact():
                self._see_fact(event)
            case Purged():
                self._see_purge(event)
            case QueueFact():
                self._see_queue(event)

    def _see_birth(self, event: Enqueued) -> None:
        assert event.job_id not in self.jobs, "an id is free only after its purge"
        assert (None, event.state) in LEGAL_STEPS
        assert (event.ordinal, event.attempt) == (0, 0)
        parents = [self.jobs[parent] for parent in event.parents if self._is_home_of(parent)]
        elsewhere = [parent for parent in event.parents if not self._is_home_of(parent)]
        born = _Seen(Folded.born(event), 0, [parent.life for parent in parents], elsewhere)
        # An edge stays resolved, also when the parent is requeued.
        born.resolved.update(parent.life for parent in parents if parent.record.state.is_terminal)
        self.jobs[event.job_id] = born
        if event.state is JobState.CANCELLED:
            causes = [
                f"parent-failure:{seen.record.state}" for seen in parents if _fails(seen.record, event.mode)
            ]
            assert elsewhere or event.terminal_cause == causes[0]
        else:
            assert not any(_fails(seen.record, event.mode) for seen in parents)

    def _see_fact(self, event: JobFact) -> None:
        seen = self.jobs[event.job_id]
        before = seen.record.state
        if before is JobState.LEASED and seen.record.lease_expiry is not None:
            expired = isinstance(event, LeaseExpired)
            assert (seen.record.lease_expiry <= event.at) is expired, "a lease ends at its expiry"
        if isinstance(event, JobTransition):
            assert (before, event.state) in LEGAL_STEPS, f"{before} to {event.state}"
            assert event.ordinal == seen.ordinal + 1, "ordinals are dense"
            seen.ordinal = event.ordinal
        else:
            assert event.state is before
        if isinstance(event, Leased):
            self._see_lease(seen.record, event)
            seen.lease = event.sequence
        elif isinstance(event, ParentResolved):
            self._see_edge(seen, event)
        else:
            assert event.attempt == (0 if isinstance(event, Requeued) else seen.record.attempt)
        seen.record.follow(event)

    def _see_lease(self, record: Folded, event: Leased) -> None:
        assert event.attempt == record.attempt + 1
        assert event.lease_expiry > event.at
        assert record.due_time <= event.at, "nothing is granted before it is due"
        queue = self.queue(event.queue)
        assert not queue.paused, "nothing is granted from a paused queue"
        held = len(self.in_state(JobState.LEASED, event.queue))
        assert queue.limit is None or held < queue.limit, "the limit holds"
        first = min(
            (job.due_time, job.enqueue_sequence) for job in self.in_state(JobState.SCHEDULED, event.queue)
        )
        assert (record.due_time, record.enqueue_sequence) == first, "the claim order holds"

    def _see_edge(self, seen: _Seen, event: ParentResolved) -> None:
        assert event.parents_remaining == seen.record.parents_remaining - 1 > 0
        if not self._is_home_of(event.parent_id):
            assert event.parent_id in seen.parents_elsewhere
            assert event.parent_id not in seen.resolved_elsewhere, "an edge resolves once"
            seen.resolved_elsewhere.add(event.parent_id)
            return
        parent = self.jobs[event.parent_id]
        assert parent.life in seen.parents
        assert parent.life not in seen.resolved, "an edge resolves once"
        assert parent.record.state is event.parent_state
        seen.resolved.add(parent.life)

    def _see_purge(self, event: Purged) -> None:
        seen = self.jobs.pop(event.job_id)
        assert seen.record.terminal_at is not None
        assert seen.record.terminal_at + self.retention.of(seen.record.state) <= event.at
        assert not self._kept(seen), "a living dependent keeps its parents"

    def _kept(self, seen: _Seen) -> bool:
        return any(
            seen.life in other.parents and not other.record.state.is_terminal for other in self.jobs.values()
        )

    def _may_be_kept(self, seen: _Seen) -> bool:
        return self._kept(seen) or seen.record.job_id in self.perhaps_held

    def _is_home_of(self, job_id: JobId) -> bool:
        return partition_of(queue_of(job_id), self.partitions) == self.partition

    def _see_queue(self, event: QueueFact) -> None:
        queue = self.queue(event.queue)
        match event:
            case QueuePaused():
                queue.paused = True
            case QueueResumed():
                queue.paused = False
            case ConcurrencyLimitSet():
                queue.limit = event.limit

    def check_between_decisions(self) -> None:
        """What holds whenever nothing is being decided."""
        for seen in self.jobs.values():
            record = seen.record
            assert (record.parents_remaining > 0) is (record.state is JobState.AWAITING_PARENT)
            if record.state is JobState.AWAITING_PARENT:
                open_edges = [life for life in seen.parents if life not in seen.resolved]
                elsewhere = record.parents_remaining - len(open_edges)
                assert 0 <= elsewhere <= len(seen.parents_elsewhere) - len(seen.resolved_elsewhere)
                for job_id, _ in open_edges:
                    assert not self.jobs[job_id].record.state.is_terminal, "no job waits for nobody"
            leased = record.state is JobState.LEASED
            assert (record.lease_owner is not None, record.lease_expiry is not None) == (leased, leased)
            ended = record.state.is_terminal
            assert (record.terminal_at is not None) is ended
            assert not (ended and record.cancel_requested)

    def check_after_timers(self, now: Instant) -> None:
        """What holds when the timers of an instant have fired: nothing that is due was forgotten."""
        self.schedules.check_after_timers(now)
        for seen in self.jobs.values():
            record = seen.record
            assert record.lease_expiry is None or record.lease_expiry > now, "leases expire"
            if record.terminal_at is not None and not self._may_be_kept(seen):
                assert record.terminal_at + self.retention.of(record.state) > now, "ended jobs go"


def _fails(parent: Folded, mode: DependencyMode) -> bool:
    return (
        mode is DependencyMode.ON_SUCCESS
        and parent.state.is_terminal
        and parent.state is not JobState.SUCCEEDED
    )
