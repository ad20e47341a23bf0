"""The jobs of a torture run: `tests.torture.jobs:app`. Each handler writes down when it begins and ends.

What a job must have become, once all is over, follows from its id alone (`expected_end`).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from tests.torture.journal import Ending, Journal

from tidelog import App, CatchUp, JobContext, Retry, Schedule, every
from tidelog_events.identity import JobId, QueueName
from tidelog_events.states import JobState
from tidelog_events.transitions import Transition

RUNS_VARIABLE: Final = "TORTURE_RUNS"
"""The path of the journal of handlers, for workers."""
DELIVERIES_VARIABLE: Final = "TORTURE_DELIVERIES"
"""The path of the journal of what observers were told."""

QUEUES: Final = tuple(QueueName(f"torture-{number}") for number in range(6))

PATIENT: Final = Retry(max_attempts=1_000, delays=[0.1, 0.5])
"""A lease that runs out is an attempt as well: no number of faults may end such a job."""
ONCE: Final = Retry(max_attempts=1)


def _every_second(queue: QueueName, catch_up: CatchUp, *, no_overlap: bool = False) -> Schedule:
    return Schedule(
        f"{queue}/steady.tick",
        every(seconds=1),
        "steady",
        {"seconds": 0.0},
        catch_up=catch_up,
        no_overlap=no_overlap,
        retry=PATIENT,
    )


SCHEDULES: Final = (
    _every_second(QUEUES[0], CatchUp.SKIP),
    _every_second(QUEUES[1], CatchUp.COALESCE),
    _every_second(QUEUES[2], CatchUp.SKIP, no_overlap=True),
)
"""They tick every second. Their jobs are steady ones by their keys."""
WITHDRAWER: Final = "torture"
"""Who cancels the jobs that are cancelled."""

OBSERVED: Final = frozenset({JobState.SUCCEEDED, JobState.DEAD_LETTERED, JobState.CANCELLED})
"""What the observer of the run is told of."""

app = App()


class Kind(StrEnum):
    """What a job is there for; its key starts with it."""

    STEADY = "steady"
    THREADED = "threaded"
    FLAKY = "flaky"
    DOOMED = "doomed"
    WITHDRAWN = "withdrawn"
    AFTER_SUCCESS = "after-success"
    AFTER_DOOM = "after-doom"
    BEREFT = "bereft"


_ENDS: Final = {
    Kind.STEADY: JobState.SUCCEEDED,
    Kind.THREADED: JobState.SUCCEEDED,
    Kind.FLAKY: JobState.SUCCEEDED,
    Kind.DOOMED: JobState.DEAD_LETTERED,
    Kind.WITHDRAWN: JobState.CANCELLED,
    Kind.AFTER_SUCCESS: JobState.SUCCEEDED,
    Kind.AFTER_DOOM: JobState.SUCCEEDED,
    Kind.BEREFT: JobState.CANCELLED,
}


def key_of(kind: Kind, number: str) -> str:
    """The key of a job of a kind."""
    return f"{kind}.{number}"


def expected_end(job_id: JobId) -> JobState:
    """The state in which a job of a torture run must end, whatever happens to whom."""
    return _ENDS[Kind(job_id.partition("/")[2].partition(".")[0])]


@contextmanager
def recorded(ctx: JobContext) -> Iterator[None]:
    """Write down that a handler runs, and how it ended; without an end its process was killed."""
    journal = Journal(Path(os.environ[RUNS_VARIABLE]))
    journal.began(ctx.job_id, ctx.attempt, os.getpid())
    ending = Ending.RETURNED
    try:
        yield
    except asyncio.CancelledError:
        ending = Ending.STOPPED
        raise
    except BaseException:
        ending = Ending.RAISED
        raise
    finally:
        journal.ended(ctx.job_id, ctx.attempt, os.getpid(), ending)


async def work(ctx: JobContext, seconds: float) -> None:
    """Be busy for so long, or until the worker wants it to stop."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await ctx.cancelled.wait()
    ctx.raise_if_cancelled()


@app.job(Kind.STEADY, queue=QUEUES[0], retry=PATIENT)
async def steady(ctx: JobContext, seconds: float) -> int:
    with recorded(ctx):
        ctx.add_tag("attempt", str(ctx.attempt))
        await work(ctx, seconds)
        return ctx.attempt


@app.job(Kind.THREADED, queue=QUEUES[0], retry=PATIENT)
def threaded(ctx: JobContext, seconds: float) -> int:
    with recorded(ctx):
        ctx.cancelled.wait_blocking(seconds)
        ctx.raise_if_cancelled()
        return ctx.attempt


@app.job(Kind.FLAKY, queue=QUEUES[0], retry=PATIENT)
async def flaky(ctx: JobContext, seconds: float) -> int:
    with recorded(ctx):
        ctx.add_tag(f"attempt-{ctx.attempt}")
        await work(ctx, seconds)
        if ctx.attempt == 1:
            raise RuntimeError("the first attempt always fails")
        return ctx.attempt


@app.job(Kind.DOOMED, queue=QUEUES[0], retry=ONCE)
async def doomed(ctx: JobContext, seconds: float) -> None:
    with recorded(ctx):
        await work(ctx, seconds)
        raise RuntimeError("every attempt fails")


@app.observer("torture", states=OBSERVED, start="beginning")
async def observe(transition: Transition) -> None:
    Journal(Path(os.environ[DELIVERIES_VARIABLE])).delivered(transition.partition, transition.sequence)
