"""Which workers are there: read from what they have sent to a partition of the commands lately.

Nothing announces a worker, and nothing has to: one with a free slot asks for work of each of its queues every
few seconds (its claims are parked for so long), and one that holds jobs renews their leases.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidelog.clock import Clock, wall_clock
from tidelog.log.port import Record, TopicPartition
from tidelog.log.scan import scan
from tidelog_events.identity import QueueName, WorkerId
from tidelog_events.instants import SECOND
from tidelog_events.jsontext import Json, NotJson, loads

if TYPE_CHECKING:
    from tidelog.log.port import Log

CLAIM_SECONDS: Final = 20
"""A worker of ours with a free slot repeats its claims every 5 seconds; this is with much patience."""
SIGN_SECONDS: Final = 60
"""It renews its leases every 20 seconds, as they are by default."""
_MOST_RECORDS: Final = 20_000
_LOOK_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Presence:
    """What the workers of a partition's queues have sent lately.

    Attributes:
        asking: by queue, the workers that asked for its jobs within `CLAIM_SECONDS`, or whose claim may still
            be parked.
        holding: by queue, the workers that renewed or reported jobs of it within `SIGN_SECONDS`.
        is_whole: False when there were more commands than were read: then absence proves nothing.
    """

    asking: Mapping[QueueName, frozenset[WorkerId]]
    holding: Mapping[QueueName, frozenset[WorkerId]]
    is_whole: bool

    def is_served(self, queue: QueueName) -> bool:
        """Whether a worker was heard of for that queue."""
        return bool(self.asking.get(queue) or self.holding.get(queue))

    @property
    def workers(self) -> frozenset[WorkerId]:
        """All that were heard of."""
        return frozenset().union(*self.asking.values(), *self.holding.values())


async def look_for_workers(log: Log, commands: TopicPartition, *, clock: Clock = wall_clock) -> Presence:
    """Read the newest commands of one partition. Never for more than some seconds, whatever there is.

    Raises:
        LogUnavailable: the log does not answer.
        UnknownTopic: there is no such partition.
    """
    now = clock() / SECOND
    end = await log.end_offset(commands)
    start = await log.offset_at(commands, now - SIGN_SECONDS)
    recent = await log.offset_at(commands, now - CLAIM_SECONDS)
    read_from = max(start, end - _MOST_RECORDS)
    signs = _Signs(recent)
    is_whole = read_from == start
    try:
        async with (
            asyncio.timeout(_LOOK_SECONDS),
            aclosing(scan(log, commands, end, begin=read_from)) as parts,
        ):
            async for records, _ in parts:
                for record in records:
                    signs.take(record)
    except TimeoutError:
        is_whole = False
    return Presence(_frozen(signs.asking), _frozen(signs.holding), is_whole)


class _Signs:
    """Collects what commands tell of workers; what is malformed tells nothing."""

    def __init__(self, recent: int) -> None:
        self._recent = recent
        self.asking: defaultdict[QueueName, set[WorkerId]] = defaultdict(set)
        self.holding: defaultdict[QueueName, set[WorkerId]] = defaultdict(set)

    def take(self, record: Record) -> None:
        """Take in one command."""
        text = record.value or b""
        if b'"worker_id"' not in text:
            return
        try:
            command = loads(text)
        except NotJson:
            return
        match command:
            case {"type": "claim", "worker_id": str(worker_id), "queue": str(queue), **others}:
                if record.offset >= self._recent or _waits_long(others.get("wait_seconds")):
                    self.asking[QueueName(queue)].add(WorkerId(worker_id))
            case {"type": "heartbeat", "worker_id": str(worker_id), "leases": list(rows)}:
                self._holds(worker_id, rows)
            case {"type": "report", "worker_id": str(worker_id), "outcomes": list(rows)}:
                self._holds(worker_id, rows)

    def _holds(self, worker_id: str, rows: list[Json]) -> None:
        for queue in set(_queues_of(rows)):
            self.holding[queue].add(WorkerId(worker_id))


def _waits_long(seconds: object) -> bool:
    """Whether a claim of the last minute may still be parked."""
    return isinstance(seconds, int | float) and seconds >= CLAIM_SECONDS


def _queues_of(rows: list[Json]) -> Iterator[QueueName]:
    for row in rows:
        match row:
            case {"job_id": str(job_id)} if "/" in job_id:
                yield QueueName(job_id.partition("/")[0])


def _frozen(found: Mapping[QueueName, set[WorkerId]]) -> dict[QueueName, frozenset[WorkerId]]:
    return {queue: frozenset(workers) for queue, workers in found.items()}
