"""Whatever happens, the driver asks to be called in time: no heartbeat, loss, timeout or abandonment is late.

A book beside the driver knows of every lease what is due next, from what was said alone, and all of it is
looked at in every step. The driver looks at its leases only when it thinks that one may be due.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from math import inf

import pytest
from tests.worker.stage import LEASE, Stage, key_of

from tidelog.worker.dispatch import Strict
from tidelog.worker.driver import SHUTDOWN_PATIENCE_SECONDS, STOP_PATIENCE_SECONDS
from tidelog.worker.messages import Began, Drain, Event, LeaseKey, NotSent, Stop, StopReason
from tidelog.worker.outcomes import returned, succeeded
from tidelog_events.commands import Claim, Heartbeat, Report
from tidelog_events.identity import JobId
from tidelog_events.identity import Sequence as EventSequence
from tidelog_events.replies import Grant, RowResult

_TURNS = 200


@dataclass
class _Entry:
    """A lease that is neither settled nor lost, and when something is due about it."""

    asked_at: float
    holds_until: float
    is_unanswered: bool = False
    is_reported: bool = False
    hopeless_at: float = inf
    """From when on a report may be given up, and its lease with it."""
    timeout_at: float = inf
    report_by: float = inf

    @property
    def due_at(self) -> float:
        beat_at = self.asked_at + LEASE / (9 if self.is_unanswered else 3)
        return (
            beat_at if self.is_reported else min(beat_at, self.holds_until, self.timeout_at, self.report_by)
        )


@dataclass
class _Watched(Stage):
    """A stage on which nothing may be late, with the book of its leases."""

    book: dict[LeaseKey, _Entry] = field(default_factory=dict)
    granted_now: dict[LeaseKey, _Entry] = field(default_factory=dict)
    grants: dict[LeaseKey, Grant] = field(default_factory=dict)
    """What runs, whether its lease still counts or not."""
    asked: dict[str | None, float] = field(default_factory=dict)
    open: list[Claim | Heartbeat | Report] = field(default_factory=list)
    """What was sent and has no answer."""

    def tell(self, *events: Event) -> None:
        for key, entry in self.book.items():
            assert entry.due_at >= self.now - 1e-6, f"the driver was not called in time for {key}"
        self.book |= self.granted_now
        self.granted_now = {}
        super().tell(*events)
        for stop in self.stops:
            self._stopped(stop)
        for outgoing in self.sent:
            self.asked.setdefault(outgoing.command_id, self.now)
            self._sent(outgoing.command)
        for grant in self.started:
            self.grants[key_of(grant)] = grant
        self.book = {key: entry for key, entry in self.book.items() if entry.hopeless_at > self.now}
        for key, entry in self.book.items():
            assert entry.due_at > self.now, f"what is due was not done for {key}"

    def _sent(self, command: Claim | Heartbeat | Report) -> None:
        if command not in self.open:
            self.open.append(command)
        if isinstance(command, Heartbeat):
            for lease in command.leases:
                if (entry := self.book.get(_key(lease.job_id, lease.lease))) is not None:
                    entry.asked_at, entry.is_unanswered = self.now, True
        elif isinstance(command, Report):
            for row in command.outcomes:
                if (reported := self.book.get(_key(row.job_id, row.lease))) is not None:
                    reported.is_reported = True
                    reported.hopeless_at = min(reported.hopeless_at, reported.holds_until + LEASE)

    def _stopped(self, stop: Stop) -> None:
        entry = self.book.get(stop.key)
        if entry is None:
            return
        if stop.reason is StopReason.LEASE_LOST:
            del self.book[stop.key]
        elif stop.reason is StopReason.TIMED_OUT:
            entry.timeout_at, entry.report_by = inf, min(entry.report_by, self.now + STOP_PATIENCE_SECONDS)
        elif stop.reason is StopReason.SHUT_DOWN:
            entry.report_by = min(entry.report_by, self.now + SHUTDOWN_PATIENCE_SECONDS)


class _Play:
    """An engine, handlers and a log that do anything at any time, by one seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311  a play that can be played again
        self._number = 0
        self.stage = _Watched(policy=Strict(["q", "r"]), concurrency=self._random.choice([2, 30]))

    def turn(self) -> None:
        stage, chance = self.stage, self._random
        if stage.open and chance.random() < 0.6:
            self._answer(stage.open.pop(chance.randrange(len(stage.open))))
        elif stage.grants and chance.random() < 0.4:
            key, grant = chance.choice(list(stage.grants.items()))
            del stage.grants[key]
            stage.ended(grant, succeeded(grant, b"1") if chance.random() < 0.8 else returned(grant))
        elif stage.grants and chance.random() < 0.4:
            key = chance.choice(list(stage.grants))
            timeout = chance.choice([None, 0.5, 30.0])
            if key in stage.book and not stage.book[key].is_reported:
                stage.book[key].timeout_at = inf if timeout is None else stage.now + timeout
            stage.tell(Began(key, timeout))
        elif stage.grants and chance.random() < 0.2:
            stage.push_cancel(chance.choice(list(stage.grants.values())))
        else:
            stage.later(chance.choice([0.01, 1.0, 8.0, 25.0]))

    def _answer(self, command: Claim | Heartbeat | Report) -> None:
        stage, chance = self.stage, self._random
        if chance.random() < 0.1:  # it was lost
            return
        if chance.random() < 0.1:
            assert command.command_id is not None
            stage.tell(NotSent((command.command_id,)))
            return
        asked_at = stage.asked[command.command_id]
        match command:
            case Claim():
                self._grant(command, asked_at)
            case Heartbeat():
                self._renew(command, asked_at)
            case Report():
                for row in command.outcomes:
                    stage.book.pop(_key(row.job_id, row.lease), None)
                stage.reported(command, *[chance.choice([*RowResult][:2]) for _ in command.outcomes])

    def _grant(self, claim: Claim, asked_at: float) -> None:
        stage = self.stage
        jobs = []
        for _ in range(self._random.randint(0, claim.max_jobs)):
            self._number += 1
            jobs.append(stage.grant(f"job-{self._number}", claim.queue))
        if asked_at + LEASE > stage.now:
            for grant in jobs:
                stage.granted_now[key_of(grant)] = _Entry(asked_at, asked_at + LEASE)
        stage.granted(claim, *jobs)

    def _renew(self, beat: Heartbeat, asked_at: float) -> None:
        stage = self.stage
        lost = [lease.job_id for lease in beat.leases if self._random.random() < 0.1]
        is_in_time = asked_at + LEASE > stage.now
        for lease in beat.leases:
            entry = stage.book.get(_key(lease.job_id, lease.lease))
            if entry is not None and lease.job_id not in lost and is_in_time:
                entry.holds_until = max(entry.holds_until, asked_at + LEASE)
                entry.is_unanswered = False
        stage.renewed(beat, lost=lost)


def _key(job_id: JobId, lease: int | None) -> LeaseKey:
    assert lease is not None
    return LeaseKey(job_id, EventSequence(lease))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("grace", [0.0, 3.0, 40.0])
def test_nothing_about_a_lease_is_ever_late(grace: float, seed: int) -> None:
    play = _Play(seed)
    for _ in range(_TURNS):
        play.turn()
    play.stage.tell(Drain(grace))
    for _ in range(_TURNS):
        if play.stage.driver.is_done():
            break
        play.turn()
    assert play.stage.driver.is_done()
