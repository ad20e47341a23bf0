"""The worker's brain, without I/O and without a clock: what to claim, renew, report and stop.

It is told what happened, and when (`step`), and then asked what to send (`take_commands`) and when to call
again (`next_wake`). Both answer as of that step: with a later time something could fall due in between, and
would be passed over by the one and no longer be due to the other. Reports and the claims for the slots that
they freed go out together, so a busy worker costs about two records per batch.

The rules it keeps are those of the project's contract, section 3: each claim is answered once, perhaps in
pieces; every row carries `lease`; rows of one command live on one partition; a lease that is lost is never
reported; a job whose cancellation was asked for before it was granted is not run.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil, inf
from typing import assert_never

from tidelog.handler.failure import FailureText
from tidelog.worker import outcomes
from tidelog.worker.claims import Ask, Claims
from tidelog.worker.dispatch import DispatchPolicy
from tidelog.worker.leases import Heartbeats, HeldLease, Phase
from tidelog.worker.messages import (
    Action,
    Answered,
    Began,
    Drain,
    Ended,
    Event,
    Extend,
    LeaseKey,
    NotSent,
    Outgoing,
    Sent,
    Start,
    Stop,
    StopReason,
)
from tidelog.worker.reports import Reports, Settled
from tidelog_events.commands import Claim, Failure, Outcome
from tidelog_events.identity import ClientId, CommandId, JobId, Sequence, WorkerId, partition_of
from tidelog_events.instants import from_seconds
from tidelog_events.replies import (
    Answer,
    CancelRequestedPush,
    ClaimReply,
    Grant,
    HeartbeatReply,
    Hello,
    InvalidReply,
    ReportReply,
    RowResult,
)

_logger = logging.getLogger("tidelog.worker")

_LEAST_PORTION = 100
"""Smaller batches would cost the engine more than the worker's waiting does."""
STOP_PATIENCE_SECONDS = 5.0
"""How long a handler whose attempt timed out may take to end, before the worker reports without it."""
SHUTDOWN_PATIENCE_SECONDS = 0.5
"""The same when the grace time is over."""
CLOSE_SECONDS = 5.0
"""How long the last reports may wait for their answers after that."""
WITHDRAW_SECONDS = 2.0
"""How long a worker that stops waits for its parked claims to come back."""


@dataclass(frozen=True, slots=True)
class DriverConfig:
    """Who the worker is and how it works.

    Attributes:
        session: a text of its own for each start, at most 60 characters; command ids begin with it.
    """

    worker_id: WorkerId
    reply_to: ClientId
    session: str
    concurrency: int
    lease_seconds: float
    wait_seconds: float


