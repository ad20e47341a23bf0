"""Finding jobs in the log: what had happened to them up to an event, folded as everybody folds it.

A transition other than `enqueued` does not carry the payload or the tags. They stand in the events before it,
and most jobs are short: so it is read backwards, in windows that grow, until the beginning of each job is
found. Records are passed over by their key alone; only those of the jobs in question are decoded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import aclosing
from typing import Final

from tidelog.log.port import Log, Record, TopicPartition
from tidelog.log.scan import scan
from tidelog_events.codec import Undecodable, UnknownVersion, decode_transition
from tidelog_events.identity import JobId
from tidelog_events.record import JobRecord
from tidelog_events.transitions import Enqueued, JobFact

_FIRST_WINDOW: Final = 1_000
_WIDER: Final = 8


async def look_back(
    log: Log, source: TopicPartition, job_ids: Collection[JobId], end: int
) -> dict[JobId, JobRecord]:
    """The jobs as they were when the log had the records before offset `end`.

    A job whose beginning the log has forgotten, or that never was, is left out.

    Raises:
        LogUnavailable: the log does not answer.
    """
    found: dict[JobId, JobRecord] = {}
    histories: dict[JobId, list[JobFact]] = {job_id: [] for job_id in job_ids}
    start = await log.start_offset(source)
    window = _FIRST_WINDOW
    while histories and end > start:
        begin = max(start, end - window)
        keys = {job_id.encode(): job_id for job_id in histories}
        for key, records in (await _records_of(log, source, begin, end, keys)).items():
            job_id = keys[key]
            earlier = _latest_life([event for event in map(_job_fact, records) if event is not None])
            histories[job_id][:0] = earlier
            if earlier and isinstance(earlier[0], Enqueued):
                found[job_id] = _folded(histories.pop(job_id))
        end = begin
        window *= _WIDER
    return found


async def _records_of(
    log: Log, source: TopicPartition, begin: int, end: int, keys: Mapping[bytes, JobId]
) -> dict[bytes, list[Record]]:
    """The records with these keys from `begin` to before `end`, in order."""
    found: dict[bytes, list[Record]] = {}
    async with aclosing(scan(log, source, end, begin=begin)) as parts:
        async for records, _ in parts:
            for record in records:
                if record.key is not None and record.key in keys:
                    found.setdefault(record.key, []).append(record)
    return found


def _job_fact(record: Record) -> JobFact | None:
    try:
        event = decode_transition(record.value)
    except (Undecodable, UnknownVersion):
        return None  # its own delivery says so; here it adds nothing that could be folded
    return event if isinstance(event, JobFact) else None


def _latest_life(events: list[JobFact]) -> list[JobFact]:
    """The events from the last birth on; an id may have belonged to another job before."""
    for index in range(len(events) - 1, -1, -1):
        if isinstance(events[index], Enqueued):
            return events[index:]
    return events


def _folded(events: list[JobFact]) -> JobRecord:
    first, *rest = events
    if not isinstance(first, Enqueued):
        raise TypeError(f"a life begins with {first.TYPE!r}")
    record = JobRecord.born(first)
    for event in rest:
        record.apply(event)
    return record
