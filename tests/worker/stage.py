"""A stage for the driver: it plays the pump and an engine that is told what to say, with time as a number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeVar

from tests.worker.grants import granted

from tidelog.worker.dispatch import DispatchPolicy, Strict
from tidelog.worker.driver import Driver, DriverConfig
from tidelog.worker.messages import (
    Action,
    Answered,
    Began,
    Ended,
    Event,
    LeaseKey,
    Outgoing,
    Sent,
    Start,
    Stop,
)
from tidelog.worker.outcomes import succeeded
from tidelog_events.codec import encode_command
from tidelog_events.commands import Claim, Heartbeat, Outcome, Report
from tidelog_events.identity import (
    ClientId,
    CommandId,
    JobId,
    Partition,
    WorkerId,
    partition_of,
)
from tidelog_events.identity import Sequence as EventSequence
from tidelog_events.instants import SECOND, Instant
from tidelog_events.jsontext import Json, JsonBytes, loads
from tidelog_events.parsing import Refusal, parse_command
from tidelog_events.replies import (
    CancelRequestedPush,
    ClaimReply,
    Grant,
    HeartbeatReply,
    Hello,
    LeaseAnswer,
    ReportReply,
    Result,
    RowResult,
)

PARTITIONS = 4
LEASE = 60.0
WORKER = WorkerId("worker-1")
C = TypeVar("C", Claim, Heartbeat, Report)


def key_of(grant: Grant) -> LeaseKey:
    return LeaseKey(grant.job_id, grant.lease)


@dataclass
class Stage:
    """Moves a driver through time. Every command that it sends is parsed as an engine would parse it."""

    policy: DispatchPolicy = field(default_factory=lambda: Strict(["q"]))
    concurrency: int = 4
    lease: float = LEASE
    wait: float = 5.0
    now: float = 1_000.0
    wall: int = 5_000
    sent: list[Outgoing] = field(default_factory=list)
    actions: list[Action] = field(default_factory=list)
    next_lease: int = 0
    end: int = 0
    """Of the log: where the next command will stand."""
    on_its_way: list[CommandId] = field(default_factory=list)
    holds_back: bool = False
    """Whether the log does not say yet where commands stand."""

    def __post_init__(self) -> None:
        config = DriverConfig(WORKER, ClientId("client"), "s", self.concurrency, self.lease, self.wait)
        self.driver = Driver(config, self.policy, PARTITIONS)
        self.tell()

    def tell(self, *events: Event) -> None:
        """Something happens (or nothing does); what the driver wants done and sent is kept."""
        self.actions = self.driver.step([*self._appended(), *events], self.now)
        self.sent = self.driver.take_commands()
        for outgoing in self.sent:
            self.on_its_way.append(outgoing.command_id)
            parsed = parse_command(_object(outgoing))
            assert not isinstance(parsed, Refusal), parsed

    def _appended(self) -> list[Sent]:
        """What the log says of the commands that were sent last."""
        if self.holds_back or not self.on_its_way:
            return []
        said = Sent(tuple((command_id, self.end + n) for n, command_id in enumerate(self.on_its_way)))
        self.end += len(self.on_its_way)
        self.on_its_way.clear()
        return [said]

    def later(self, seconds: float) -> None:
        """Time passes, with every wake on its way, as the pump would do it."""
        end = self.now + seconds
        sent, actions = [], []
        while (wake := self.driver.next_wake()) <= end:
            assert wake >= self.now, "a wake that lies behind would spin"
            self.now = max(wake, self.now)
            self.tell()
            sent += self.sent
            actions += self.actions
        self.now = end
        self.tell()
        self.sent, self.actions = [*sent, *self.sent], [*actions, *self.actions]

    def commands(self, kind: type[C]) -> list[C]:
        return [outgoing.command for outgoing in self.sent if isinstance(outgoing.command, kind)]

    @property
    def claims(self) -> list[Claim]:
        return self.commands(Claim)

    @property
    def beats(self) -> list[Heartbeat]:
        return self.commands(Heartbeat)

    @property
    def reports(self) -> list[Report]:
        return self.commands(Report)

    @property
    def started(self) -> list[Grant]:
        return [action.grant for action in self.actions if isinstance(action, Start)]

    @property
    def stops(self) -> list[Stop]:
        return [action for action in self.actions if isinstance(action, Stop)]

    def claim(self, queue: str = "q") -> Claim:
        """The one claim of a queue that was sent just now."""
        (claim,) = [claim for claim in self.claims if claim.queue == queue]
        return claim

    def grant(self, key: str, queue: str = "q", *, attempt: int = 1, cancel_requested: bool = False) -> Grant:
        self.next_lease += 1
        return granted(
            JobId(f"{queue}/{key}"),
            self.next_lease,
            attempt=attempt,
            lease_expiry=Instant(int((self.wall + self.lease) * SECOND)),
            cancel_requested=cancel_requested,
        )

    def answer(
        self,
        claim: Claim,
        *grants: Grant,
        left_over: bool = False,
        more: Literal[True] | None = None,
    ) -> ClaimReply:
        return ClaimReply(
            command_id=claim.command_id,
            type="claim",
            result=Result.OK,
            partition=partition_of(claim.queue, PARTITIONS),
            sequence=EventSequence(1),
            jobs=grants,
            next_due=Instant(self.wall * SECOND) if left_over else None,
            more=more,
        )

    def granted(
        self, claim: Claim, *grants: Grant, left_over: bool = False, more: Literal[True] | None = None
    ) -> None:
        """The engine answers a claim; the handlers begin at once."""
        self.tell(Answered(self.answer(claim, *grants, left_over=left_over, more=more)))
        sent, actions = self.sent, self.actions
        for grant in self.started:
            self.tell(Began(key_of(grant), None))
            sent, actions = [*sent, *self.sent], [*actions, *self.actions]
        self.sent, self.actions = sent, actions

    def running(self, *keys: str, queue: str = "q") -> list[Grant]:
        """Jobs that were granted and run."""
        grants = [self.grant(key, queue) for key in keys]
        self.granted(self.claim(queue), *grants)
        return grants

    def ended(self, grant: Grant, outcome: Outcome | None = None, *, output: JsonBytes = b"1") -> None:
        self.tell(Ended(key_of(grant), succeeded(grant, output) if outcome is None else outcome))

    def reported(self, report: Report, *results: RowResult) -> None:
        """The engine answers a report; all rows are applied unless something else is said."""
        self.tell(
            Answered(
                ReportReply(
                    command_id=report.command_id,
                    type="report",
                    result=Result.OK,
                    partition=Partition(0),
                    sequence=EventSequence(1),
                    results=results or (RowResult.APPLIED,) * len(report.outcomes),
                )
            )
        )

    def renewed(
        self, beat: Heartbeat, *, lost: Sequence[str] = (), cancel_requested: Sequence[str] = ()
    ) -> None:
        """The engine answers a heartbeat."""
        answers = tuple(
            LeaseAnswer(
                job_id=row.job_id,
                renewed=row.job_id not in lost,
                cancel_requested=row.job_id in cancel_requested,
            )
            for row in beat.leases
        )
        self.tell(
            Answered(
                HeartbeatReply(
                    command_id=beat.command_id,
                    type="heartbeat",
                    result=Result.OK,
                    partition=Partition(0),
                    sequence=EventSequence(1),
                    leases=answers,
                )
            )
        )

    def hello(self, queue: str = "q", *, position: int | None = None) -> None:
        """An engine takes over from this offset on; unless it is said, it is one that does not say so."""
        self.tell(Answered(Hello(partition=partition_of(queue, PARTITIONS), position=position)))

    def push_cancel(self, grant: Grant, *, lease: int | None = None) -> None:
        self.tell(
            Answered(
                CancelRequestedPush(
                    worker_id=WORKER,
                    job_id=grant.job_id,
                    attempt=grant.attempt,
                    lease=EventSequence(grant.lease if lease is None else lease),
                    partition=Partition(0),
                    sequence=EventSequence(1),
                )
            )
        )


def command_id(command: Claim | Heartbeat | Report) -> CommandId:
    assert command.command_id is not None
    return command.command_id


def rows(reports: Sequence[Report]) -> list[tuple[str, str]]:
    """Every row of reports: job id and outcome."""
    return [(row.job_id, row.outcome) for report in reports for row in report.outcomes]


def _object(outgoing: Outgoing) -> dict[str, Json]:
    written = loads(encode_command(outgoing.command))
    assert isinstance(written, dict)
    return written
