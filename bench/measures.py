"""The measures, by name. Each has an installation of its own, so that none inherits the log of another."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Final, TypeAlias

from bench.core import run_lives
from bench.figures import AtLeast, AtMost, Figure
from bench.installation import Installation, installed
from bench.jobs import QUEUE, noop, pickup
from bench.steps import Sent, steps_of
from tidelog.client.newjob import NewJob
from tidelog.handler.jobs import JobRequest

Values: TypeAlias = Mapping[Figure, float]

_BATCH = 1_000
_STALLED_SECONDS = 30.0
_PICKUP_RATE = 20
"""Jobs a second: so few that none waits for another."""
_PICKUP_JOBS = 300
_WARM_UP_JOBS = 20
_CORE_BATCH = 100
_MICROS = 1_000_000

ONE_BY_ONE = Figure("core, one job a command", "commands/s", AtLeast(30_000))
IN_BATCHES = Figure(f"core, {_CORE_BATCH} jobs a command", "jobs/s")
ENQUEUED = Figure("enqueue", "jobs/s", None, AtLeast(10_000))
ENQUEUE_CLIENT = Figure("enqueue, client", "CPU µs/job")
ENQUEUE_ENGINE = Figure("enqueue, engine", "CPU µs/job")
DRAINED = Figure("no-op drain", "jobs/s", AtLeast(2_000), AtLeast(5_000))
DRAIN_ENGINE = Figure("no-op drain, engine", "CPU µs/job")
DRAIN_WORKER = Figure("no-op drain, worker", "CPU µs/job")
SUSTAINED = Figure("sustained: enqueue while draining", "jobs/s")
PICKUP_P50 = Figure(f"pickup at {_PICKUP_RATE} jobs/s, p50", "ms", AtMost(10), AtMost(30))
PICKUP_P95 = Figure(f"pickup at {_PICKUP_RATE} jobs/s, p95", "ms")
PICKUP_P99 = Figure(f"pickup at {_PICKUP_RATE} jobs/s, p99", "ms")
TO_LOG = Figure("pickup step, p50: sent to in the log", "ms")
TO_DECISION = Figure("pickup step, p50: sent to decided", "ms")
TO_ANSWER = Figure("pickup step, p50: decided to committed and answered", "ms")
TO_HANDLER = Figure("pickup step, p50: decided to handler begun", "ms")


@dataclass(frozen=True, slots=True)
class Load:
    """What is asked of an installation.

    Attributes:
        jobs: how many.
        concurrency: handlers at once, of the one worker.
    """

    jobs: int
    concurrency: int


@dataclass(frozen=True, slots=True)
class OfTheRules:
    """A measure that needs no log.

    Attributes:
        take: given how many jobs, the values.
    """

    what: str
    take: Callable[[int], Values]


@dataclass(frozen=True, slots=True)
class OnALog:
    """A measure of an installation.

    Attributes:
        take: given an installation and what is asked of it, the values.
    """

    what: str
    take: Callable[[Installation, Load], Awaitable[Values]]

    async def run(self, address: str, load: Load) -> Values:
        """The values on a new installation."""
        async with installed(address) as installation:
            return await self.take(installation, load)


def core(jobs: int) -> Values:
    """Enqueue, claim and report, decided in this process; a partition of its own each."""
    commands_per_second, _ = run_lives(jobs, jobs_per_command=1)
    _, jobs_per_second = run_lives(jobs, jobs_per_command=_CORE_BATCH)
    return {ONE_BY_ONE: commands_per_second, IN_BATCHES: jobs_per_second}


async def enqueue(on: Installation, load: Load) -> Values:
    """`enqueue_many` of them all, to the last answer."""
    described = [noop.job() for _ in range(load.jobs)]
    used = time.process_time(), on.engine.cpu_seconds
    began = time.perf_counter()
    await on.client.enqueue_many(described, timeout=_STALLED_SECONDS)
    seconds = time.perf_counter() - began
    return {
        ENQUEUED: load.jobs / seconds,
        ENQUEUE_CLIENT: (time.process_time() - used[0]) / load.jobs * _MICROS,
        ENQUEUE_ENGINE: (on.engine.cpu_seconds - used[1]) / load.jobs * _MICROS,
    }


async def drain(on: Installation, load: Load) -> Values:
    """All are there and a worker waits; from the moment before the queue is opened to the last success."""
    await on.client.pause_queue(QUEUE)
    await on.client.enqueue_many([noop.job() for _ in range(load.jobs)], timeout=_STALLED_SECONDS)
    async with on.worker(load.concurrency) as worker:
        outcomes = await on.outcomes()
        used = on.engine.cpu_seconds, worker.cpu_seconds
        began = time.perf_counter()
        await on.client.resume_queue(QUEUE)
        await outcomes.succeeded(load.jobs, on.engine, worker)
        seconds = time.perf_counter() - began
        return {
            DRAINED: load.jobs / seconds,
            DRAIN_ENGINE: (on.engine.cpu_seconds - used[0]) / load.jobs * _MICROS,
            DRAIN_WORKER: (worker.cpu_seconds - used[1]) / load.jobs * _MICROS,
        }


async def sustained(on: Installation, load: Load) -> Values:
    """A worker waits; from the first enqueue to the last success."""
    described = [noop.job() for _ in range(load.jobs)]
    async with on.worker(load.concurrency) as worker:
        outcomes = await on.outcomes()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            group.create_task(_enqueue_in_batches(on, described))
            watching = group.create_task(outcomes.succeeded(load.jobs, on.engine, worker))
        await watching
        return {SUSTAINED: load.jobs / (time.perf_counter() - began)}


async def pickup_latency(on: Installation, load: Load) -> Values:
    """From the moment before a job is sent to the start of its handler, and where the time goes."""
    measured = min(load.jobs, _PICKUP_JOBS)
    sent: dict[str, Sent] = {}
    async with on.worker(load.concurrency) as worker:
        outcomes = await on.outcomes()
        async with asyncio.TaskGroup() as group:
            watching = group.create_task(outcomes.lives(_WARM_UP_JOBS + measured, on.engine, worker))
            for number, due in enumerate(_instants(_WARM_UP_JOBS + measured)):
                await asyncio.sleep(due - time.monotonic())
                group.create_task(_send_now(on, sent, is_asked=bool(number % 2)))
        steps = [steps_of(life, sent[life.job_id]) for life in watching.result()[_WARM_UP_JOBS:]]
    cuts = quantiles([step.to_handler_from_sent for step in steps], n=100, method="inclusive")
    return {
        PICKUP_P50: cuts[49],
        PICKUP_P95: cuts[94],
        PICKUP_P99: cuts[98],
        TO_LOG: median(step.to_confirmation for step in steps if not step.is_asked),
        TO_DECISION: median(step.to_decision for step in steps),
        TO_ANSWER: median(step.to_confirmation - step.to_decision for step in steps if step.is_asked),
        TO_HANDLER: median(step.to_handler_from_sent - step.to_decision for step in steps),
    }


MEASURES: Final[Mapping[str, OfTheRules | OnALog]] = {
    "core": OfTheRules("commands through the rules alone", core),
    "enqueue": OnALog("enqueue_many", enqueue),
    "drain": OnALog("no-op jobs that are all there", drain),
    "sustained": OnALog("no-op jobs, enqueued while they are run", sustained),
    "pickup": OnALog("from enqueue to the start of the handler", pickup_latency),
}


async def _enqueue_in_batches(on: Installation, described: Sequence[JobRequest]) -> None:
    for first in range(0, len(described), _BATCH):
        await on.client.enqueue_many(described[first : first + _BATCH], timeout=_STALLED_SECONDS)


async def _send_now(on: Installation, sent: dict[str, Sent], *, is_asked: bool) -> None:
    """Send a job; every other one is asked after, so that the log's and the engine's answers are timed."""
    job = NewJob(pickup.job())
    began = time.time_ns()
    await (on.client.enqueue(job) if is_asked else on.client.send(job))
    sent[job.job_id] = Sent(began, time.time_ns(), is_asked)


def _instants(count: int) -> Iterator[float]:
    """When each job is to be enqueued, by the monotonic clock: a late one does not move the others."""
    began = time.monotonic()
    return (began + number / _PICKUP_RATE for number in range(count))
