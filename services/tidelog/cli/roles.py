"""The roles of an installation as processes: engine, worker, projector, and `up`, which is all in one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.collector import tune_collector
from tidelog.cli.console import say
from tidelog.cli.declared import declared_schedules, require_name
from tidelog.cli.exits import WrongUse
from tidelog.cli.loading import load_app
from tidelog.cli.logs import LogLevel, set_up_logging
from tidelog.cli.observe import observers
from tidelog.cli.options import AppArgument, LifelineOption, LogLevelOption
from tidelog.cli.session import open_log, open_projection, read_settings
from tidelog.cli.signals import StopRequest, stop_on_signals
from tidelog.cli.threads import Role, on_own_loop
from tidelog.cli.values import read_queues, read_weights
from tidelog.cli.waiting import require_topics, run_when_possible

if TYPE_CHECKING:
    from tidelog.app import App
    from tidelog.settings import Settings
    from tidelog.worker.settings import WorkerSettings

logger = logging.getLogger("tidelog.cli")

QueuesOption = Annotated[
    str | None, typer.Option(metavar="A,B", help="Queues to serve, the most urgent first.")
]
WeightsOption = Annotated[
    str | None, typer.Option(metavar="A=6,B=3", help="Queues to serve in proportion to weights.")
]
ConcurrencyOption = Annotated[int, typer.Option(help="How many jobs run at once.")]
LeaseOption = Annotated[
    float, typer.Option("--lease-seconds", help="How long a job stays with a worker that falls silent.")
]
PruneOption = Annotated[
    bool,
    typer.Option(
        "--prune-schedules", help="Remove schedules that this application has put and declares no more."
    ),
]
GraceOption = Annotated[
    float, typer.Option("--grace-seconds", help="How long running jobs may go on after a stop was asked for.")
]


async def engine(lifeline: LifelineOption = None, log_level: LogLevelOption = None) -> None:
    """Decide: the single writer of the partitions that fall to this process."""
    set_up_logging(log_level or LogLevel.INFO)
    tune_collector()
    settings = read_settings()
    async with stop_on_signals(lifeline) as stop:
        await run_when_possible(lambda: _engine(settings), stop)


async def projector(lifeline: LifelineOption = None, log_level: LogLevelOption = None) -> None:
    """Project: take the log of transitions into Postgres."""
    set_up_logging(log_level or LogLevel.INFO)
    settings = read_settings()
    async with stop_on_signals(lifeline) as stop:
        await run_when_possible(lambda: _projector(settings), stop)


async def worker(
    target: AppArgument,
    queues: QueuesOption = None,
    weights: WeightsOption = None,
    concurrency: ConcurrencyOption = 10,
    processes: Annotated[int, typer.Option(min=1, help="How many processes of such workers.")] = 1,
    lease_seconds: LeaseOption = 60.0,
    grace_seconds: GraceOption = 30.0,
    prune_schedules: PruneOption = False,
    lifeline: LifelineOption = None,
    log_level: LogLevelOption = None,
) -> None:
    """Work: run the handlers of an application."""
    set_up_logging(log_level or LogLevel.INFO)
    settings = _worker_settings(queues, weights, concurrency, lease_seconds, grace_seconds)
    if processes > 1:
        from tidelog.cli.processes import keep_running

        arguments = ["worker", target, "--concurrency", str(concurrency)]
        arguments += ["--lease-seconds", str(lease_seconds), "--grace-seconds", str(grace_seconds)]
        arguments += [] if queues is None else ["--queues", queues]
        arguments += [] if weights is None else ["--weights", weights]
        arguments += ["--prune-schedules"] if prune_schedules else []
        arguments += [] if log_level is None else ["--log-level", log_level.value]
        # What is wrong with it is said once, not by every process.
        require_name(load_app(target), prune=prune_schedules)
        async with stop_on_signals(lifeline) as stop:
            await keep_running(arguments, processes, stop, grace_seconds=grace_seconds)
        return
    app = load_app(target)
    require_name(app, prune=prune_schedules)
    tune_collector()
    async with stop_on_signals(lifeline) as stop:
        await run_when_possible(lambda: _worker(app, settings, stop, prune=prune_schedules), stop)


async def up(
    target: AppArgument,
    queues: QueuesOption = None,
    weights: WeightsOption = None,
    concurrency: ConcurrencyOption = 10,
    lease_seconds: LeaseOption = 60.0,
    grace_seconds: GraceOption = 30.0,
    prune_schedules: PruneOption = False,
    lifeline: LifelineOption = None,
    log_level: LogLevelOption = None,
) -> None:
    """Run everything in one process: engine, projector, worker and observers.

    It is on embedded services unless the settings name others. What is not there yet is made: the log with
    its topics, and Postgres with its schema.
    """
    from tidelog.cli.init import initialise

    set_up_logging(log_level or LogLevel.INFO)
    chosen = _worker_settings(queues, weights, concurrency, lease_seconds, grace_seconds)
    app = load_app(target)
    require_name(app, prune=prune_schedules)
    settings = app.settings
    await initialise(settings)
    tune_collector()
    # Handlers may block this loop for as long as they like; the other roles have loops of their own.
    async with (
        stop_on_signals(lifeline) as stop,
        observers(settings, list(app.observers), grace_seconds) as observe,
        on_own_loop("tidelog-projector", lambda: _projector(settings)) as project,
        on_own_loop("tidelog-engine", lambda: _engine(settings)) as decide,
        _worker(app, chosen, stop, prune=prune_schedules) as work,
    ):
        say(f"Tidelog is up: log {settings.log}, Postgres {_shown_postgres(settings)}. Ctrl-C ends it.")
        # A worker that ends has outcomes to report, and these have to be projected.
        # What an observer is not told any more in this process it is told by the next one.
        await run_roles([work, decide, project, observe], stop)


async def run_roles(roles: list[Role], stop: asyncio.Event) -> None:
    """Run roles until `stop` is set, then end them one after another, the first one first.

    When a role fails or ends by itself the others are ended too, and its failure is raised.
    """
    stops = [asyncio.Event() for _ in roles]
    tasks = [asyncio.ensure_future(role(event)) for role, event in zip(roles, stops, strict=True)]
    asked = asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait([asked, *tasks], return_when=asyncio.FIRST_COMPLETED)
        for task, event in zip(tasks, stops, strict=True):
            event.set()
            await asyncio.wait([task])
    except asyncio.CancelledError:
        for task in tasks:  # in order here too: what a worker gives back in its last moment counts
            task.cancel()
            await asyncio.wait([task])
        raise
    finally:
        asked.cancel()
    for task in tasks:
        task.result()


@asynccontextmanager
async def _engine(settings: Settings) -> AsyncIterator[Role]:
    from tidelog.engine import Engine

    async with open_log(settings) as log:
        await require_topics(log, settings.topics)
        logger.info("an engine starts on the log %s", log.address)
        yield Engine(log, settings.topics, retention=settings.retention).run


@asynccontextmanager
async def _projector(settings: Settings) -> AsyncIterator[Role]:
    from tidelog.projector.projector import Projector

    async with open_log(settings) as log, open_projection(settings) as projection:
        await require_topics(log, settings.topics)
        logger.info("a projector starts, from the log %s to Postgres %s", log.address, projection.address)
        yield Projector(log, settings.topics, projection).run


@asynccontextmanager
async def _worker(
    app: App, settings: WorkerSettings, stop: StopRequest, *, prune: bool
) -> AsyncIterator[Role]:
    from tidelog.cli.outputs import Outputs
    from tidelog.log.address import open_log as open_address
    from tidelog.worker.worker import Worker

    where = app.settings
    async with open_log(where) as log:
        await require_topics(log, where.topics)
    async with Outputs(where) as outputs:
        worker = Worker(
            registry=app.registry,
            open_log=lambda: open_address(where.log, kafka=where.kafka),
            topics=where.topics,
            settings=settings,
            read_output=outputs.read,
        )
        stop.tell_at_once(worker.request_stop)

        async def work(stopped: asyncio.Event) -> None:
            async with declared_schedules(app, prune=prune):
                await worker.run(stopped)

        yield work


def _worker_settings(
    queues: str | None,
    weights: str | None,
    concurrency: int,
    lease_seconds: float,
    grace_seconds: float,
) -> WorkerSettings:
    from tidelog.worker.settings import WorkerSettings

    if queues is not None and weights is not None:
        raise WrongUse("--queues and --weights exclude each other; give one of them.")
    return WorkerSettings(
        queues=() if queues is None else read_queues(queues),
        weights=None if weights is None else read_weights(weights),
        concurrency=concurrency,
        lease_seconds=lease_seconds,
        grace_seconds=grace_seconds,
    )


def _shown_postgres(settings: Settings) -> str:
    from tidelog_projections.connection import address_of

    address = settings.postgres
    return address if address.startswith("embedded:") else address_of(address)
