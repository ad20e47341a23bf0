"""A log, a real engine on a thread of its own, and workers: for tests from end to end.

The engine has its own thread because some handlers here block the event loop of the test.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.roles import at_work

from tidelog.engine.engine import Engine
from tidelog.handler.jobs import declare
from tidelog.log.port import Log, NewRecord, TopicPartition
from tidelog.log.topics import Topics
from tidelog.worker.pump import LogFactory
from tidelog.worker.registry import JobRegistry
from tidelog.worker.settings import WorkerSettings
from tidelog.worker.worker import Worker
from tidelog_events.codec import decode_transition, encode_command
from tidelog_events.commands import Cancel, Command, Enqueue
from tidelog_events.identity import JobId, partition_of
from tidelog_events.transitions import JobFact, Transition

TOPICS = Topics()
PARTITIONS = 3
BOUND = 30.0


class RunningEngine:
    """An engine on a thread of its own."""

    def __init__(self, open_log: LogFactory) -> None:
        self._open_log = open_log
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()), name="engine", daemon=True)
        self._thread.start()

    async def stop(self) -> None:
        await asyncio.to_thread(self._started.wait, BOUND)
        self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, BOUND)
        assert not self._thread.is_alive()

    async def _run(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._started.set()
        async with await self._open_log() as log:
            await Engine(log, TOPICS).run(self._stop)


class History:
    """Reads the transitions as they come. Each reader of it has its own."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.events: list[Transition] = []

    async def start(self) -> None:
        self._reader = await self._log.reader(
            {TopicPartition(TOPICS.transitions, partition): 0 for partition in range(PARTITIONS)}
        )

    async def until(self, condition: Callable[[], bool]) -> None:
        """Read on until the condition holds."""
        deadline = time.monotonic() + BOUND
        while not condition():
            assert time.monotonic() < deadline, f"not reached; {self.summary()}"
            for record in await self._reader.read(max_records=1_000, timeout=0.2):
                event = decode_transition(record.value)
                assert event is not None
                self.events.append(event)

    def of(self, job_id: JobId | str) -> list[JobFact]:
        return [event for event in self.events if isinstance(event, JobFact) and event.job_id == job_id]

    def types(self, job_id: JobId | str) -> list[str]:
        """What happened to a job, without the renewals of its leases."""
        return [event.TYPE for event in self.of(job_id) if event.TYPE != "lease_renewed"]

    def summary(self) -> dict[str, list[str]]:
        ids = dict.fromkeys(event.job_id for event in self.events if isinstance(event, JobFact))
        return {job_id: self.types(job_id) for job_id in ids}


@asynccontextmanager
async def built(open_log: LogFactory) -> AsyncIterator[House]:
    """An installation over the log that is opened so, with a running engine."""
    async with await open_log() as log:
        await log.create_topics(TOPICS.specs(PARTITIONS, 2))
        engine = RunningEngine(open_log)
        history = History(log)
        await history.start()
        try:
            yield House(log, open_log, history)
        finally:
            await engine.stop()


@dataclass
class House:
    """An installation: a log with topics, an engine, and what happened so far."""

    log: Log
    open_log: LogFactory
    history: History
    registry: JobRegistry = field(default_factory=JobRegistry)

    def job(self, function: Callable[..., Any], **options: Any) -> None:
        """Declare a handler under its own name."""
        declare(function.__name__, register=self.registry.add, **options)(function)

    async def send(self, queue: str, command: Command) -> None:
        producer = await self.log.producer()
        await producer.append(
            [
                NewRecord(
                    TOPICS.commands, partition_of(queue, PARTITIONS), queue.encode(), encode_command(command)
                )
            ],
            timeout=BOUND,
        )
        await producer.close()

    async def enqueue(self, wire_name: str, key: str, queue: str = "default", **fields: Any) -> JobId:
        job_id = JobId(f"{queue}/{key}")
        command = Enqueue.model_validate(
            {"type": "enqueue", "wire_name": wire_name, "job_id": job_id, **fields}
        )
        await self.send(queue, command)
        return job_id

    async def cancel(self, job_id: JobId) -> None:
        await self.send(job_id.split("/")[0], Cancel(job_id=job_id))

    async def until_ends(self, *job_ids: JobId) -> list[str]:
        """Wait until the jobs have ended; their last types."""
        await self.history.until(
            lambda: all(
                any(event.state.is_terminal for event in self.history.of(job_id)) for job_id in job_ids
            )
        )
        return [self.history.types(job_id)[-1] for job_id in job_ids]

    async def until_type(self, job_id: JobId, kind: str, count: int = 1) -> None:
        """Wait until something has happened to a job so many times."""
        await self.history.until(
            lambda: sum(kind == event.TYPE for event in self.history.of(job_id)) >= count
        )

    @asynccontextmanager
    async def worker(self, **settings: Any) -> AsyncIterator[Worker]:
        """A running worker, which is stopped at the end."""
        settings = {"queues": ("default",), "lease_seconds": 5.0, "grace_seconds": 10.0, **settings}
        worker = Worker(
            registry=self.registry,
            open_log=self.open_log,
            topics=TOPICS,
            settings=WorkerSettings(**settings),
        )
        async with at_work(worker, bound=BOUND):
            yield worker
