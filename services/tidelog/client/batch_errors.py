"""What `enqueue_many` raises: refusals of a whole batch, and what became of each of its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidelog.client.newjob import NewJob
from tidelog_events.errors import TidelogError
from tidelog_events.identity import JobId

MAX_ATOMIC_JOBS: Final = 10_000
MAX_ATOMIC_BYTES: Final = 16 * 1024 * 1024
"""Of the commands of an atomic batch: a transaction of that size takes a fraction of its timeout."""


class BatchIncomplete(TidelogError):
    """Some jobs of an `enqueue_many` were refused, or their outcome is unknown; the others are enqueued.

    To call again with the same `NewJob` objects is safe: they keep their keys and command ids.

    Attributes:
        results: for each job, in input order, its id or the exception that stands for it.
    """

    def __init__(self, results: Sequence[JobId | TidelogError]) -> None:
        failures = [result for result in results if isinstance(result, TidelogError)]
        super().__init__(
            f"{len(failures)} of {len(results)} jobs were not enqueued for certain (see .results). "
            f"The first: {failures[0]}"
        )
        self.results = tuple(results)


class BatchTooLarge(TidelogError):
    """An `enqueue_many(..., atomic=True)` is over the bound of one transaction; nothing was sent.

    Attributes:
        jobs: how many it has.
        size: bytes of its commands; None when there are too many of them to be written.
    """

    def __init__(self, jobs: int, size: int | None = None) -> None:
        has = f"{jobs} jobs" if size is None else f"{jobs} jobs of {size} bytes"
        super().__init__(
            f"The batch has {has}; an atomic one may have at most {MAX_ATOMIC_JOBS} jobs, of "
            f"{MAX_ATOMIC_BYTES} bytes together. Nothing was sent. Split it, or do without atomic=True."
        )
        self.jobs = jobs
        self.size = size


class BatchUnconfirmed(TidelogError):
    """The log did not confirm an `enqueue_many(..., atomic=True)`: it has all of the jobs, or none.

    To call again with `jobs` is safe: they keep their keys and command ids.

    Attributes:
        jobs: the jobs, in input order.
    """

    def __init__(self, jobs: Sequence[NewJob], timeout: float) -> None:
        super().__init__(
            f"The log did not confirm a batch of {len(jobs)} jobs within {timeout:g} s: it has all of them "
            "or none. It is safe to enqueue them again (see .jobs)."
        )
        self.jobs = tuple(jobs)


class NotSent(TidelogError):
    """A job of an `enqueue_many` was not sent, because an earlier generation of parents had no answer."""

    def __init__(self, job_id: JobId) -> None:
        super().__init__(f"{job_id} was not sent: jobs that had to come first were not answered in time.")
        self.job_id = job_id
