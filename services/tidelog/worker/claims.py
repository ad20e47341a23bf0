"""Which claims to send: every free slot is asked for once, so that grants never exceed the pool.

A queue that has no due work is *listened* to: one claim of it is parked at the engine. A queue of which an
answer said that due work was left over has a *backlog*: slots are taken from it by claims that do not wait,
several on their way at a time, so that the next work is on its way while the last is being reported.

A listening claim keeps the slots that it asks for. With one queue it asks for all that are free; with
several for one each, so that an idle queue can hold back one slot at most from a busy one. When there are
fewer free slots than queues, idle queues are listened to in short turns, and the word "nothing there" is
believed for a tenth of a second while another queue has a backlog.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf

from tidelog.worker.dispatch import DispatchPolicy
from tidelog_events.bounds import MAX_CLAIMED_JOBS
from tidelog_events.identity import CommandId, Partition, QueueName, partition_of
from tidelog_events.instants import Micros
from tidelog_events.replies import ClaimReply

_ANSWER_SECONDS = 10.0
"""How long an answer may be overdue before its claim is given up. An engine that takes over says `hello`, so
this is for the rare loss of a reply; giving up too early would double claims while an engine is slow."""
_MEMORY_SECONDS = 120.0
"""How long a claim that was given up is remembered: a late grant must be told from one of a stranger."""
_TURN_SECONDS = 0.25
_BELIEF_SECONDS = 0.1
_REST_SECONDS = 0.1
"""Before a queue is asked again whose claim came back at once and empty, as all do of a worker that is not to
let them wait: never a hot loop."""
_TROUBLE_SECONDS = 0.5
"""Before a queue is asked again after a claim was refused or could not be sent."""


@dataclass(slots=True)
class _Queue:
    name: QueueName
    partition: Partition
    has_backlog: bool = False
    open_claims: int = 0
    is_listened_to: bool = False
    asked_at: float = -inf
    rests_until: float = -inf


@dataclass(slots=True)
class _OpenClaim:
    queue: _Queue
    slots: int
    wait_seconds: float
    sent_at: float
    answer_by: float
    position: float = inf
    """Its offset in the log: `inf` while it is on its way there, `-inf` when the log did not say."""
    is_given_up: bool = False


@dataclass(frozen=True, slots=True)
class Ask:
    """A claim to send."""

    command_id: CommandId
    queue: QueueName
    max_jobs: int
    wait_seconds: float


class Claims:
    """The claims of one worker.

    Args:
        policy: shares slots over queues with a backlog.
        partitions: of the commands topic.
        wait_seconds: how long a claim may be parked.
        lease: what every claim asks for, in microseconds.
        next_id: mints command ids.
    """

    def __init__(
        self,
        policy: DispatchPolicy,
        partitions: int,
        *,
        wait_seconds: float,
        lease: Micros,
        next_id: Callable[[], CommandId],
    ) -> None:
        self._policy = policy
        self._wait_seconds = wait_seconds
        self._lease = lease
        self._next_id = next_id
        self._queues = {name: _Queue(name, partition_of(name, partitions)) for name in policy.queues}
        self._open: dict[CommandId, _OpenClaim] = {}
        self._taken_over: dict[Partition, int] = {}
        self._reserved = 0
        self._is_closing = False

    @property
    def reserved(self) -> int:
        """Slots for which a grant may come at any moment."""
        return self._reserved

    @property
    def is_settled(self) -> bool:
        """Whether no answer is awaited any more."""
        return all(claim.is_given_up for claim in self._open.values())

    def plan(self, free: int, portion: int, now: float) -> list[Ask]:
        """Claims to send for so many free slots (those reserved are not free); of a backlog a portion."""
        if self._is_closing or free <= 0:
            return []
        if any(queue.has_backlog for queue in self._queues.values()):
            return list(self._take(min(free, portion), now))
        return list(self._listen(free, now))

    def settle(self, reply: ClaimReply, now: float) -> float | None:
        """Take an answer. When its claim was sent, or None for a claim that is not known here."""
        claim = None if reply.command_id is None else self._open.get(reply.command_id)
        if claim is None or reply.command_id is None:
            return None
        self._release(claim, len(reply.jobs))
        if reply.more:
            claim.answer_by = now + _ANSWER_SECONDS
            return claim.sent_at
        was_given_up = claim.is_given_up
        self._close(reply.command_id, claim)
        if not was_given_up:
            queue = claim.queue
            queue.has_backlog = self._left_over(reply)
            came_at_once = not self._wait_seconds or now < claim.sent_at + claim.wait_seconds / 2
            if not reply.jobs and came_at_once:
                queue.rests_until = now + _REST_SECONDS
        return claim.sent_at

    def failed(self, command_id: CommandId, now: float) -> bool:
        """A claim was refused or not sent. False when it is not known here."""
        claim = self._open.get(command_id)
        if claim is None:
            return False
        self._close(command_id, claim)
        claim.queue.has_backlog = False
        claim.queue.rests_until = now + _TROUBLE_SECONDS
        return True

    def sent(self, command_id: CommandId, position: int | None, now: float) -> None:
        """A claim was handed to the log, where it stands at this offset; None when that is not known."""
        claim = self._open.get(command_id)
        if claim is None:
            return
        claim.position = -inf if position is None else position
        if claim.position < self._taken_over.get(claim.queue.partition, -inf):
            self._forgotten(claim, now)

    def hello(self, partition: Partition, position: int | None, now: float) -> None:
        """An engine took over a partition, and handles its commands from this offset on (None: not known).

        What was parked there before is forgotten, and is to be sent again. What the new engine will still
        come to is not: sent again it would be granted twice.
        """
        if position is not None:
            self._taken_over[partition] = position
        for claim in self._open.values():
            if claim.queue.partition == partition and (position is None or claim.position < position):
                self._forgotten(claim, now)

    def expire(self, now: float) -> None:
        """Give up claims whose answer is overdue, and forget those given up long ago."""
        for command_id, claim in list(self._open.items()):
            if claim.answer_by <= now:
                if claim.is_given_up:
                    del self._open[command_id]
                else:
                    self._give_up(claim, now)

    def withdraw(self, now: float) -> list[Ask]:
        """Claim nothing more; what to send so that parked claims come back at once.

        A newer claim of the same worker and queue replaces the parked one, which is answered empty (contract
        section 3, Claim order). It has to ask for a job; one that it should be granted is given back.
        """
        if self._is_closing:
            return []
        self._is_closing = True
        return [self._send(queue, 0, 0.0, now) for queue in self._queues.values() if queue.is_listened_to]

    def next_wake(self, now: float) -> float:
        """When `expire` or `plan` has something to do without an event; infinity when never."""
        overdue = min((claim.answer_by for claim in self._open.values()), default=inf)
        rested = min(
            (queue.rests_until for queue in self._queues.values() if queue.rests_until > now), default=inf
        )
        return min(overdue, rested)

    def _take(self, free: int, now: float) -> Iterator[Ask]:
        asking = [
            queue.name
            for queue in self._queues.values()
            if now >= queue.rests_until
            and (queue.has_backlog or (not queue.open_claims and now >= queue.asked_at + _BELIEF_SECONDS))
        ]
        for name, share in self._policy.share(free, asking).items():
            for slots in _chunks(share):
                yield self._send(self._queues[name], slots, 0.0, now)

    def _listen(self, free: int, now: float) -> Iterator[Ask]:
        silent = [
            queue for queue in self._queues.values() if not queue.open_claims and now >= queue.rests_until
        ]
        if len(self._queues) == 1:
            for queue in silent:
                yield self._send(queue, min(free, MAX_CLAIMED_JOBS), self._wait_seconds, now)
            return
        # Sorting is stable: of queues that were asked at the same time the most urgent one comes first.
        silent.sort(key=lambda queue: queue.asked_at)
        wait = self._wait_seconds
        if len(silent) > free:
            wait = min(wait, _TURN_SECONDS)
        for queue in silent[:free]:
            yield self._send(queue, 1, wait, now)

    def _send(self, queue: _Queue, slots: int, wait_seconds: float, now: float) -> Ask:
        command_id = self._next_id()
        self._open[command_id] = _OpenClaim(
            queue, slots, wait_seconds, now, now + wait_seconds + _ANSWER_SECONDS
        )
        self._reserved += slots
        queue.open_claims += 1
        queue.asked_at = now
        queue.is_listened_to = queue.is_listened_to or wait_seconds > 0
        return Ask(command_id, queue.name, max(slots, 1), wait_seconds)

    def _left_over(self, reply: ClaimReply) -> bool:
        """Whether due work is left: `next_due` is then the engine's now, which the grants tell too."""
        if not reply.jobs or reply.next_due is None:
            return False
        return reply.next_due + self._lease <= reply.jobs[-1].lease_expiry

    def _release(self, claim: _OpenClaim, granted: int) -> None:
        released = min(claim.slots, granted)
        claim.slots -= released
        if not claim.is_given_up:
            self._reserved -= released

    def _close(self, command_id: CommandId, claim: _OpenClaim) -> None:
        if not claim.is_given_up:
            self._detach(claim)
        del self._open[command_id]

    def _forgotten(self, claim: _OpenClaim, now: float) -> None:
        """An engine that is gone had handled the claim. One that does not wait was answered at once."""
        if claim.wait_seconds and not claim.is_given_up:
            self._give_up(claim, now)

    def _give_up(self, claim: _OpenClaim, now: float) -> None:
        self._detach(claim)
        claim.is_given_up = True
        claim.answer_by = now + _MEMORY_SECONDS

    def _detach(self, claim: _OpenClaim) -> None:
        self._reserved -= claim.slots
        claim.queue.open_claims -= 1
        if claim.wait_seconds:
            claim.queue.is_listened_to = False


def _chunks(slots: int) -> Iterator[int]:
    while slots > 0:
        yield min(slots, MAX_CLAIMED_JOBS)
        slots -= MAX_CLAIMED_JOBS
