"""Gathering the evidence: the whole log, read by a reader of its own, and the tables, by plain SQL."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

import asyncpg
from tests.torture.deliveries import to_be_delivered
from tests.torture.evidence import Depths, Evidence, Row, Step, Tags
from tests.torture.faults import pass_time
from tests.torture.journal import Journal

from tidelog.log.port import Isolation, Log, Reader, TopicPartition
from tidelog.log.topics import Topics
from tidelog_events.codec import decode_transition
from tidelog_events.errors import TidelogError
from tidelog_events.identity import JobId, Partition
from tidelog_events.identity import Sequence as Number
from tidelog_events.states import JobState
from tidelog_events.transitions import JobFact, Transition
from tidelog_projections.projection import Projection

_READ_SECONDS: Final = 5.0
_LOOK_SECONDS: Final = 0.2
_SHOWN: Final = 10


class NeverSettled(TidelogError):
    """Jobs did not end, or Postgres did not catch up, within the bound. The message names some of them."""


class History:
    """The transitions as they stand in the log, read from its start."""

    def __init__(self, topic: str, partitions: int) -> None:
        self._topic = topic
        self.events: dict[Partition, list[Transition]] = {Partition(n): [] for n in range(partitions)}
        self.last: dict[JobId, JobFact] = {}

    async def read_until_settled(self, log: Log, acknowledged: frozenset[JobId], seconds: float) -> None:
        """Read until every job that was acknowledged is there, and every job that is there has ended.

        Raises:
            NeverSettled: that did not come about in time.
        """
        tps = [TopicPartition(self._topic, partition) for partition in self.events]
        reader = await log.reader({tp: await log.start_offset(tp) for tp in tps})
        try:
            async with asyncio.timeout(seconds):
                while not (acknowledged <= self.last.keys() and not self._alive()):
                    await self._take(reader)
                # Nothing may follow now, and what follows all the same is for the audit to see.
                ends = {tp: await log.end_offset(tp, Isolation.UNCOMMITTED) for tp in tps}
                while any(reader.position(tp) < end for tp, end in ends.items()):
                    await self._take(reader)
        except TimeoutError:
            raise NeverSettled(self._what_is_left(acknowledged, seconds)) from None
        finally:
            await reader.close()

    async def _take(self, reader: Reader) -> None:
        for record in await reader.read(max_records=10_000, timeout=_READ_SECONDS):
            event = decode_transition(record.value)
            if event is None:
                raise TypeError(f"{record.topic}[{record.partition}] {record.offset} is of an unknown type")
            self.events[Partition(record.partition)].append(event)
            if isinstance(event, JobFact):
                self.last[event.job_id] = event

    def _alive(self) -> list[JobFact]:
        return [fact for fact in self.last.values() if not fact.state.is_terminal]

    def _what_is_left(self, acknowledged: frozenset[JobId], seconds: float) -> str:
        missing = sorted(acknowledged - self.last.keys())
        alive = [
            f"{fact.job_id} is {fact.state} since {fact.partition}:{fact.sequence}" for fact in self._alive()
        ]
        return (
            f"{seconds:g} s after the end of the faults {len(missing)} acknowledged jobs are not in the log"
            f" ({', '.join(missing[:_SHOWN])}) and {len(alive)} have not ended ({', '.join(alive[:_SHOWN])})"
        )


async def wait_for_projection(dsn: str, history: History, seconds: float) -> None:
    """Wait until Postgres shows all of the history.

    Raises:
        NeverSettled: it did not in time.
    """
    async with await Projection.connect(dsn) as projection:
        for partition, events in history.events.items():
            last = Number(len(events) - 1)
            if not await projection.wait_for(partition, last, timeout=seconds):
                position = (await projection.positions()).get(partition)
                raise NeverSettled(
                    f"{seconds:g} s after the last job ended, Postgres has partition {partition} up to "
                    f"{position} and not to event {last}"
                )


async def wait_for_deliveries(observers: Journal, history: History, seconds: float) -> None:
    """Wait until the observer was told of everything that it is to be told of.

    Raises:
        NeverSettled: it was not in time.
    """
    wanted = {place for events in history.events.values() for place in to_be_delivered(events)}
    deadline = time.monotonic() + seconds
    while missing := wanted.difference(observers.deliveries()):
        if time.monotonic() > deadline:
            raise NeverSettled(
                f"{seconds:g} s after all jobs ended, the observer was not told of {len(missing)}"
                f" transitions: {sorted(missing)[:_SHOWN]}"
            )
        await pass_time(_LOOK_SECONDS)


async def gather(
    log: Log,
    topics: Topics,
    dsn: str,
    clients: Journal,
    handlers: Journal,
    observers: Journal,
    seconds: float,
) -> Evidence:
    """Wait until the run has settled, and gather what it left.

    Raises:
        NeverSettled: within so many seconds, twice, it has not.
    """
    acknowledged = clients.jobs("acknowledged")
    history = History(topics.transitions, await log.partitions(topics.transitions))
    await history.read_until_settled(log, acknowledged, seconds)
    await wait_for_projection(dsn, history, seconds)
    await wait_for_deliveries(observers, history, seconds)
    connection = await asyncpg.connect(dsn)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            return Evidence(
                events=history.events,
                sent=clients.jobs("sent"),
                acknowledged=acknowledged,
                runs=handlers.runs(),
                deliveries=observers.deliveries(),
                rows=await _rows(connection),
                steps=await _steps(connection),
                tags=await _tags(connection),
                parents=await _parents(connection),
                depths=await _depths(connection, "SELECT queue, state, count FROM tidelog.queue_depths"),
                counted=await _depths(
                    connection,
                    "SELECT queue, state, count(*) FROM tidelog.jobs GROUP BY queue, state",
                ),
                partitions=len(history.events),
            )
    finally:
        await connection.close()


async def _rows(connection: asyncpg.Connection[asyncpg.Record]) -> Mapping[JobId, Row]:
    return {row["job_id"]: dict(row) for row in await connection.fetch("SELECT * FROM tidelog.jobs")}


async def _steps(connection: asyncpg.Connection[asyncpg.Record]) -> Mapping[JobId, Sequence[Step]]:
    steps: defaultdict[JobId, list[Step]] = defaultdict(list)
    for row in await connection.fetch(
        "SELECT job_id, ordinal, type, sequence FROM tidelog.job_transitions ORDER BY job_id, ordinal"
    ):
        steps[row["job_id"]].append((row["ordinal"], row["type"], row["sequence"]))
    return steps


async def _tags(connection: asyncpg.Connection[asyncpg.Record]) -> Mapping[JobId, Tags]:
    tags: defaultdict[JobId, list[tuple[str, str | None]]] = defaultdict(list)
    for job_id, key, value in await connection.fetch(
        "SELECT job_id, key, value FROM tidelog.job_tags ORDER BY job_id, position"
    ):
        tags[job_id].append((key, value))
    return tags


async def _parents(connection: asyncpg.Connection[asyncpg.Record]) -> Mapping[JobId, Sequence[str]]:
    parents: defaultdict[JobId, list[str]] = defaultdict(list)
    for job_id, parent_id in await connection.fetch(
        "SELECT job_id, parent_id FROM tidelog.job_dependencies ORDER BY job_id, position"
    ):
        parents[job_id].append(parent_id)
    return parents


async def _depths(connection: asyncpg.Connection[asyncpg.Record], query: str) -> Depths:
    found: dict[tuple[str, str], int] = {}
    for queue, state, count in await connection.fetch(query):
        found[queue, JobState(state).value] = count
    return found
