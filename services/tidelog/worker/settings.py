"""How a worker works: queues, concurrency, leases, shutdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite

from tidelog.worker.dispatch import BadDispatch, DispatchPolicy, Strict, Weighted
from tidelog_events.errors import TidelogError
from tidelog_events.instants import MAX_SECONDS

MAX_CONCURRENCY = 10_000
MIN_LEASE_SECONDS = 0.5
"""Below this a lease could run out between two beats of a busy machine."""


class BadWorkerSettings(TidelogError):
    """A number of the worker's settings is outside its bounds; the message names it."""


@dataclass(frozen=True, slots=True)
class WorkerSettings:
    """How a worker works.

    Attributes:
        queues: what to serve, the most urgent first. Empty (and no weights): the queues of the declared jobs.
        weights: serve these queues in proportion instead; excludes `queues`.
        concurrency: how many jobs run at once.
        lease_seconds: how long a job stays with a worker that falls silent. Renewed at a third of it.
        wait_seconds: how long a claim waits at the engine when there is no work; never longer than a quarter
            of the lease.
        grace_seconds: how long running jobs may go on after a stop was asked for.
        cancel_by_exception: whether a cancelled job's async handler is cancelled the asyncio way (it sees
            `asyncio.CancelledError`), or only by `ctx.cancelled`.
    """

    queues: tuple[str, ...] = ()
    weights: Mapping[str, int] | None = None
    concurrency: int = 10
    lease_seconds: float = 60.0
    wait_seconds: float = 5.0
    grace_seconds: float = 30.0
    cancel_by_exception: bool = True

    def __post_init__(self) -> None:
        if self.queues and self.weights is not None:
            raise BadWorkerSettings("A worker takes queues in order, or weights, not both.")
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise BadWorkerSettings(f"concurrency is {self.concurrency}; it must be 1 to {MAX_CONCURRENCY}.")
        _check("lease_seconds", self.lease_seconds, MIN_LEASE_SECONDS)
        _check("wait_seconds", self.wait_seconds, 0.0)
        _check("grace_seconds", self.grace_seconds, 0.0)

    def policy(self, declared: tuple[str, ...]) -> DispatchPolicy:
        """The dispatch policy, for an application whose jobs name these queues.

        Raises:
            BadDispatch: there is nothing to serve, or a queue or a weight is wrong.
        """
        if self.weights is not None:
            return Weighted(self.weights)
        queues = self.queues or declared
        if not queues:
            raise BadDispatch(
                "The application declares no job, so there is no queue to serve. Import the modules that "
                "declare its jobs in the one that is named, or say which queues."
            )
        return Strict(queues)


def _check(name: str, seconds: float, least: float) -> None:
    if not isfinite(seconds) or not least <= seconds <= MAX_SECONDS:
        raise BadWorkerSettings(f"{name} is {seconds} s; it must be {least:g} to {MAX_SECONDS} s.")