class Driver:
    """The state machine of one worker.

    Args:
        config: who it is and how it works.
        policy: the queues and how slots are shared over them.
        partitions: how many the commands topic has.
    """

    def __init__(self, config: DriverConfig, policy: DispatchPolicy, partitions: int) -> None:
        self._config = config
        self._partitions = partitions
        self._last_id = 0
        self._portion = max(_LEAST_PORTION, ceil(config.concurrency / 2))
        self._claims = Claims(
            policy,
            partitions,
            # A parked claim's lease counts from its sending here; waiting must leave most of it.
            wait_seconds=min(config.wait_seconds, config.lease_seconds / 4),
            lease=from_seconds(config.lease_seconds),
            next_id=self._next_id,
        )
        self._beats = Heartbeats(
            config.worker_id, config.reply_to, lease_seconds=config.lease_seconds, next_id=self._next_id
        )
        self._reports = Reports(config.worker_id, config.reply_to, partitions, self._next_id)
        self._held: dict[LeaseKey, HeldLease] = {}
        self._looks_at = inf
        self._now = -inf
        self._newest: dict[JobId, LeaseKey] = {}
        self._occupied = 0
        self._actions: list[Action] = []
        self._drain_from = inf
        self._grace_ends = inf

    @property
    def running(self) -> int:
        """Slots that are occupied by handlers."""
        return self._occupied

    @property
    def is_idle(self) -> bool:
        """Whether it holds no lease and has nothing to report: it only waits for work."""
        return not self._held and self._reports.is_empty

    @property
    def is_draining(self) -> bool:
        """Whether a stop was asked for."""
        return self._drain_from < inf

    def step(self, events: Iterable[Event], now: float) -> list[Action]:
        """Take what happened, and what the time brings about. Returns what handlers are to be told."""
        self._now = now
        for event in events:
            self._take(event, now)
        self._pass_time(now)
        actions, self._actions = self._actions, []
        return actions

    def take_commands(self) -> list[Outgoing]:
        """What to send now, as one batch. Call it when the last batch has been handed to the log.

        A large pool goes in two halves, one batch after the other: while the handlers of one half run, the
        engine decides the other. As a whole each side would only ever wait for the other one.
        """
        now = self._now
        beats = self._beats.take(self._held.values(), now) if now >= self._looks_at else []
        if self.is_draining:
            asks = self._claims.withdraw(now)
        else:
            free = self._config.concurrency - self._occupied - self._claims.reserved
            asks = self._claims.plan(free, self._portion, now)
        return [*beats, *self._reports.take(now, self._portion), *map(self._claim, asks)]

    def next_wake(self) -> float:
        """When to call `step` again although nothing happened; infinity when never."""
        now = self._now
        if now >= self._looks_at:
            self._looks_at = min(map(self._due_at, self._held.values()), default=inf)
        wake = min(self._looks_at, self._claims.next_wake(now), self._reports.next_wake())
        if self.is_draining:
            bounds = (self._drain_from + WITHDRAW_SECONDS, self._grace_ends, self._closes_at)
            wake = min([wake, *(bound for bound in bounds if bound > now)])
        return wake

    def _due_at(self, lease: HeldLease) -> float:
        """When something is to be done about a lease if nothing happens before; infinity when never."""
        match lease.phase:
            case Phase.RUNNING:
                return min(self._beats.due_at(lease), lease.holds_until, lease.timeout_at, lease.abandon_at)
            case Phase.REPORTED:
                return self._beats.due_at(lease)
            case Phase.CLOSED:
                return inf

    def _look_again(self, lease: HeldLease) -> None:
        """Something is due about a lease earlier than before.

        All leases are looked at no earlier than the first of them may be due: there are hundreds, and a busy
        driver is called thousands of times a second.
        """
        self._looks_at = min(self._looks_at, self._due_at(lease))

    def is_done(self) -> bool:
        """Whether a stop was asked for and nothing is left to do, or the time for it is over."""
        if not self.is_draining:
            return False
        if self._now >= self._closes_at:
            return True
        is_idle = all(lease.phase is not Phase.RUNNING for lease in self._held.values())
        no_grant_can_come = self._claims.is_settled or self._now >= self._drain_from + WITHDRAW_SECONDS
        return is_idle and self._reports.is_empty and no_grant_can_come

    def left_behind(self) -> list[JobId]:
        """Jobs whose handlers have not ended; a thread among them cannot be stopped."""
        return [lease.grant.job_id for lease in self._held.values() if lease.occupies_slot]

    @property
    def _closes_at(self) -> float:
        return self._grace_ends + SHUTDOWN_PATIENCE_SECONDS + CLOSE_SECONDS

    def _next_id(self) -> CommandId:
        self._last_id += 1
        return CommandId(f"{self._config.session}-{self._last_id}")

    def _claim(self, ask: Ask) -> Outgoing:
        command = Claim.model_construct(
            command_id=ask.command_id,
            reply_to=self._config.reply_to,
            worker_id=self._config.worker_id,
            queue=ask.queue,
            max_jobs=ask.max_jobs,
            lease_seconds=from_seconds(self._config.lease_seconds),
            wait_seconds=from_seconds(ask.wait_seconds),
        )
        return Outgoing(ask.queue, ask.command_id, command)

    # What happened

    def _take(self, event: Event, now: float) -> None:
        match event:
            case Answered(answer):
                self._answered(answer, now)
            case Began(key, timeout):
                lease = self._held.get(key)
                if lease is not None:
                    lease.has_begun = True
                    lease.timeout = inf if timeout is None else timeout
                    lease.timeout_at = now + lease.timeout
                    self._look_again(lease)
            case Ended(key, outcome):
                self._ended(key, outcome)
            case Sent(positions):
                for command_id, position in positions:
                    self._claims.sent(command_id, position, now)
            case NotSent(command_ids):
                for command_id in command_ids:
                    if not self._claims.failed(command_id, now) and not self._beats.failed(command_id):
                        self._reports.not_sent(command_id, now)
            case Drain(grace_seconds):
                self._drain(grace_seconds, now)
            case _:
                assert_never(event)

    def _answered(self, answer: Answer, now: float) -> None:
        match answer:
            case Hello():
                self._claims.hello(answer.partition, answer.position, now)
            case CancelRequestedPush():
                if answer.worker_id == self._config.worker_id:
                    self._cancel(LeaseKey(answer.job_id, answer.lease))
            case InvalidReply():
                self._refused(answer, now)
            case ClaimReply():
                self._granted(answer, now)
            case HeartbeatReply():
                self._renewed(answer)
            case ReportReply():
                for settled in self._reports.settle(answer):
                    self._settled(settled)
            case _:
                _logger.warning("Passed over an answer of type %r, which no worker asks for.", answer.type)

    def _granted(self, reply: ClaimReply, now: float) -> None:
        sent_at = self._claims.settle(reply, now)
        for grant in reply.jobs:
            if sent_at is None:
                _logger.warning(
                    "Passed over a grant of %s under the unknown claim %s.", grant.job_id, reply.command_id
                )
            else:
                self._accept(grant, sent_at, now)

    def _accept(self, grant: Grant, sent_at: float, now: float) -> None:
        key = LeaseKey(grant.job_id, grant.lease)
        if key in self._held:
            return
        self._supersede(grant)
        holds_until = sent_at + self._config.lease_seconds
        if holds_until <= now:
            # To us it may be over; to the engine it has just begun when a takeover held the claim up. Left to
            # expire it would be charged as a try, though nobody made one.
            _logger.warning(
                "The grant of %s came after its lease may be over; the job is given back.", grant.job_id
            )
            self._reports.add(outcomes.returned(grant), give_up_at=now + self._config.lease_seconds)
            return
        lease = HeldLease(
            grant=grant,
            key=key,
            partition=partition_of(grant.queue, self._partitions),
            received_at=now,
            asked_at=sent_at,
            holds_until=holds_until,
            occupies_slot=False,
        )
        self._held[key] = lease
        self._look_again(lease)
        self._newest[grant.job_id] = key
        if grant.cancel_requested:
            self._report(lease, outcomes.cancelled(grant))
        elif self.is_draining or self._occupied >= self._config.concurrency:
            # Not charged. Beyond the pool: a claim that was given up has been granted after all.
            self._report(lease, outcomes.returned(grant))
        else:
            lease.occupies_slot = True
            self._occupied += 1
            self._actions.append(Start(grant))

    def _supersede(self, grant: Grant) -> None:
        """An older lease of the same job is over, since the engine granted a newer one."""
        key = self._newest.get(grant.job_id)
        older = None if key is None else self._held.get(key)
        if older is not None and older.phase is not Phase.CLOSED:
            self._lose(older, "the job was granted again")

    def _renewed(self, reply: HeartbeatReply) -> None:
        for lease, answer, sent_at in self._beats.settle(reply):
            if answer.renewed:
                expiry = lease.renewed(sent_at, self._config.lease_seconds)
                if lease.occupies_slot:
                    self._actions.append(Extend(lease.key, expiry))
                if answer.cancel_requested:
                    self._cancel(lease.key)
            elif lease.phase is Phase.RUNNING:
                self._lose(lease, "the engine did not renew it")

    def _settled(self, settled: Settled) -> None:
        outcome = settled.outcome
        lease = self._held.get(_key(outcome))
        match settled.result:
            case RowResult.APPLIED:
                self._close(lease)
            case RowResult.STALE_LEASE:
                # Of a report that was sent twice, the first may have been applied: then all is well.
                level = logging.INFO if settled.was_resent else logging.WARNING
                _logger.log(
                    level,
                    "The outcome %s of %s, attempt %d, was refused: the lease is over%s.",
                    outcome.outcome,
                    outcome.job_id,
                    outcome.attempt,
                    ", or it was applied before" if settled.was_resent else "",
                )
                self._close(lease)
            case RowResult.OUTPUT_TOO_LARGE:
                self._instead(lease, "OutputTooLarge: the engine refused the handler's output as too large")
            case _:
                assert_never(settled.result)

    def _refused(self, reply: InvalidReply, now: float) -> None:
        _logger.error("An engine refused a command of this worker: %s", reply.message)
        if reply.command_id is None or self._claims.failed(reply.command_id, now):
            return
        rows = None if self._beats.failed(reply.command_id) else self._reports.refuse(reply.command_id)
        for row in rows or ():
            lease = self._held.get(_key(row))
            if lease is None:
                continue
            if rows is not None and len(rows) > 1:
                self._reports.add(row, give_up_at=self._hopeless_at(lease), alone=True)
            elif isinstance(row, Failure):
                _logger.error("The outcome of %s cannot be reported; its lease will expire.", row.job_id)
                self._close(lease)
            else:
                self._instead(lease, f"ReportRefused: the engine refused the outcome: {reply.message}")

    def _ended(self, key: LeaseKey, outcome: Outcome | None) -> None:
        lease = self._held.get(key)
        if lease is None or not lease.occupies_slot:
            return
        lease.occupies_slot = False
        self._occupied -= 1
        if lease.phase is Phase.RUNNING and outcome is not None:
            self._report(lease, outcome)
        elif lease.phase is not Phase.REPORTED:
            self._close(lease)

    # What the time brings about

    def _pass_time(self, now: float) -> None:
        self._claims.expire(now)
        self._beats.expire(now)
        for outcome in self._reports.expire(now):
            _logger.error(
                "No engine answered the outcome %s of %s, attempt %d, while its lease held; "
                "whether it was applied is unknown.",
                outcome.outcome,
                outcome.job_id,
                outcome.attempt,
            )
            self._close(self._held.get(_key(outcome)))
        if now >= self._grace_ends:
            self._end_grace(now)
        if now >= self._looks_at:
            for lease in list(self._held.values()):
                if lease.phase is Phase.RUNNING:
                    self._watch(lease, now)

    def _watch(self, lease: HeldLease, now: float) -> None:
        """One running handler: its lease, its timeout, and its patience after a stop."""
        if now >= lease.holds_until:
            self._lose(lease, "no renewal was confirmed in time")
        elif now >= lease.abandon_at:
            _logger.warning("The handler of %s does not stop; it is reported without.", lease.grant.job_id)
            if lease.stop is StopReason.TIMED_OUT:
                self._report(lease, outcomes.timed_out(lease.grant, lease.timeout))
            else:
                self._report(lease, outcomes.returned(lease.grant))
        elif now >= lease.timeout_at:
            lease.timeout_at = inf
            self._stop(lease, StopReason.TIMED_OUT)
            lease.abandon_at = min(lease.abandon_at, now + STOP_PATIENCE_SECONDS)

    def _drain(self, grace_seconds: float, now: float) -> None:
        if not self.is_draining:
            self._drain_from = now
            _logger.info("The worker stops: %d jobs run and may take %g s.", self._occupied, grace_seconds)
        self._grace_ends = min(self._grace_ends, now + grace_seconds)
        for lease in self._held.values():
            if lease.phase is Phase.RUNNING and not lease.has_begun:
                self._stop_for_shutdown(lease, now)

    def _end_grace(self, now: float) -> None:
        for lease in self._held.values():
            if lease.phase is Phase.RUNNING:
                self._stop_for_shutdown(lease, now)

    # What becomes of a lease

    def _stop_for_shutdown(self, lease: HeldLease, now: float) -> None:
        self._stop(lease, StopReason.SHUT_DOWN)
        lease.abandon_at = min(lease.abandon_at, now + SHUTDOWN_PATIENCE_SECONDS)
        self._look_again(lease)

    def _cancel(self, key: LeaseKey) -> None:
        lease = self._held.get(key)
        if lease is not None and lease.phase is Phase.RUNNING:
            self._stop(lease, StopReason.CANCELLED)

    def _stop(self, lease: HeldLease, reason: StopReason) -> None:
        """Ask a handler to stop, unless it was asked for a stronger reason (or this one) before."""
        if lease.stop is None or lease.stop < reason:
            lease.stop = reason
            self._actions.append(Stop(lease.key, reason))

    def _lose(self, lease: HeldLease, why: str) -> None:
        _logger.warning(
            "The lease of %s, attempt %d, is lost: %s. Its outcome will not be reported.",
            lease.grant.job_id,
            lease.grant.attempt,
            why,
        )
        if lease.occupies_slot:
            self._stop(lease, StopReason.LEASE_LOST)
        self._close(lease)

    def _report(self, lease: HeldLease, outcome: Outcome) -> None:
        lease.phase = Phase.REPORTED
        self._reports.add(outcome, give_up_at=self._hopeless_at(lease))

    def _instead(self, lease: HeldLease | None, error: str) -> None:
        """Report a plain failure for an outcome that the engine would not take."""
        if lease is not None:
            failure = outcomes.failed(lease.grant, FailureText(error, error))
            self._reports.add(failure, give_up_at=self._hopeless_at(lease), alone=True)

    def _hopeless_at(self, lease: HeldLease) -> float:
        """When a report can no more be applied, even if a heartbeat renewed the lease unbeknown to us."""
        return lease.holds_until + self._config.lease_seconds

    def _close(self, lease: HeldLease | None) -> None:
        """Nothing more is said about a lease; it is forgotten once its handler has ended."""
        if lease is None:
            return
        lease.phase = Phase.CLOSED
        if not lease.occupies_slot:
            self._held.pop(lease.key, None)
            if self._newest.get(lease.key.job_id) == lease.key:
                del self._newest[lease.key.job_id]


def _key(outcome: Outcome) -> LeaseKey:
    if outcome.lease is None:
        raise ValueError(f"the outcome of {outcome.job_id} carries no lease; a worker's always does")
    return LeaseKey(outcome.job_id, Sequence(outcome.lease))
