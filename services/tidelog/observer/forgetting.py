"""Forgetting an observer that nobody runs any more."""

from __future__ import annotations

from tidelog.log.port import GroupInUse, Log
from tidelog.log.topics import Topics
from tidelog.observer.errors import ObserverRuns
from tidelog.observer.status import stopped_group_of


async def forget(log: Log, topics: Topics, observer_id: str) -> None:
    """Forget where an observer is. One that comes back begins at its declared start.

    Its dead letters stay on their topic, and its redrive group says how far they were redriven: without it,
    all that was ever asked for would be delivered again.

    Raises:
        UnknownObserver: none of that id has ever run here, or it is forgotten already.
        ObserverRuns: a process runs it; nothing was forgotten.
        LogUnavailable: the log does not answer; it may be forgotten all the same.
    """
    group = await stopped_group_of(log, topics, observer_id)
    try:
        await log.forget_group(group.name)
    except GroupInUse:
        raise ObserverRuns(
            f"The observer {observer_id!r} was started meanwhile: stop it first. Nothing was forgotten."
        ) from None
