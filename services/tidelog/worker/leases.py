"""The leases that a worker holds, and the heartbeats that keep them.

Time is the worker's own monotonic clock. At the engine a lease runs from an instant after the sending of the
claim or heartbeat that asked for it; so it holds at least until `lease_seconds` after that sending, and the
clocks of two machines are never compared.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from math import inf

from tidelog.worker.messages import LeaseKey, Outgoing, StopReason
from tidelog_events.commands import Heartbeat, LeaseRow
from tidelog_events.identity import ClientId, CommandId, Partition, WorkerId
from tidelog_events.instants import Instant, Micros, from_seconds, later
from tidelog_events.replies import Grant, HeartbeatReply, LeaseAnswer

_logger = logging.getLogger("tidelog.worker")

_MAX_ROWS = 500


class Phase(Enum):
    """How far the worker is with a lease."""

    RUNNING = "running"
    """The handler runs, or is about to."""
    REPORTED = "reported"
    """The outcome is on its way; the lease is kept until the answer."""
    CLOSED = "closed"
    """Nothing more will be said about it; the handler may still occupy its slot."""


@dataclass(slots=True)
class HeldLease:
    """One lease.

    Attributes:
        holds_until: it holds at least until then; after that it is given up unless a renewal was confirmed.
        asked_at: when it was last asked for: by the claim, or by a heartbeat.
        is_unanswered: whether the last heartbeat has no answer yet.
        timeout: how many seconds the attempt may take.
        timeout_at: when the attempt has taken too long.
        abandon_at: when the worker reports without the handler, which was asked to stop and has not.
    """

    grant: Grant
    key: LeaseKey
    partition: Partition
    received_at: float
    asked_at: float
    holds_until: float
    phase: Phase = Phase.RUNNING
    occupies_slot: bool = True
    has_begun: bool = False
    is_unanswered: bool = False
    timeout: float = inf
    timeout_at: float = inf
    abandon_at: float = inf
    stop: StopReason | None = None

    def renewed(self, sent_at: float, lease_seconds: float) -> Instant:
        """A heartbeat sent at that time was answered. Until when the lease holds at least, by the engine's
        clock: the grant's expiry, later by the time from its arrival to the heartbeat.
        """
        self.holds_until = max(self.holds_until, sent_at + lease_seconds)
        self.is_unanswered = False
        return later(self.grant.lease_expiry, Micros(max(0, from_seconds(sent_at - self.received_at))))


@dataclass(slots=True)
class _Beat:
    sent_at: float
    leases: list[HeldLease]


class Heartbeats:
    """Decides when leases are renewed: at a third of their time, sooner again when no answer comes."""

    def __init__(
        self,
        worker_id: WorkerId,
        reply_to: ClientId,
        *,
        lease_seconds: float,
        next_id: Callable[[], CommandId],
    ) -> None:
        self._worker_id = worker_id
        self._reply_to = reply_to
        self._lease_seconds = lease_seconds
        self._next_id = next_id
        self._sent: dict[CommandId, _Beat] = {}

    def due_at(self, lease: HeldLease) -> float:
        """When the next heartbeat for a lease is to be sent."""
        return lease.asked_at + self._lease_seconds / (9 if lease.is_unanswered else 3)

    def take(self, held: Iterable[HeldLease], now: float) -> list[Outgoing]:
        """The heartbeats to send now, by partition.

        When one lease of a partition is due, those go along whose turn would come soon: fewer records.
        """
        alive = [lease for lease in held if lease.phase is not Phase.CLOSED]
        due = dict.fromkeys(lease.partition for lease in alive if self.due_at(lease) <= now)
        outgoing: list[Outgoing] = []
        for partition in due:
            rows = [
                lease
                for lease in alive
                if lease.partition == partition
                and (self.due_at(lease) <= now or lease.asked_at <= now - self._lease_seconds / 6)
            ]
            outgoing += [
                self._send(rows[first : first + _MAX_ROWS], now) for first in range(0, len(rows), _MAX_ROWS)
            ]
        return outgoing

    def settle(self, reply: HeartbeatReply) -> list[tuple[HeldLease, LeaseAnswer, float]]:
        """Take an answer: each lease, what was said about it, and when the heartbeat was sent."""
        beat = None if reply.command_id is None else self._sent.pop(reply.command_id, None)
        if beat is None:
            return []
        if len(reply.leases) != len(beat.leases):
            _logger.error(
                "A heartbeat of %d leases was answered with %d; passed over.",
                len(beat.leases),
                len(reply.leases),
            )
            return []
        # Rows come in the order of the command; a job id alone does not tell two leases of it apart.
        return [
            (lease, answer, beat.sent_at) for lease, answer in zip(beat.leases, reply.leases, strict=True)
        ]

    def failed(self, command_id: CommandId) -> bool:
        """A heartbeat was refused or not sent; the next is due soon anyway. False when it is not known."""
        return self._sent.pop(command_id, None) is not None

    def expire(self, now: float) -> None:
        """Forget heartbeats whose answer could renew nothing any more."""
        for command_id, beat in list(self._sent.items()):
            if beat.sent_at + self._lease_seconds <= now:
                del self._sent[command_id]

    def _send(self, leases: list[HeldLease], now: float) -> Outgoing:
        command_id = self._next_id()
        self._sent[command_id] = _Beat(now, leases)
        for lease in leases:
            lease.asked_at = now
            lease.is_unanswered = True
        command = Heartbeat.model_construct(
            command_id=command_id,
            reply_to=self._reply_to,
            worker_id=self._worker_id,
            leases=[
                LeaseRow.model_construct(
                    job_id=lease.grant.job_id, attempt=lease.grant.attempt, lease=lease.grant.lease
                )
                for lease in leases
            ],
            lease_seconds=from_seconds(self._lease_seconds),
        )
        return Outgoing(leases[0].grant.queue, command_id, command)
