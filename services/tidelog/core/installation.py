"""All partitions of an installation in one hand, under virtual time.

`tidelog replay` and the testing kit both stand on it: what an engine does for each of its partitions is done
here for all of them, and messages between partitions arrive at once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from tidelog.core.decide import decide, end_parked_waits, fire_timers, home_partition, receive
from tidelog.core.decision import Decision, Output
from tidelog.core.enqueue import Position
from tidelog.core.link import LinkMessage, target_of
from tidelog.core.state import Job, PartitionState
from tidelog_events.commands import Command
from tidelog_events.identity import JobId, Partition, QueueName, partition_of, queue_of
from tidelog_events.instants import FIRST_INSTANT, Instant
from tidelog_events.parsing import Refusal


class Installation:
    """Partitions whose time somebody else tells.

    What comes out is handed out while it is decided: take it all before the next call. The order is that of
    contract section 6.

    Args:
        partitions: how many queues are spread over.
        now: where time begins.
    """

    def __init__(self, partitions: int = 1, *, now: Instant = FIRST_INSTANT) -> None:
        self._partitions = [
            PartitionState(Partition(number), partitions, now=now) for number in range(partitions)
        ]
        self._now = now
        self._messages: deque[LinkMessage] = deque()

    @property
    def now(self) -> Instant:
        """The instant that time has come to."""
        return self._now

    @property
    def partitions(self) -> int:
        """How many there are."""
        return len(self._partitions)

    def jobs(self) -> dict[JobId, Job]:
        """All jobs that are not purged, sorted by id."""
        jobs = {job_id: job for state in self._partitions for job_id, job in state.jobs.items()}
        return {job_id: jobs[job_id] for job_id in sorted(jobs)}

    def job(self, job_id: JobId) -> Job | None:
        """A job that is not purged."""
        return self._home(queue_of(job_id)).jobs.get(job_id)

    def next_due(self, queue: QueueName) -> Instant | None:
        """From when on a claim on the queue can be granted something; None when it is paused, at its limit,
        or without scheduled jobs.
        """
        state = self._home(queue)
        known = state.queues.get(queue)
        if known is None or known.room <= 0:
            return None
        first = state.first_scheduled(known)
        return None if first is None else first[0]

    def next_timer(self) -> Instant | None:
        """The earliest instant at which something may fall due by itself; it may prove to be nothing."""
        timers = (state.next_timer() for state in self._partitions)
        return min((timer for timer in timers if timer is not None), default=None)

    def pass_time(self, until: Instant) -> Iterator[Output]:
        """Let every timer fire at its own instant, up to and with that one."""
        while (due := self.next_timer()) is not None and due <= until:
            self._now = max(self._now, due)
            yield from self._settle()
        self._now = max(self._now, until)

    def skip_to(self, until: Instant) -> Iterator[Output]:
        """Let the engines be away until then: what falls due meanwhile is handled late."""
        self._now = until
        yield from self._settle()

    def command(self, command: Command | Refusal, position: Position) -> Iterator[Output]:
        """Decide a command now, in the partition where its queue lives, and what follows elsewhere."""
        home = None if isinstance(command, Refusal) else home_partition(command, len(self._partitions))
        if isinstance(home, Refusal):
            command, home = home, None
        yield from self._written(decide(self._partitions[home or 0], command, self._now, position))
        yield from self._deliver()

    def _home(self, queue: QueueName) -> PartitionState:
        return self._partitions[partition_of(queue, len(self._partitions))]

    def _settle(self) -> Iterator[Output]:
        """All that is due at this instant, until nothing is; last the waits that end."""
        busy = True
        while busy:
            busy = False
            for state in self._due():
                decision = fire_timers(state, self._now)
                busy = busy or bool(decision.outputs or decision.messages)
                yield from self._written(decision)
            yield from self._deliver()
        for state in self._due():
            yield from self._written(end_parked_waits(state, self._now))

    def _due(self) -> Iterator[PartitionState]:
        """The partitions in which something is due, each looked at when its turn comes."""
        for state in self._partitions:
            timer = state.next_timer()
            if timer is not None and timer <= self._now:
                yield state

    def _deliver(self) -> Iterator[Output]:
        """The messages between partitions, first in first out, each a decision of its own."""
        while self._messages:
            message = self._messages.popleft()
            state = self._partitions[target_of(message, len(self._partitions))]
            yield from self._written(receive(state, message, self._now))

    def _written(self, decision: Decision) -> list[Output]:
        self._messages.extend(decision.messages)
        return decision.outputs
