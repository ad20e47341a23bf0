"""An installation to measure: a log with fresh topics, and the roles that work on it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

from bench.errors import MeasureFailed
from bench.jobs import QUEUE
from bench.processes import Role, running
from bench.watching import FirstClaim, Outcomes
from tidelog.client.client import Client
from tidelog.client.errors import ReplyTimeout
from tidelog.log.address import open_log
from tidelog.log.port import Log
from tidelog.log.topics import Topics

EMBEDDED = "embedded"
"""Stands for an address: the embedded log in a new temporary folder for each measure."""
KAFKA = "kafka"
"""Stands for an address: a broker from the first of the ways that tests have to one."""

_START_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Installation:
    """A log with fresh topics, and an engine that serves them."""

    log: Log
    topics: Topics
    client: Client
    engine: Role

    @asynccontextmanager
    async def worker(self, concurrency: int) -> AsyncIterator[Role]:
        """Run a worker; the block begins when its first claim stands in the log."""
        first_claim = await FirstClaim.watch(self.log, self.topics, QUEUE)
        arguments = ["worker", "bench.jobs:app", "--concurrency", str(concurrency)]
        async with running("the worker", arguments, _environment(self.log, self.topics)) as worker:
            await first_claim.arrive(worker, timeout=_START_SECONDS)
            yield worker

    async def outcomes(self) -> Outcomes:
        """Watch what becomes of the jobs from now on."""
        return await Outcomes.watch(self.log, self.topics, QUEUE)


@asynccontextmanager
async def installed(address: str) -> AsyncIterator[Installation]:
    """An installation for the time of the block.

    On a log that is not `EMBEDDED` its topics, under a prefix of their own, stay behind.

    Raises:
        MeasureFailed: the engine does not serve.
        LogError: the log cannot be used.
    """
    with TemporaryDirectory(prefix="tidelog-bench-") as folder:
        where = f"sqlite:{Path(folder) / 'log.db'}" if address == EMBEDDED else address
        topics = Topics(f"bench-{uuid4().hex[:12]}")
        async with await open_log(where) as log:
            await log.create_topics(topics.specs())
            async with (
                running("the engine", ["engine"], _environment(log, topics)) as engine,
                Client.open(log, topics) as client,
            ):
                await _await_engine(client, engine)
                yield Installation(log, topics, client, engine)


async def _await_engine(client: Client, engine: Role) -> None:
    try:
        await client.resume_queue(QUEUE, timeout=_START_SECONDS)
    except ReplyTimeout as error:
        engine.refuse_end()
        raise MeasureFailed(f"the engine does not serve: {error}") from error


def _environment(log: Log, topics: Topics) -> dict[str, str]:
    return {"TIDELOG_LOG": log.address, "TIDELOG_PREFIX": topics.prefix}
