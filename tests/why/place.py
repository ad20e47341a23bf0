"""An installation to ask about: jobs, operators, and workers that are nothing but the commands they send."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import orjson
from tests.doctor.patient import BOUND, Patient

from tidelog.client.client import Client
from tidelog.clock import wall_clock
from tidelog.log.port import Log, NewRecord
from tidelog.why import Why, ask_why
from tidelog_events.identity import JobId, QueueName, partition_of
from tidelog_events.instants import SECOND, Instant
from tidelog_events.jsontext import Json
from tidelog_events.record import JobRecord
from tidelog_events.states import JobState
from tidelog_projections.projection import Projection


@dataclass(frozen=True, slots=True)
class Place:
    """What a test works with."""

    patient: Patient
    log: Log
    client: Client
    projection: Projection

    async def why(self, job_id: str, *, later: float = 0.0) -> Why:
        """The answer, so many seconds later by the clock of whoever asks."""
        return await ask_why(
            self.log,
            self.patient.topics,
            self.projection,
            JobId(job_id),
            clock=lambda: Instant(wall_clock() + round(later * SECOND)),
        )

    async def codes(self, job_id: str, *, later: float = 0.0) -> list[str]:
        """The reasons, by their codes."""
        return [reason.code.value for reason in (await self.why(job_id, later=later)).reasons]

    async def tell(self, queue: str, command: dict[str, Json]) -> None:
        """Send a command as a worker in any language would."""
        producer = await self.log.producer()
        partition = partition_of(QueueName(queue), self.patient.partitions)
        record = NewRecord(self.patient.topics.commands, partition, queue.encode(), orjson.dumps(command))
        await producer.append([record], timeout=BOUND)
        await producer.close()

    async def claim(self, queue: str, worker_id: str = "worker-1", **fields: Json) -> None:
        """A worker asks for a job."""
        await self.tell(queue, {"type": "claim", "worker_id": worker_id, "queue": queue, **fields})

    async def run(self, job_id: str, worker_id: str = "worker-1", **fields: Json) -> JobRecord:
        """Let a worker have the job, which must be the next one of its queue."""
        await self.claim(job_id.partition("/")[0], worker_id, **fields)
        return await self.until(job_id, JobState.LEASED)

    async def report(self, job: JobRecord, outcome: str, **fields: Json) -> None:
        """Its worker reports."""
        row: dict[str, Json] = {"job_id": job.job_id, "attempt": job.attempt, "outcome": outcome, **fields}
        await self.tell(job.queue, {"type": "report", "worker_id": job.lease_owner, "outcomes": [row]})

    async def until(self, job_id: str, state: JobState) -> JobRecord:
        """The job once Postgres has it in that state."""
        while True:
            record = await self.projection.job(JobId(job_id))
            if record is not None and record.state is state:
                return record


@asynccontextmanager
async def place_of(
    patient: Patient, *, engine: bool = True, projector: bool = True, archive: bool = False
) -> AsyncIterator[Place]:
    """An installation in which these roles run."""
    await patient.initialise()
    async with AsyncExitStack() as stack:
        if engine:
            await stack.enter_async_context(patient.engine())
        if projector:
            await stack.enter_async_context(patient.projector())
        log = await stack.enter_async_context(await patient.connect())
        projection = await stack.enter_async_context(await Projection.connect(patient.dsn, archive=archive))
        client = await stack.enter_async_context(Client.open(log, patient.topics))
        yield Place(patient, log, client, projection)
