"""What the driver is told and what it wants done: the only words between it and the world."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from tidelog_events.commands import Claim, Heartbeat, Outcome, Report
from tidelog_events.identity import CommandId, JobId, QueueName, Sequence
from tidelog_events.instants import Instant
from tidelog_events.replies import Answer, Grant


class LeaseKey(NamedTuple):
    """One lease of one job. A worker may hold a job that it lost and was granted again: two leases."""

    job_id: JobId
    lease: Sequence


class StopReason(IntEnum):
    """Why a handler is asked to stop; a greater reason overrides a smaller one."""

    CANCELLED = 1
    """Somebody cancelled the job."""
    SHUT_DOWN = 2
    """The worker stops, and its grace time is over (or the handler had not begun)."""
    TIMED_OUT = 3
    """The attempt took longer than its declaration allows."""
    LEASE_LOST = 4
    """The job belongs to somebody else by now; whatever comes of the handler is thrown away."""


@dataclass(frozen=True, slots=True)
class Answered:
    """An engine said something."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Began:
    """A handler began to run; it may take `timeout` seconds from now on."""

    key: LeaseKey
    timeout: float | None


@dataclass(frozen=True, slots=True)
class Ended:
    """A handler ended, or will never begin: its slot is free. No outcome: there is nothing to report."""

    key: LeaseKey
    outcome: Outcome | None


@dataclass(frozen=True, slots=True)
class Sent:
    """Commands were handed to the log: the offset of each, or None when the log did not say so."""

    positions: tuple[tuple[CommandId, int | None], ...]


@dataclass(frozen=True, slots=True)
class NotSent:
    """The log refused commands: it is certain that they are not in it."""

    command_ids: tuple[CommandId, ...]


@dataclass(frozen=True, slots=True)
class Drain:
    """Stop claiming; running jobs may go on for so many seconds. A second one can only shorten the time."""

    grace_seconds: float


Event: TypeAlias = Answered | Began | Ended | Sent | NotSent | Drain


@dataclass(frozen=True, slots=True)
class Start:
    """Run the handler of a granted job."""

    grant: Grant


@dataclass(frozen=True, slots=True)
class Stop:
    """Ask a handler to stop; one that has not begun must not begin."""

    key: LeaseKey
    reason: StopReason


@dataclass(frozen=True, slots=True)
class Extend:
    """A lease was renewed: it holds until then at least, by the engine's clock."""

    key: LeaseKey
    lease_expiry: Instant


Action: TypeAlias = Start | Stop | Extend


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A command to send, with the queue that is its record's key."""

    queue: QueueName
    command_id: CommandId
    command: Claim | Heartbeat | Report
