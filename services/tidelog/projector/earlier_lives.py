"""Jobs whose id belonged to another job before, for a rebuild that archives what the log tells."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from typing import TYPE_CHECKING

from tidelog.log.port import Isolation, TopicPartition
from tidelog.log.scan import scan
from tidelog.projector.decoding import entry_of
from tidelog_events.identity import JobId
from tidelog_events.record import JobRecord
from tidelog_events.transitions import Enqueued, Purged
from tidelog_projections.batch import Happened

if TYPE_CHECKING:
    from tidelog.log.port import Log


async def born_again(log: Log, source: TopicPartition, jobs: Mapping[JobId, JobRecord]) -> frozenset[JobId]:
    """Those of the jobs of which the log tells the birth, and the purge of an earlier job of that id.

    What is archived is copied from rows, in the order of the log. The row of such a job, restored from the
    state, would stand in the place of the earlier one's; but the log is enough to make it.

    Args:
        log: up to its present end.
        source: the transitions of a partition.
        jobs: as the engines' state has them, read before.

    Raises:
        LogUnavailable: the log does not answer.
        UnknownVersion: the log holds what only a later release reads.
    """
    purged: set[JobId] = set()
    found: set[JobId] = set()
    # What the state has in it may be visible among the transitions a moment later only.
    end = await log.end_offset(source, Isolation.UNCOMMITTED)
    async with aclosing(scan(log, source, end)) as batches:
        async for records, _ in batches:
            for entry in map(entry_of, records):
                match entry:
                    case Happened(event=Purged(job_id=job_id)) if job_id in jobs:
                        purged.add(job_id)
                    case Happened(event=Enqueued(job_id=job_id, sequence=sequence)) if job_id in purged:
                        if sequence == jobs[job_id].enqueue_sequence:
                            found.add(job_id)
    return frozenset(found)
