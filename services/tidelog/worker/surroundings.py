"""What handlers run in: their tasks, their threads, their context variables.

A worker's handlers run in what stands here. The testing kit has surroundings of its own, in which time is
virtual and threads take turns; the runner is the same in both.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Coroutine
from typing import Any, TypeVar

from tidelog.clock import wall_clock
from tidelog.handler.context import CancelSignal
from tidelog.handler.daemon_threads import DaemonThreads, Work
from tidelog_events.instants import Instant
from tidelog_events.replies import Grant

T = TypeVar("T")


class Surroundings:
    """What a worker's handlers run in.

    Every attempt has a context of its own: nothing that another job set can be seen, and nothing is left
    behind.
    """

    def __init__(self) -> None:
        self._threads = DaemonThreads("tidelog-job")

    def create_task(
        self, grant: Grant, loop: asyncio.AbstractEventLoop, handler: Coroutine[Any, Any, T]
    ) -> asyncio.Task[T]:
        """Start an async handler. Called on its loop."""
        return loop.create_task(handler, name=f"tidelog job {grant.job_id}", context=contextvars.Context())

    def submit(self, grant: Grant, work: Work) -> None:  # noqa: ARG002  for surroundings that tell jobs apart
        """Run a plain function's attempt in a thread, soon."""
        self._threads.submit(lambda: contextvars.Context().run(work))

    def cancel_signal(self, grant: Grant) -> CancelSignal:  # noqa: ARG002  for surroundings that tell jobs apart
        """The `ctx.cancelled` of an attempt."""
        return CancelSignal()

    def now(self) -> Instant:
        """The time that handlers live in."""
        return wall_clock()

    def raised(self, grant: Grant, error: BaseException) -> None:
        """An attempt failed by that exception. Called where it ran, before its outcome is told."""

    def close(self) -> None:
        """Let idle threads end. Nothing is waited for."""
        self._threads.close()
