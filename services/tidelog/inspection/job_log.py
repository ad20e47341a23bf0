"""All that the log tells of one job: every life of its id, and the facts that Postgres has no rows for."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tidelog.log.port import Record, TopicPartition
from tidelog.log.scan import scan
from tidelog_events.identity import JobId, partition_of, queue_of
from tidelog_events.jsontext import Json, NotJson, loads

if TYPE_CHECKING:
    from tidelog.log.port import Log
    from tidelog.log.topics import Topics

_BIRTH: Final = "enqueued"


@dataclass(frozen=True, slots=True)
class LoggedFact:
    """An event about a job (contract section 4), as it stands in the log, of whatever type and version.

    Attributes:
        offset: where it stands.
        life: which life of the id it belongs to, from 1 on, of those that the log holds.
        fields: what it says.
        text: the JSON of it, to the letter.
    """

    offset: int
    life: int
    fields: dict[str, Json]
    text: bytes


@dataclass(slots=True)
class JobLog:
    """The facts about a job, in their order.

    Attributes:
        is_cut: whether the log has forgotten the beginning; then there may be nothing at all.
        unreadable: records about the job that are no JSON objects.
    """

    job_id: JobId
    is_cut: bool = False
    unreadable: int = 0
    facts: list[LoggedFact] = field(default_factory=list)


async def read_job_log(log: Log, topics: Topics, job_id: JobId) -> JobLog:
    """Read the one partition that the job lives in from its start to its present end, and keep what is its.

    Raises:
        LogUnavailable: the log does not answer, or could not be read to its end.
        UnknownTopic: there are no topics yet.
    """
    count = await log.partitions(topics.transitions)
    source = TopicPartition(topics.transitions, partition_of(queue_of(job_id), count))
    forgotten = await log.start_offset(source) > 0
    key = job_id.encode()
    found = JobLog(job_id)
    async with aclosing(scan(log, source, await log.end_offset(source))) as parts:
        async for records, _ in parts:
            for record in records:
                if record.key == key:
                    _take(found, record)
    found.is_cut = forgotten and not (found.facts and found.facts[0].fields.get("type") == _BIRTH)
    return found


def _take(found: JobLog, record: Record) -> None:
    text = record.value or b""
    try:
        fields = loads(text)
    except NotJson:
        fields = None
    if not isinstance(fields, dict):
        found.unreadable += 1
        return
    # A queue never has the key of a job, since an id has a slash; but a schedule may.
    if fields.get("job_id") != found.job_id:
        return
    life = found.facts[-1].life if found.facts else 1
    if found.facts and fields.get("type") == _BIRTH:
        life += 1
    found.facts.append(LoggedFact(record.offset, life, fields, text))
