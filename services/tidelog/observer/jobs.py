"""The jobs of a partition as they were at the event that an observer has come to.

Nothing is kept until somebody asks for a job. Then the jobs that are alive at that event are taken from the
engines' changelog (`state`, compacted: as large as what lives and is retained), and followed from there on by
the fold of the events, so that each later question is answered from memory. What has changed between that
event and the changelog's newest entries, and what is purged by now, is looked for back in the log.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import aclosing
from copy import copy
from typing import Final

from tidelog.core.changelog import is_job_key
from tidelog.core.entry import decode_job
from tidelog.log.port import Isolation, Log, TopicPartition
from tidelog.log.scan import scan
from tidelog.log.topics import Topics
from tidelog.observer.look_back import look_back
from tidelog_events.identity import JobId, Sequence
from tidelog_events.record import RECORD_FIELDS, JobRecord
from tidelog_events.transitions import Enqueued, JobFact, Purged, Transition

_MOST_ENDED: Final = 200
"""Ended jobs that are kept for what may still come: a requeue, the purge."""
_MOST_FORGOTTEN: Final = 1_000
_BREATHER: Final = 200


def job_of(event: Transition) -> JobId | None:
    """The job that an event is about."""
    return event.job_id if isinstance(event, (JobFact, Purged)) else None


async def find_job(
    log: Log, topics: Topics, event: Transition, partition: int, offset: int
) -> JobRecord | None:
    """The job as it was right after the event at that offset, whatever it takes to find it.

    When the log has forgotten the job's beginning it is what the engines know of the job now, if they do:
    payload and all that never changes is right, the rest may be newer than the event.

    Raises:
        LogUnavailable: the log does not answer.
        UnreadableState: the changelog holds what this release cannot read.
    """
    job_id = job_of(event)
    if job_id is None:
        return None
    source = TopicPartition(topics.transitions, partition)
    found = await look_back(log, source, [job_id], offset + 1)
    if job_id in found:
        return found[job_id]
    entry: bytes | None = None
    async with aclosing(_entries(log, TopicPartition(topics.state, partition))) as entries:
        async for key, value in entries:
            if key == job_id:
                entry = value
    if entry is None:
        return None
    record = _record_in(entry)
    return record if record.enqueue_sequence <= event.sequence else None


class FollowedJobs:
    """The jobs of one partition, followed from the first question on.

    `pass_by` is told each event in its order; `job` answers as of an event, the newest one as a rule.
    """

    def __init__(self, log: Log, topics: Topics, partition: int) -> None:
        self._log = log
        self._topics = topics
        self._partition = partition
        self._offset = -1
        self._sequence = Sequence(-1)
        self._is_following = False
        self._beginning = asyncio.Lock()
        self._missed: list[Transition] | None = None
        self._live: dict[JobId, JobRecord] = {}
        self._ended: OrderedDict[JobId, JobRecord] = OrderedDict()
        self._forgotten: OrderedDict[JobId, JobRecord | None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._live)

    def pass_by(self, event: Transition, offset: int) -> None:
        """The next event of the partition."""
        self._offset, self._sequence = offset, event.sequence
        if self._missed is not None:
            self._missed.append(event)
        elif self._is_following:
            self._fold(event)

    async def job(self, event: Transition, offset: int) -> JobRecord | None:
        """The job as it was right after an event that has passed by. See `find_job`."""
        job_id = job_of(event)
        if job_id is None:
            return None
        async with self._beginning:
            if not self._is_following:
                await self._begin()
        known = self._live.get(job_id) or self._ended.get(job_id)
        if known is not None and self._is_as_of(known, event):
            return copy(known)
        if job_id in self._forgotten:
            return copy(self._forgotten[job_id])
        found = await find_job(self._log, self._topics, event, self._partition, offset)
        if found is not None and self._is_as_of(found, event):
            if self._sequence == event.sequence:
                self._put(found)
        else:
            self._forgotten[job_id] = found
            if len(self._forgotten) > _MOST_FORGOTTEN:
                self._forgotten.popitem(last=False)
        return copy(found)

    @staticmethod
    def _is_as_of(record: JobRecord, event: Transition) -> bool:
        if isinstance(event, JobFact):
            return record.sequence == event.sequence
        return record.sequence < event.sequence  # the purge of the job, which changes no record

    async def _begin(self) -> None:
        """Take in the jobs that are alive as of the newest event that has passed by."""
        self._missed = []
        offset, sequence = self._offset, self._sequence
        try:
            unchanged, changed = await self._alive(sequence)
            source = TopicPartition(self._topics.transitions, self._partition)
            found = await look_back(self._log, source, changed, offset + 1)
        except BaseException:
            self._missed = None
            raise
        for record in (*unchanged.values(), *found.values()):
            self._put(record)
        missed, self._missed = self._missed, None
        for event in missed:
            self._fold(event)
        self._is_following = True

    async def _alive(self, sequence: Sequence) -> tuple[dict[JobId, JobRecord], set[JobId]]:
        """The jobs that live as of a sequence: those that have not changed since, and ids of the others."""
        unchanged: dict[JobId, JobRecord] = {}
        changed: set[JobId] = set()
        source = TopicPartition(self._topics.state, self._partition)
        async with aclosing(_entries(self._log, source)) as entries:
            async for job_id, entry in entries:
                unchanged.pop(job_id, None)
                changed.discard(job_id)
                if entry is None:
                    continue
                record = _record_in(entry)
                if record.enqueue_sequence > sequence:
                    continue
                if record.sequence > sequence:
                    changed.add(job_id)
                elif not record.state.is_terminal:
                    unchanged[job_id] = record
        return unchanged, changed

    def _fold(self, event: Transition) -> None:
        if isinstance(event, Enqueued):
            self._forgotten.pop(event.job_id, None)
            self._put(JobRecord.born(event))
        elif isinstance(event, JobFact):
            record = self._live.get(event.job_id) or self._ended.get(event.job_id)
            if record is not None:
                record.apply(event)
                self._put(record)

    def _put(self, record: JobRecord) -> None:
        self._live.pop(record.job_id, None)
        self._ended.pop(record.job_id, None)
        if not record.state.is_terminal:
            self._live[record.job_id] = record
            return
        self._ended[record.job_id] = record
        if len(self._ended) > _MOST_ENDED:
            self._ended.popitem(last=False)


async def _entries(log: Log, source: TopicPartition) -> AsyncGenerator[tuple[JobId, bytes | None], None]:
    """The entries of jobs in the changelog, in their order: the last of each counts, and may be none.

    Up to the *uncommitted* end: the entries of a transaction may become visible a moment later than its
    events, and must not be missed.
    """
    end = await log.end_offset(source, Isolation.UNCOMMITTED)
    async with aclosing(scan(log, source, end)) as parts:
        async for records, _ in parts:
            for number, record in enumerate(records):
                if number % _BREATHER == 0:
                    await asyncio.sleep(0)  # whoever reads on shares the loop with the group's heartbeats
                key = (record.key or b"").decode()
                if is_job_key(key):
                    yield JobId(key), record.value


def _record_in(entry: bytes) -> JobRecord:
    """What everybody may know of the job in an entry, without what only engines do."""
    job = decode_job(entry)
    return JobRecord(**{name: getattr(job, name) for name in RECORD_FIELDS})
