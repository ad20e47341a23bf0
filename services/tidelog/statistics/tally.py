"""What a transition adds to the statistics: pure, and the same for every way of reading the log.

A job is followed from one event to the next by two instants: since when it is due, and since when it runs.
All jobs of a queue live in one partition, in order; so an event that comes again is known by its sequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self, TypedDict

from tidelog.statistics.histogram import Histogram, add
from tidelog_events.instants import SECOND, Instant
from tidelog_events.states import JobState
from tidelog_events.transitions import (
    Cancelled,
    DeadLettered,
    Enqueued,
    JobTransition,
    Leased,
    LeaseExpired,
    Quarantined,
    Released,
    Requeued,
    RetryScheduled,
    Returned,
    Succeeded,
)

WINDOW_SECONDS: Final = 60


class Followed(TypedDict):
    """What must be known of a live job: since when it is due, and since when it runs."""

    due: Instant | None
    leased_at: Instant | None


class Window(TypedDict):
    """What happened within a minute to the jobs of one queue and wire name.

    `sequence` is that of the last event counted. `failed` counts tries: retries, dead letters and leases that
    ran out. `wait` is from the instant that a job was due to its lease, `run` from there to its outcome.
    """

    sequence: int
    enqueued: int
    started: int
    succeeded: int
    failed: int
    dead_lettered: int
    quarantined: int
    cancelled: int
    wait: Histogram
    run: Histogram


def empty_window() -> Window:
    """A window in which nothing has happened."""
    return Window(
        sequence=-1,
        enqueued=0,
        started=0,
        succeeded=0,
        failed=0,
        dead_lettered=0,
        quarantined=0,
        cancelled=0,
        wait={},
        run={},
    )


def window_start(at: Instant) -> Instant:
    """Where the window of an instant begins: at a whole minute."""
    return Instant(at - at % (WINDOW_SECONDS * SECOND))


@dataclass(slots=True)
class Step:
    """A job's way over one event.

    Attributes:
        followed: what is to be known of the job from now on; None when it has ended.
        waited, ran: seconds from due to lease, and from lease to outcome, when this event ends that span.
    """

    followed: Followed | None
    waited: float | None = None
    ran: float | None = None

    @classmethod
    def over(cls, before: Followed | None, event: JobTransition) -> Self:
        """Follow a job over its next event. Of one whose beginning was not seen less is measured."""
        due = None if before is None else before["due"]
        leased_at = None if before is None else before["leased_at"]
        match event:
            case Leased():
                return cls(Followed(due=None, leased_at=event.at), waited=_seconds(due, event.at))
            case Enqueued() if event.state is JobState.AWAITING_PARENT:
                return cls(Followed(due=None, leased_at=None))
            case Enqueued() | Released() | Requeued() if not event.state.is_terminal:
                return cls(Followed(due=event.due_time, leased_at=None))
            case RetryScheduled() | Returned():
                ran = _seconds(leased_at, event.at) if isinstance(event, RetryScheduled) else None
                return cls(Followed(due=event.due_time, leased_at=None), ran=ran)
            case LeaseExpired() if event.due_time is not None:
                return cls(Followed(due=event.due_time, leased_at=None))
            case Succeeded() | DeadLettered():
                return cls(None, ran=_seconds(leased_at, event.at))
            case _:
                return cls(None)


def count(window: Window, event: JobTransition, step: Step) -> bool:
    """Count an event into the window of its minute; False, and nothing is, when it was counted already."""
    if event.sequence <= window["sequence"]:
        return False
    window["sequence"] = event.sequence
    match event:
        case Enqueued():
            window["enqueued"] += 1
            window["cancelled"] += event.state is JobState.CANCELLED
        case Leased():
            window["started"] += 1
        case Succeeded():
            window["succeeded"] += 1
        case RetryScheduled():
            window["failed"] += 1
        case LeaseExpired() | DeadLettered():
            window["failed"] += 1
            window["dead_lettered"] += event.state is JobState.DEAD_LETTERED
        case Quarantined():
            window["quarantined"] += 1
        case Cancelled():
            window["cancelled"] += 1
    if step.waited is not None:
        add(window["wait"], step.waited)
    if step.ran is not None:
        add(window["run"], step.ran)
    return True


def _seconds(since: Instant | None, until: Instant) -> float | None:
    return None if since is None else max(0, until - since) / SECOND
