"""A log with events on it, and observers that run beside the test."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from tests.conformance.cluster import SECONDS, Cluster, read_to_end
from tests.engine.house import eventually
from tests.roles import at_work

from tidelog.app import App
from tidelog.core.decision import JobFields
from tidelog.handler.jobs import Retry
from tidelog.log.port import Log, NewRecord, Record, TopicPartition
from tidelog.log.topics import Topics
from tidelog.observer.context import ObserverContext
from tidelog.observer.dead_letters import DeadLetter
from tidelog.observer.observer import Observer, ObserverSettings
from tidelog_events.codec import encode_transition
from tidelog_events.identity import JobId, Partition, QueueName, WorkerId
from tidelog_events.identity import Sequence as EventSequence
from tidelog_events.instants import SECOND, Instant, parse_instant
from tidelog_events.jsontext import JsonBytes
from tidelog_events.retry import DEFAULT_RETRY
from tidelog_events.states import DependencyMode, JobState
from tidelog_events.transitions import DeadLettered, Enqueued, Leased, QueuePaused, Transition

TOPICS = Topics("t")
PARTITIONS = 2
START = parse_instant("2026-01-01T00:00:00Z")
AT_ONCE = Retry(max_attempts=3, delays=[0])
HASTY = ObserverSettings(
    grace_seconds=5.0,
    commit_seconds=0.0,
    read_seconds=0.02,
    farewell_seconds=0.05,
    redrive_seconds=0.02,
)
NEVER = 10_000.0
"""Seconds that no test waits for."""


class Events:
    """Writes events to one partition, densely numbered, a second apart."""

    def __init__(self, log: Log, partition: int, topics: Topics = TOPICS) -> None:
        self._log = log
        self._topics = topics
        self.partition = Partition(partition)
        self.written: list[Transition] = []

    def at(self, number: int) -> Instant:
        return Instant(START + number * SECOND)

    async def put(self, *events: Transition) -> None:
        """Append events as an engine would."""
        await self.put_raw(*((_key(event), encode_transition(event)) for event in events))
        self.written += events

    async def put_raw(self, *records: tuple[bytes, bytes]) -> None:
        producer = await self._log.producer()
        await producer.append(
            [NewRecord(self._topics.transitions, self.partition, key, value) for key, value in records],
            timeout=SECONDS,
        )
        await producer.close()

    async def enqueued(self, count: int, *, queue: str = "q", wire_name: str = "w") -> None:
        """So many jobs are born."""
        await self.put(*(self.birth(number, queue, wire_name) for number in range(count)))

    def birth(self, number: int = 0, queue: str = "q", wire_name: str = "w") -> Enqueued:
        """The birth of a job; `number` more events come before it."""
        sequence = len(self.written) + number
        return Enqueued(
            at=self.at(sequence),
            partition=self.partition,
            sequence=EventSequence(sequence),
            job_id=JobId(f"{queue}/{sequence}"),
            queue=QueueName(queue),
            wire_name=wire_name,
            state=JobState.SCHEDULED,
            attempt=0,
            ordinal=0,
            payload=JsonBytes(b"null"),
            due_time=self.at(sequence),
            parents=(),
            mode=DependencyMode.ON_SUCCESS,
            parents_remaining=0,
            tags=(),
            retry=DEFAULT_RETRY,
            trace_context=None,
            workflow_id=None,
            schedule_id=None,
            terminal_at=None,
            terminal_cause=None,
        )

    def _next_about(self, birth: Enqueued) -> JobFields:
        """The fields of the next event, about a job."""
        number = len(self.written)
        return {
            "at": self.at(number),
            "partition": self.partition,
            "sequence": EventSequence(number),
            "cause_command_id": None,
            "job_id": birth.job_id,
            "queue": birth.queue,
            "wire_name": birth.wire_name,
        }

    def lease(self, birth: Enqueued) -> Leased:
        return Leased(
            **self._next_about(birth),
            state=JobState.LEASED,
            attempt=1,
            ordinal=1,
            worker_id=WorkerId("ann"),
            lease_expiry=self.at(len(self.written) + 60),
        )

    def death(self, birth: Enqueued) -> DeadLettered:
        return DeadLettered(
            **self._next_about(birth),
            state=JobState.DEAD_LETTERED,
            attempt=1,
            ordinal=2,
            error="ValueError: no",
            failure_detail="ValueError: no\n  line 1",
            add_tags=(),
            terminal_at=self.at(len(self.written)),
            terminal_cause="ValueError: no",
        )

    def pause(self, queue: str = "q") -> QueuePaused:
        return QueuePaused(
            at=self.at(len(self.written)),
            partition=self.partition,
            sequence=EventSequence(len(self.written)),
            queue=QueueName(queue),
        )


def _key(event: Transition) -> bytes:
    return str(getattr(event, "job_id", None) or getattr(event, "queue", "")).encode()


@dataclass
class Seen:
    """What a handler was told, in the order in which it was told."""

    events: list[Transition] = field(default_factory=list)
    contexts: list[ObserverContext] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __len__(self) -> int:
        return len(self.events)

    def take(self, context: ObserverContext) -> None:
        with self._lock:
            self.events.append(context.transition)
            self.contexts.append(context)

    def keys(self, partition: int | None = None) -> list[str]:
        """The idempotency keys of the deliveries."""
        with self._lock:
            return [
                context.idempotency_key
                for context in self.contexts
                if partition is None or context.partition == partition
            ]

    def has(self, key: str) -> bool:
        """Whether the event of that key was delivered."""
        return key in self.keys()

    def handler(self, *, failing: Callable[[ObserverContext], bool] = lambda _: False) -> Any:
        async def handle(context: ObserverContext) -> None:
            self.take(context)
            if failing(context):
                raise ValueError(f"not {context.idempotency_key}")

        return handle


class Stage:
    """An installation without engines: events are written by the test."""

    def __init__(self, cluster: Cluster, log: Log, topics: Topics) -> None:
        self.cluster = cluster
        self.log = log
        self.topics = topics
        self.partitions = [Events(log, partition, topics) for partition in range(PARTITIONS)]

    @classmethod
    async def build(cls, cluster: Cluster, topics: Topics = TOPICS) -> Stage:
        log = await cluster.connect()
        await log.create_topics(topics.specs(PARTITIONS, 1))
        return cls(cluster, log, topics)

    @asynccontextmanager
    async def observing(
        self,
        handler: Any,
        observer_id: str = "watch",
        *,
        settings: ObserverSettings = HASTY,
        start: Literal["beginning", "now"] | datetime = "beginning",
        retry: Retry = AT_ONCE,
        share: int | None = PARTITIONS,
        log: Log | None = None,
        **options: Any,
    ) -> AsyncIterator[Observer]:
        """A running observer with a connection of its own, stopped at the end as SIGTERM does.

        It is waited for until it has `share` partitions.
        """
        app = App()
        app.observer(observer_id, start=start, retry=retry, **options)(handler)
        [definition] = app.observers
        log = log or await self.cluster.connect()
        observer = Observer(log, self.topics, definition, settings=settings)
        async with at_work(observer, bound=SECONDS) as task:
            await eventually(lambda: share is None or task.done() or len(observer.assignment) == share)
            yield observer

    async def dead_letters(self) -> list[DeadLetter]:
        """All that stand on their topic."""
        records = await self.dead_letter_records()
        return [letter for record in records if (letter := DeadLetter.read(record)) is not None]

    async def dead_letter_records(self) -> Sequence[Record]:
        return await read_to_end(self.log, self.topics.observer_dead_letters)

    async def committed(self, observer_id: str = "watch") -> dict[int, int]:
        """The offsets of an observer's group, by partition."""
        [group] = await self.log.groups(self.topics.observer_group(observer_id))
        return {tp.partition: offset for tp, offset in group.committed.items()}

    async def end(self, partition: int) -> int:
        return await self.log.end_offset(TopicPartition(self.topics.transitions, partition))
