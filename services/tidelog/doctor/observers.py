"""The observers: whether they keep up, stand still, or have given up on events."""

from __future__ import annotations

from typing import Final

from tidelog.doctor.findings import Finding, Health
from tidelog.doctor.site import Site
from tidelog.observer.status import ObserverStatus, observer_statuses
from tidelog.words import listed, plural
from tidelog_events.instants import Instant

NAME: Final = "observers"
_LATE_SECONDS: Final = 60.0
_ERROR_CHARS: Final = 200


async def check_observers(site: Site) -> list[Finding]:
    """How each observer is."""
    now = site.clock()
    statuses = await observer_statuses(site.log, site.topics)
    if not statuses:
        return [Finding(NAME, Health.OK, "no observer has begun here")]
    return [finding for status in statuses for finding in judge_observer(status, now)]


def judge_observer(status: ObserverStatus, now: Instant) -> list[Finding]:
    """One line for where an observer is, one more for each thing that is wrong with it."""
    findings = [_judge_lag(status, now)]
    if status.lost:
        findings.append(
            Finding(
                NAME,
                Health.ERROR,
                f"{status.observer_id} stands still at {listed(status.lost)}: the log does not hold what "
                "comes next",
                "Its process logs both offsets. Stop it, and say where it is to go on: "
                f"`tidelog observers seek {status.observer_id} beginning|now|TIME`.",
            )
        )
    findings += [
        Finding(
            NAME,
            Health.WARNING,
            f"{status.observer_id} does not get on at {listed([position.partition])}: "
            f"{(position.failing or '')[:_ERROR_CHARS]}",
            "Mend the cause. Until this event is told, or is a dead letter after the last try, the events "
            "behind it wait.",
        )
        for position in status.failing
    ]
    if status.dead_letters:
        findings.append(
            Finding(
                NAME,
                Health.WARNING,
                f"{status.observer_id} has given up on {plural(status.dead_letters, 'event')}; the newest: "
                f"{(status.last_error or '')[:_ERROR_CHARS]}",
                f"When its cause is mended: `tidelog observers redrive {status.observer_id}`.",
            )
        )
    return findings


def _judge_lag(status: ObserverStatus, now: Instant) -> Finding:
    if not status.events:
        return Finding(NAME, Health.OK, f"{status.observer_id} has been told everything")
    seconds = status.lag_seconds(now)
    message = (
        f"{status.observer_id} has yet to be told {plural(status.events, 'event')}; the oldest is "
        f"{seconds:.1f} s old"
    )
    if not status.members:
        return Finding(
            NAME,
            Health.WARNING,
            f"{message}, and no process runs it",
            "Start one: `tidelog observe MODULE:APP`. If nobody needs it any more: "
            f"`tidelog observers forget {status.observer_id}`.",
        )
    if seconds <= _LATE_SECONDS:
        return Finding(NAME, Health.OK, message)
    return Finding(
        NAME,
        Health.WARNING,
        message,
        "Look at what its processes log: an event that fails holds its partition until the last try. If it "
        "is only slow, start more of them.",
    )
