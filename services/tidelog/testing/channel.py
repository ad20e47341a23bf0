"""How the clients of a harness reach its engines, and how they read jobs: without a log, without Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import blake2b

from tidelog.client.errors import WaitTimeout
from tidelog.client.portions import Commands
from tidelog.handler.context import NoOutput
from tidelog.log.port import NewRecord
from tidelog.testing.attempt import Attempt, current_attempt
from tidelog.testing.engine import VirtualEngine
from tidelog_events.identity import (
    ClientId,
    CommandId,
    JobId,
    Partition,
    QueueName,
    ScheduleId,
    random_key,
)
from tidelog_events.instants import Instant
from tidelog_events.jsontext import JsonBytes
from tidelog_events.record import JobRecord
from tidelog_events.replies import Answer, Reply
from tidelog_events.schedule_view import ScheduleView

CLIENT_ID = ClientId("harness-client")

PassTime = Callable[[Callable[[], bool], float], Awaitable[None]]
"""Lets virtual time go on until something holds, at most so many seconds."""


class VirtualMint:
    """Virtual time and keys that are the same in every run, for what clients mint."""

    def __init__(self, now: Callable[[], Instant]) -> None:
        self.now = now
        self._count = 0

    def mint(self) -> str:
        self._count += 1
        entropy = blake2b(self._count.to_bytes(8, "big"), digest_size=10)
        return random_key(self.now(), entropy.digest())


class VirtualChannel:
    """The exchange of a client: a command is decided before the call returns."""

    def __init__(self, engine: VirtualEngine) -> None:
        self._engine = engine
        self._answers: dict[CommandId, Reply] = {}
        engine.open_inbox(CLIENT_ID, self._answered)

    @property
    def pending(self) -> int:
        """No command waits for its answer."""
        return 0

    async def ask(
        self,
        what: str,  # noqa: ARG002 - nothing can go wrong that would have to be named
        commands: Commands,
        *,
        timeout: float,  # noqa: ARG002 - no command waits
        resend: bool,  # noqa: ARG002 - no command is lost
    ) -> Mapping[CommandId, Reply]:
        """Decide commands; their answers."""
        return self._decide(record for _, record in commands)

    async def ask_whole(
        self,
        what: str,  # noqa: ARG002 - as `ask`
        records: Mapping[CommandId, NewRecord],
        *,
        timeout: float,  # noqa: ARG002 - as `ask`
    ) -> Mapping[CommandId, Reply]:
        """Decide commands that were checked whole; their answers."""
        return self._decide(records.values())

    async def tell(self, what: str, record: NewRecord, *, timeout: float) -> None:  # noqa: ARG002 - as `ask`
        """Decide a command that asks for no answer."""
        self._engine.decide(record.value or b"")

    def _decide(self, records: Iterable[NewRecord]) -> Mapping[CommandId, Reply]:
        self._answers = {}
        for record in records:
            self._engine.decide(record.value or b"")
        return self._answers

    def _answered(self, answer: Answer) -> None:
        if isinstance(answer, Reply) and answer.command_id is not None:
            self._answers[answer.command_id] = answer


class VirtualJobs:
    """Reads jobs from the ledger. To wait for one lets virtual time go on."""

    def __init__(self, engine: VirtualEngine, pass_time: PassTime) -> None:
        self._engine = engine
        self._pass_time = pass_time

    async def get(
        self,
        job_id: JobId,
        partition: Partition,  # noqa: ARG002 - there is one ledger
        *,
        timeout: float,  # noqa: ARG002 - it is never behind
    ) -> JobRecord | None:
        """A job as it is now; None when there is none."""
        return self._engine.ledger.job(job_id)

    async def wait(
        self,
        job_id: JobId,
        partition: Partition,  # noqa: ARG002 - there is one ledger
        *,
        timeout: float,
    ) -> JobRecord:
        """A job once it has ended: at once, or after as much virtual time as that takes.

        In a handler the handler waits, as it would in production, and somebody else lets time go on.

        Raises:
            WaitTimeout: it did not end within `timeout` seconds of virtual time.
        """
        if not self._has_ended(job_id):
            attempt = current_attempt.get()
            if attempt is None:
                await self._pass_time(lambda: self._has_ended(job_id), timeout)
            else:
                await self._wait_in_handler(attempt, job_id, timeout)
        record = self._engine.ledger.job(job_id)
        if record is None or not record.state.is_terminal:
            raise WaitTimeout(job_id, timeout, record)
        return record

    async def schedule(
        self,
        schedule_id: ScheduleId,
        partition: Partition,  # noqa: ARG002 - there is one ledger
        *,
        timeout: float,  # noqa: ARG002 - it is never behind
    ) -> ScheduleView | None:
        """A schedule as it is now; None when there is none."""
        return self._engine.ledger.schedule(schedule_id)

    async def schedules(
        self,
        queue: QueueName | None,
        partition: Partition | None,  # noqa: ARG002 - there is one ledger
        *,
        timeout: float,  # noqa: ARG002 - it is never behind
    ) -> list[ScheduleView]:
        """All schedules, or those of a queue, by id."""
        return self._engine.ledger.schedules(queue)

    async def output(self, job_id: JobId) -> JsonBytes:
        """The output of a job that has ended, for `JobContext.dependency_output`.

        Raises:
            NoOutput: it has not ended, or there is no such job (any more).
        """
        record = self._engine.ledger.job(job_id)
        if record is None:
            raise NoOutput(f"The output of {job_id} cannot be read: there is no such job, or it was purged.")
        if not record.state.is_terminal:
            raise NoOutput(f"The output of {job_id} cannot be read: it is {record.state} and has not ended.")
        return record.output

    def _has_ended(self, job_id: JobId) -> bool:
        record = self._engine.ledger.job(job_id)
        return record is not None and record.state.is_terminal

    async def _wait_in_handler(self, attempt: Attempt, job_id: JobId, timeout: float) -> None:
        """The loop may be one of the handler's own, in its thread."""
        loop = asyncio.get_running_loop()
        ended: asyncio.Future[None] = loop.create_future()
        with attempt.waiting() as is_at_work:

            def wake() -> None:
                if not ended.done():  # it may have waited long enough
                    is_at_work()
                    loop.call_soon_threadsafe(_resolve, ended)

            self._engine.ledger.when_ended(job_id, wake)
            if self._has_ended(job_id):  # while it said so, on another thread
                wake()
            try:
                async with asyncio.timeout(timeout):
                    await ended
            except TimeoutError:
                return


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
