"""What a handler may ask for beside the transition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Final, TypeAlias

from tidelog_events.identity import Partition, Sequence
from tidelog_events.record import JobRecord
from tidelog_events.transitions import JobTransition, Transition

FindJob: TypeAlias = Callable[[], Coroutine[None, None, JobRecord | None]]
"""Finds the job of a delivery, on the loop of the observer's connection to the log."""

_FIND_SECONDS: Final = 600.0
"""The longest wait of a plain function for its job; the handler's own timeout is shorter as a rule."""


async def _no_job() -> JobRecord | None:
    return None


class ObserverContext:
    """One delivery of a transition to an observer.

    Handlers that declare a parameter of this type get it. Tests may make one themselves.

    Attributes:
        transition: what happened.
        observer_id: whom it is told.
        try_number: from 1. It starts again when the process does, or another one takes over.
        is_redrive: whether this is a dead letter that somebody has asked to deliver again.
    """

    def __init__(
        self,
        transition: Transition,
        *,
        observer_id: str,
        try_number: int = 1,
        is_redrive: bool = False,
        find_job: FindJob = _no_job,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.transition = transition
        self.observer_id = observer_id
        self.try_number = try_number
        self.is_redrive = is_redrive
        self._find_job = find_job
        self._loop = loop

    @property
    def partition(self) -> Partition:
        """With `sequence` the position of the event, the same in every delivery of it."""
        return self.transition.partition

    @property
    def sequence(self) -> Sequence:
        """Dense from 0 within the partition."""
        return self.transition.sequence

    @property
    def idempotency_key(self) -> str:
        """`<partition>-<sequence>`: the same for every delivery of this event, and of no other one.

        Within one installation: events of two installations may have the same key.
        """
        return f"{self.partition}-{self.sequence}"

    @property
    def error(self) -> str | None:
        """Why an attempt failed or a job ended, where the transition says so."""
        return _text(self.transition, "error") or _text(self.transition, "terminal_cause")

    @property
    def failure_detail(self) -> str | None:
        """Type, message and stack of a failed attempt, where the transition has them."""
        return _text(self.transition, "failure_detail")

    async def job(self) -> JobRecord | None:
        """The job as it was right after this transition: with its payload, tags and all else.

        It is read from the log, so that it is there for jobs that are purged by now. None when the
        transition is about no job, or when the log has forgotten the job's beginning.

        Raises:
            LogUnavailable: the log does not answer.
        """
        if self._loop is None or self._loop is asyncio.get_running_loop():
            return await self._find_job()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._find_job(), self._loop))

    def job_sync(self) -> JobRecord | None:
        """The same for handlers that are plain functions, which run in a thread."""
        if self._loop is None:
            return asyncio.run(self._find_job())
        return asyncio.run_coroutine_threadsafe(self._find_job(), self._loop).result(_FIND_SECONDS)


def _text(event: Transition, field: str) -> str | None:
    if not isinstance(event, JobTransition):
        return None
    value: object = getattr(event, field, None)
    return value if isinstance(value, str) else None
