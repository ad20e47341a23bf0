"""Why attempts failed: what handlers raised, and what failed without an exception of theirs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tidelog.testing.errors import AttemptFailed
from tidelog.testing.ledger import Ledger
from tidelog_events.identity import JobId
from tidelog_events.transitions import DeadLettered, LeaseExpired, Quarantined, RetryScheduled


@dataclass(frozen=True, slots=True)
class Raised:
    """An attempt that failed, and by which exception.

    Attributes:
        job_id: the job.
        attempt: which attempt of it.
        error: what its handler raised, with the handler's own traceback; an `AttemptFailed` when it failed
            without: by its timeout, or because it could not be run.
    """

    job_id: JobId
    attempt: int
    error: BaseException


class Failures:
    """Every attempt that failed, once each: the log is the measure."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._seen = 0
        self._raised: Counter[tuple[JobId, int]] = Counter()

    def take(self, raised: list[Raised]) -> list[Raised]:
        """What failed since the last call, of which handlers raised those."""
        self._raised.update((failure.job_id, failure.attempt) for failure in raised)
        return [*raised, *self._without_exception()]

    def _without_exception(self) -> Iterator[Raised]:
        new = self._ledger.events[self._seen :]
        self._seen += len(new)
        for event in new:
            match event:
                case RetryScheduled() | DeadLettered():
                    error = event.error
                case Quarantined():
                    error = event.terminal_cause
                case LeaseExpired():
                    error = event.terminal_cause or f"Lease expired on attempt {event.attempt}."
                case _:
                    continue
            attempt = (event.job_id, event.attempt)
            if self._raised[attempt]:
                self._raised[attempt] -= 1
            else:
                yield Raised(event.job_id, event.attempt, AttemptFailed(error))
