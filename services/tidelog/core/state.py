"""The state of one partition: its jobs, its queues, and the indexes that make decisions fast.

Only `evolve` changes what stands here by an event; the rules read it and emit events.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TypeAlias

from tidelog.core.link import EdgeKey, LinkParent
from tidelog.core.timetable import Timetable
from tidelog_events.bounds import MAX_CLAIMED_JOBS
from tidelog_events.codec import encode_command
from tidelog_events.commands import Cancel, Claim, Enqueue
from tidelog_events.identity import (
    ClientId,
    CommandId,
    JobId,
    Partition,
    QueueName,
    Sequence,
    WorkerId,
    partition_of,
    queue_of,
)
from tidelog_events.instants import SECOND, Instant, Micros
from tidelog_events.record import JobRecord
from tidelog_events.states import JobState
from tidelog_events.transitions import Enqueued

Timer: TypeAlias = tuple[Instant, Sequence, JobId]
"""An entry of a heap: when, and which job: the enqueue sequence tells one life of an id from the next."""

_DAY = 24 * 3_600 * SECOND


@dataclass(frozen=True, slots=True)
class Retention:
    """How long an ended job is kept, by the state that it ended in (contract section 3, Retention)."""

    succeeded: Micros = Micros(_DAY)
    cancelled: Micros = Micros(_DAY)
    dead_lettered: Micros = Micros(14 * _DAY)
    quarantined: Micros = Micros(14 * _DAY)

    def of(self, state: JobState) -> Micros:
        """The keep time of a terminal state."""
        match state:
            case JobState.SUCCEEDED:
                return self.succeeded
            case JobState.CANCELLED:
                return self.cancelled
            case JobState.DEAD_LETTERED:
                return self.dead_lettered
            case JobState.QUARANTINED:
                return self.quarantined
        raise ValueError(f"{state} is not a terminal state")


@dataclass(slots=True, kw_only=True)
class Job(JobRecord):
    """A JobRecord and what only the engine needs to know of the job.

    Attributes:
        ordinal: of its newest transition.
        enqueue_command_id: of the command that bore it; the same command again is answered as the first time.
        lease: the number of its current lease.
        lease_reply_to: whom to tell when its cancellation is asked for.
        lease_timer: the instant of its entry in the heap of leases, at or before its expiry.
        parents: the jobs that it names, each with its enqueue sequence: an id may be born again.
        open_parents: those of them that it waits for.
        waiting: the jobs of its partition that wait for it, in the order in which they were enqueued.
        open_dependents: how many jobs of its partition that name it have not ended.
        edges: to the jobs elsewhere that name it and have not ended.
        admission: the number under which it was admitted; None when all its parents live in its partition.
    """

    ordinal: int = 0
    enqueue_command_id: CommandId | None = None
    lease: Sequence | None = None
    lease_reply_to: ClientId | None = None
    lease_timer: Instant | None = None
    parents: dict[JobId, Sequence] = field(default_factory=dict)
    open_parents: dict[JobId, None] = field(default_factory=dict)
    waiting: dict[JobId, None] = field(default_factory=dict)
    open_dependents: int = 0
    edges: dict[EdgeKey, Edge] = field(default_factory=dict)
    admission: int | None = None

    def begin(self, event: Enqueued) -> None:
        """Set every field, of a job that was enqueued just now."""
        JobRecord.begin(self, event)  # a dataclass with slots is made twice, and `super` knows the first one
        self.ordinal = event.ordinal
        self.enqueue_command_id = event.cause_command_id
        self.lease = None
        self.lease_reply_to = None
        self.lease_timer = None
        self.parents = {}
        self.open_parents = {}
        self.waiting = {}
        self.open_dependents = 0
        self.edges = {}
        self.admission = None

    @property
    def is_kept(self) -> bool:
        """Whether a job that has not ended names it."""
        return bool(self.open_dependents or self.edges)

    @property
    def charged(self) -> int:
        """Tries that count against the attempt ceiling."""
        return self.attempt - self.returned


@dataclass(slots=True)
class ParkedClaim:
    """A claim that waits for work. `number` is its place in the order of parking."""

    number: int
    claim: Claim
    until: Instant


@dataclass(frozen=True, slots=True)
class ParentAnswer:
    """How a parent is, as its partition has said. `state` None: there is no such job."""

    state: JobState | None
    sequence: Sequence | None

    @property
    def is_open(self) -> bool:
        """Whether the parent has yet to end."""
        return self.state is not None and not self.state.is_terminal


UNKNOWN_PARENT = ParentAnswer(None, None)


MAX_HELD_BYTES = 512 * 1024
"""Of the commands about a pending job that are held: with its own, they fit into an entry."""


@dataclass(slots=True)
class Admission:
    """A job that is not born yet, because parents of other partitions are asked after.

    Attributes:
        number: names it in messages; never used again in its partition.
        answers: by parent, in the order of the command; None where there is none yet.
        held, held_bytes: what else was asked about its id meanwhile, and how much that is.
        edges: from jobs elsewhere that name it as a parent.
        waiters: pending jobs of its partition that do so.
        held_parents: parents of its partition, kept as long as it is pending.
    """

    job_id: JobId
    number: int
    command: Enqueue
    answers: dict[JobId, ParentAnswer | None]
    held: list[Enqueue | Cancel] = field(default_factory=list)
    held_bytes: int = 0
    edges: dict[EdgeKey, Edge] = field(default_factory=dict)
    waiters: dict[JobId, None] = field(default_factory=dict)
    held_parents: dict[JobId, None] = field(default_factory=dict)

    def hold(self, command: Enqueue | Cancel) -> bool:
        """Keep a command until the job is decided; False when too much waits already."""
        size = len(encode_command(command))
        if self.held_bytes + size > MAX_HELD_BYTES:
            return False
        self.held.append(command)
        self.held_bytes += size
        return True

    @property
    def is_answered(self) -> bool:
        """Whether nothing is left to wait for."""
        return None not in self.answers.values()


@dataclass(slots=True)
class Edge:
    """A job elsewhere that names a job of this partition as its parent.

    Attributes:
        message: the link with which it began.
        until: the offset of the commands up to which the answer must wait; None: it need not.
        parent_sequence: of the life of the parent that it holds; None while there is no answer yet.
        is_awaited: whether the job waits for the parent's end.
    """

    message: LinkParent
    until: int | None = None
    parent_sequence: Sequence | None = None
    is_awaited: bool = False


def claim_key(job: JobRecord) -> tuple[Instant, Sequence]:
    """The claim order: by due time, then by enqueue sequence (contract section 3)."""
    return job.due_time, job.enqueue_sequence


@dataclass(slots=True)
class Queue:
    """A queue of the partition: its settings, its leases counted, its work in claim order."""

    name: QueueName
    paused: bool = False
    paused_at: Instant | None = None
    paused_by: str | None = None
    limit: int | None = None
    leased: int = 0
    ready: list[Timer] = field(default_factory=list)
    stale: int = 0
    parked: dict[WorkerId, ParkedClaim] = field(default_factory=dict)

    @property
    def room(self) -> int:
        """How many of its jobs may be leased now, whether there are so many or not."""
        if self.paused:
            return 0
        if self.limit is None:
            return MAX_CLAIMED_JOBS
        return max(self.limit - self.leased, 0)

    @property
    def has_settings(self) -> bool:
        """Whether there is anything about the queue itself to remember."""
        return self.paused or self.limit is not None


# A heap is swept when it holds more entries that no longer count than ones that do, and not for a handful.
_SWEEP_FLOOR = 64


@dataclass(slots=True)
class PartitionState:
    """All that the single writer of a partition knows.

    Attributes:
        partition, partitions: which one it is, of how many.
        now: the instant of the last decision; time never goes back.
        sequence: that of the next event.
        jobs: the live and the retained ones by id.
        waiting_queues: those with parked claims.
        next_admission: the number of the next pending admission.
        admissions: the pending ones, by the id of the job.
        contested: those that others wait for, with the instant at which these are told that it is unknown.
        edges: to jobs elsewhere that name one of here, each under its own key: a parent may have many.
        late_edges: those that wait for commands.
        dirty_jobs, dirty_queues, dirty_admissions, dirty_edges: what changed since the changelog was last
            written, in order.
        timetable: its schedules.
    """

    partition: Partition
    partitions: int
    retention: Retention = field(default_factory=Retention)
    now: Instant = Instant(0)
    sequence: Sequence = Sequence(0)
    jobs: dict[JobId, Job] = field(default_factory=dict)
    queues: dict[QueueName, Queue] = field(default_factory=dict)
    lease_timers: list[Timer] = field(default_factory=list)
    purge_timers: list[Timer] = field(default_factory=list)
    waiting_queues: dict[QueueName, Queue] = field(default_factory=dict)
    next_parking: int = 0
    dirty_jobs: dict[JobId, None] = field(default_factory=dict)
    dirty_queues: dict[QueueName, None] = field(default_factory=dict)
    next_admission: int = 0
    admissions: dict[JobId, Admission] = field(default_factory=dict)
    contested: dict[JobId, Instant] = field(default_factory=dict)
    edges: dict[EdgeKey, Edge] = field(default_factory=dict)
    late_edges: dict[EdgeKey, Edge] = field(default_factory=dict)
    dirty_admissions: dict[JobId, None] = field(default_factory=dict)
    dirty_edges: dict[EdgeKey, None] = field(default_factory=dict)
    timetable: Timetable = field(default_factory=Timetable)

    @property
    def last_sequence(self) -> Sequence:
        """The sequence of the newest event; -1 when there is none."""
        return Sequence(self.sequence - 1)

    def queue(self, name: QueueName) -> Queue:
        """The queue of that name; queues need no creation."""
        queue = self.queues.get(name)
        if queue is None:
            queue = self.queues[name] = Queue(name)
        return queue

    def is_home_of(self, job_id: JobId) -> bool:
        """Whether this partition decides about that job."""
        return partition_of(queue_of(job_id), self.partitions) == self.partition

    def is_taken(self, job_id: JobId) -> bool:
        """Whether there is a job of that id, or one that asks after its parents."""
        return job_id in self.jobs or job_id in self.admissions

    def life(self, job_id: JobId, enqueue_sequence: Sequence) -> Job | None:
        """The job of that id, unless it was purged or is another one by now."""
        job = self.jobs.get(job_id)
        return job if job is not None and job.enqueue_sequence == enqueue_sequence else None

    def job_of(self, timer: Timer) -> Job | None:
        """The job that a timer is about, if it is still there."""
        return self.life(timer[2], timer[1])

    def _is_ready(self, entry: Timer) -> bool:
        job = self.job_of(entry)
        return job is not None and job.state is JobState.SCHEDULED and job.due_time == entry[0]

    def first_scheduled(self, queue: Queue) -> Timer | None:
        """The first Scheduled job in claim order, due or not."""
        ready = queue.ready
        while ready:
            if self._is_ready(ready[0]):
                return ready[0]
            heappop(ready)
            queue.stale = max(queue.stale - 1, 0)
        return None

    def has_due_work(self, queue: Queue, now: Instant) -> bool:
        """Whether a claim on the queue would be granted something now."""
        if queue.room <= 0:
            return False
        first = self.first_scheduled(queue)
        return first is not None and first[0] <= now

    def index(self, job: Job) -> None:
        """Let a job be found as what its state makes it: due work, a lease, a dependent, one to purge."""
        match job.state:
            case JobState.SCHEDULED:
                self.put_ready(job)
            case JobState.LEASED:
                self.queue(job.queue).leased += 1
                self.put_lease_timer(job)
            case JobState.AWAITING_PARENT:
                for parent_id in job.open_parents:
                    parent = self.jobs.get(parent_id)
                    if parent is not None:
                        parent.waiting[job.job_id] = None
            case _:
                due = self.purge_due(job)
                if due is not None:
                    self.put_purge_timer(job, due)

    def living_parents(self, job: Job) -> list[Job]:
        """The parents of its partition that are still there: an id may belong to another job by now."""
        parents = (self.life(parent_id, sequence) for parent_id, sequence in job.parents.items())
        return [parent for parent in parents if parent is not None]

    def hold_parents(self, job: Job) -> None:
        """A job that has not ended keeps its parents."""
        for parent in self.living_parents(job):
            parent.open_dependents += 1

    def put_ready(self, job: Job) -> None:
        """Index a job that has become Scheduled."""
        heappush(self.queue(job.queue).ready, (*claim_key(job), job.job_id))

    def forget_ready(self, queue: Queue) -> None:
        """A Scheduled job was ended without a claim: its entry no longer counts."""
        queue.stale += 1
        if queue.stale > _SWEEP_FLOOR and queue.stale * 2 > len(queue.ready):
            queue.ready = [entry for entry in queue.ready if self._is_ready(entry)]
            heapify(queue.ready)
            queue.stale = 0

    def put_lease_timer(self, job: Job) -> None:
        """See to it that the job's lease expiry is noticed. A timer that is early moves when it fires."""
        expiry = job.lease_expiry
        if expiry is not None and (job.lease_timer is None or expiry < job.lease_timer):
            job.lease_timer = expiry
            heappush(self.lease_timers, (expiry, job.enqueue_sequence, job.job_id))

    def due_leases(self, now: Instant, limit: int) -> list[Job]:
        """Take the leases out whose expiry has come, by enqueue sequence."""
        due: list[Job] = []
        timers = self.lease_timers
        while timers and timers[0][0] <= now and len(due) < limit:
            timer = heappop(timers)
            job = self.job_of(timer)
            if job is None or job.lease_timer != timer[0]:
                continue
            job.lease_timer = None
            if job.lease_expiry is not None and job.lease_expiry <= now:
                due.append(job)
            else:
                self.put_lease_timer(job)
        due.sort(key=lambda job: job.enqueue_sequence)
        return due

    def purge_due(self, job: Job) -> Instant | None:
        """When an ended job may go, its dependents aside."""
        if job.terminal_at is None:
            return None
        return Instant(job.terminal_at + self.retention.of(job.state))

    def let_go(self, job: Job) -> None:
        """One job less names it: when none is left and its time is over, it may go now."""
        due = self.purge_due(job)
        if not job.is_kept and due is not None and due <= self.now:
            self.put_purge_timer(job, self.now)

    def put_purge_timer(self, job: Job, due: Instant) -> None:
        """Look at an ended job again at that instant."""
        heappush(self.purge_timers, (due, job.enqueue_sequence, job.job_id))

    def due_purges(self, now: Instant, limit: int) -> list[Job]:
        """Take the ended jobs out that nothing keeps any longer, by enqueue sequence."""
        due: dict[JobId, Job] = {}
        timers = self.purge_timers
        while timers and timers[0][0] <= now and len(due) < limit:
            job = self.job_of(heappop(timers))
            if job is None or job.is_kept:
                continue
            end_of_keep = self.purge_due(job)
            if end_of_keep is not None and end_of_keep <= now:
                due[job.job_id] = job
        return sorted(due.values(), key=lambda job: job.enqueue_sequence)

    def next_timer(self) -> Instant | None:
        """The earliest instant at which something may fall due by itself; it may prove to be nothing."""
        return min(self._timer_instants(), default=None)

    def _timer_instants(self) -> Iterator[Instant]:
        if self.lease_timers:
            yield self.lease_timers[0][0]
        if self.purge_timers:
            yield self.purge_timers[0][0]
        if self.timetable.schedules:
            tick = self.timetable.next_timer(self.now)
            if tick is not None:
                yield tick
        # They are in the order of their instants, since all of them wait equally long.
        yield from islice(self.contested.values(), 1)
        for queue in self.waiting_queues.values():
            for parked in queue.parked.values():
                yield parked.until
            if queue.room > 0:
                first = self.first_scheduled(queue)
                if first is not None:
                    yield first[0]
