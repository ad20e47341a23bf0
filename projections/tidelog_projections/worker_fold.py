"""From events to what is known of workers, without a database: leases held, signs of life, what was done."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidelog_events.identity import Partition, WorkerId
from tidelog_events.instants import Instant
from tidelog_events.transitions import (
    DeadLettered,
    JobFact,
    LeaseExpired,
    Quarantined,
    RetryScheduled,
    Succeeded,
)
from tidelog_projections.text import shown


@dataclass(slots=True)
class _Share:
    """What a stretch of events changes of one worker. `last_seen` is None when they are no sign of life."""

    first_seen: Instant
    last_seen: Instant | None = None
    leases: int = 0
    succeeded: int = 0
    failed: int = 0
    expired: int = 0


class WorkerChanges:
    """What a stretch of events of one partition changes of workers."""

    def __init__(self) -> None:
        self._shares: dict[tuple[WorkerId, Partition], _Share] = {}

    def saw(self, event: JobFact) -> None:
        """Take in an event that names a worker; any other one changes nothing."""
        worker_id: WorkerId | None = getattr(event, "worker_id", None)
        if worker_id is None:
            return
        share = self._share(worker_id, event.partition, event.at)
        if isinstance(event, LeaseExpired):
            # It names the last owner, who did nothing.
            share.expired += 1
            return
        share.last_seen = event.at
        share.succeeded += isinstance(event, Succeeded)
        share.failed += isinstance(event, RetryScheduled | DeadLettered | Quarantined)

    def moved(
        self, partition: Partition, before: WorkerId | None, after: WorkerId | None, at: Instant
    ) -> None:
        """A job has another owner than before, as the rows of jobs have it."""
        if before == after:
            return
        if before is not None:
            self._share(before, partition, at).leases -= 1
        if after is not None:
            share = self._share(after, partition, at)
            share.leases += 1
            share.last_seen = at

    def _share(self, worker_id: WorkerId, partition: Partition, at: Instant) -> _Share:
        # As it is stored, so that an owner from a row and one from an event are the same.
        key = WorkerId(shown(worker_id)), partition
        share = self._shares.get(key)
        if share is None:
            share = self._shares[key] = _Share(at)
        return share

    def rows(self) -> Iterator[tuple[object, ...]]:
        """A row for each worker, for `PUT_WORKERS`."""
        for (worker_id, partition), share in self._shares.items():
            counts = share.leases, share.succeeded, share.failed, share.expired
            yield (worker_id, partition, share.first_seen, share.last_seen, *counts)
