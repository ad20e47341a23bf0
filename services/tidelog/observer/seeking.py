"""Saying where an observer is to go on: the way out when the log does not hold what comes next."""

from __future__ import annotations

import time
from typing import Final

from tidelog.log.port import Log, LogUnavailable, Member
from tidelog.log.topics import Topics
from tidelog.observer.errors import ObserverRuns
from tidelog.observer.start import Start, beginnings_of
from tidelog.observer.status import stopped_group_of

_ASSIGN_SECONDS: Final = 30.0
_COMMIT_SECONDS: Final = 10.0


async def seek(log: Log, topics: Topics, observer_id: str, start: Start) -> dict[int, int]:
    """Set the offsets of an observer that does not run; by partition, what they are now.

    What lies between is told again, or never.

    Raises:
        UnknownObserver: none of that id has ever run here.
        ObserverRuns: a process runs it, or has begun to meanwhile; then perhaps not all offsets are set.
        LogUnavailable: the log does not answer.
    """
    group = await stopped_group_of(log, topics, observer_id)
    offsets = await beginnings_of(log, topics.transitions, start)
    member = await log.join(group.name, topics.transitions)
    try:
        await _until_assigned(member, observer_id, len(offsets))
        await member.commit(offsets, timeout=_COMMIT_SECONDS)
        # What a process that has joined just now was given is left out of the commit without a word.
        if any([await member.committed(partition) != offset for partition, offset in offsets.items()]):
            raise ObserverRuns(
                f"The observer {observer_id!r} was started meanwhile, and goes on where it was in some "
                "partitions: stop it, and say again where it is to go on."
            )
    finally:
        await member.close()
    return offsets


async def _until_assigned(member: Member, observer_id: str, count: int) -> None:
    """Only a member may commit, and only what is its: that all is shows that nobody else is there."""
    deadline = time.monotonic() + _ASSIGN_SECONDS
    while len(member.assignment) < count:
        if time.monotonic() > deadline:
            raise LogUnavailable(
                f"The group of the observer {observer_id!r} did not give its partitions within "
                f"{_ASSIGN_SECONDS:.0f} s; perhaps a process of it has just started."
            )
        await member.changed(timeout=1.0)
