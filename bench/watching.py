"""What the log says about the jobs and the worker, as any other program may read it."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import Self

import orjson

from bench.errors import MeasureFailed
from bench.processes import Role
from tidelog.log.port import Log, Reader, Record, TopicPartition
from tidelog.log.topics import Topics
from tidelog_events.identity import QueueName, partition_of
from tidelog_events.jsontext import Json

_READ_RECORDS = 5_000
_READ_SECONDS = 0.2
_PAUSE_SECONDS = 0.02
"""Between two looks: who watches each commit takes the processor from those whom he watches."""
_STALLED_SECONDS = 30.0


class FirstClaim:
    """The first claim that comes into the log from now on: the worker that sends it is ready."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @classmethod
    async def watch(cls, log: Log, topics: Topics, queue: QueueName) -> Self:
        """Begin to watch."""
        return cls(await _reader_from_end(log, topics.commands, queue))

    async def arrive(self, worker: Role, *, timeout: float) -> None:
        """Wait for it, once. Raises `MeasureFailed` when the worker ends, or it does not come in time."""
        deadline = time.monotonic() + timeout
        while not any(_kind(record) == "claim" for record in await _read(self._reader)):
            worker.refuse_end()
            if time.monotonic() > deadline:
                raise MeasureFailed(f"the worker claimed nothing within {timeout:g} s of its start")
        await self._reader.close()


@dataclass(frozen=True, slots=True)
class Life:
    """A job that has succeeded.

    Attributes:
        enqueued_at: when its enqueue was decided, as the event has it; None when that was not watched.
    """

    job_id: str
    enqueued_at: str | None
    output: Json


class Outcomes:
    """What becomes of the jobs of a queue."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._decided: dict[str, str] = {}

    @classmethod
    async def watch(cls, log: Log, topics: Topics, queue: QueueName) -> Self:
        """Begin to watch what comes into the log from now on."""
        return cls(await _reader_from_end(log, topics.transitions, queue))

    async def succeeded(self, count: int, *roles: Role) -> list[Json]:
        """Wait until so many jobs have succeeded; their outputs, in the order of their ends.

        Raises:
            MeasureFailed: a job did anything else than to succeed, one of the roles ended, or nothing
                moved for half a minute.
        """
        return [life.output for life in await self.lives(count, *roles)]

    async def lives(self, count: int, *roles: Role) -> list[Life]:
        """The same, with what is known of each job besides its output."""
        outputs: list[Life] = []
        moved = time.monotonic()
        while len(outputs) < count:
            records = await _read(self._reader)
            outputs += (life for record in records if (life := self._ended(record)) is not None)
            if records:
                moved = time.monotonic()
            elif time.monotonic() - moved > _STALLED_SECONDS:
                raise MeasureFailed(
                    f"{len(outputs)} of {count} jobs succeeded, then nothing for {_STALLED_SECONDS:g} s"
                )
            for role in roles:
                role.refuse_end()
            await asyncio.sleep(_PAUSE_SECONDS)
        return outputs

    def _ended(self, record: Record) -> Life | None:
        written = orjson.loads(record.value or b"null")
        kind = written["type"]
        if kind == "enqueued":
            self._decided[written["job_id"]] = written["at"]
        if kind == "succeeded":
            job_id = written["job_id"]
            return Life(job_id, self._decided.pop(job_id, None), written["output"])
        if kind not in _EXPECTED:
            raise MeasureFailed(f"a job came to {kind!r}: {(record.value or b'').decode(errors='replace')}")
        return None


_EXPECTED = frozenset({"enqueued", "leased", "lease_renewed", "queue_paused", "queue_resumed"})


def _kind(record: Record) -> Json:
    kind: Json = orjson.loads(record.value or b"{}").get("type")
    return kind


async def _read(reader: Reader) -> list[Record]:
    return await reader.read(max_records=_READ_RECORDS, timeout=_READ_SECONDS)


async def _reader_from_end(log: Log, topic: str, queue: QueueName) -> Reader:
    tp = TopicPartition(topic, partition_of(queue, await log.partitions(topic)))
    return await log.reader({tp: await log.end_offset(tp)})
