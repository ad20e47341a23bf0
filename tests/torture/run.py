"""A whole run: services, roles, load, faults, the wait until all is settled, and the audit."""

from __future__ import annotations

import asyncio
import os
import random
from collections import Counter
from collections.abc import Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from tests.providers.kafka_broker import Broker
from tests.providers.postgres import create_database
from tests.torture.audit import Audit, audit
from tests.torture.faults import Blow, FaultKind, Target, inflict, plan
from tests.torture.gathering import NeverSettled, gather
from tests.torture.house import Kafka, Postgres, Role, kept_running
from tests.torture.jobs import DELIVERIES_VARIABLE, QUEUES, RUNS_VARIABLE, SCHEDULES, Kind, key_of
from tests.torture.journal import Journal
from tests.torture.load import Producer

from tidelog.app import App
from tidelog.cli.init import initialise
from tidelog.client.client import Client
from tidelog.client.newjob import NewJob
from tidelog.log.address import open_log
from tidelog.settings import Settings

ROLES: Final = ("engine", "worker", "projector", "observer")
LEASE_SECONDS: Final = 3.0
_TOLD: Final = {"handlers": RUNS_VARIABLE, "observers": DELIVERIES_VARIABLE}
"""The journals that roles write, and how they are told where."""
_PARTITIONS: Final = 4
_SLOTS: Final = 16
_FIRST_SECONDS: Final = 60.0

WITHOUT_BROKER: Final = (
    FaultKind(Blow.KILL, "engine", 0.0, 2.0),
    FaultKind(Blow.KILL, "worker", 0.0, 2.0),
    FaultKind(Blow.KILL, "projector", 0.0, 2.0),
    FaultKind(Blow.KILL, "observer", 0.0, 2.0),
    # Longer than a lease and than the session of a group: the others go on, and it wakes up as a zombie.
    FaultKind(Blow.PAUSE, "engine", 7.0, 10.0),
    FaultKind(Blow.PAUSE, "worker", 4.0, 8.0),
    FaultKind(Blow.PAUSE, "projector", 7.0, 10.0),
    FaultKind(Blow.PAUSE, "observer", 7.0, 10.0),
    FaultKind(Blow.KILL, "postgres", 0.0, 3.0),
    FaultKind(Blow.PAUSE, "postgres", 2.0, 6.0),
)
WITH_BROKER: Final = (
    *WITHOUT_BROKER,
    FaultKind(Blow.KILL, "broker", 0.0, 3.0),
    FaultKind(Blow.PAUSE, "broker", 2.0, 6.0),
)


@dataclass(frozen=True, slots=True)
class Torture:
    """What a run is like.

    Attributes:
        seed: the plan of the faults follows from it, and what the clients send.
        seconds: of load and faults.
        gap: the shortest and the longest time between the beginnings of two faults.
        settle_seconds: within which everything must have ended after the last fault.
        clients: how many enqueue.
        pause: of each client between two batches, in seconds.
        each: how many processes of each role.
    """

    seed: int
    seconds: float
    gap: tuple[float, float] = (2.0, 4.4)
    settle_seconds: float = 60.0
    clients: int = 6
    pause: float = 0.3
    each: Mapping[str, int] = field(default_factory=lambda: dict.fromkeys(ROLES, 2))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run.

    Attributes:
        faults: how often each kind was.
        gave_up: by role: how many processes ended by themselves, without having been killed.
        tracebacks: by role: how many stand in what it said.
    """

    audit: Audit
    faults: Counter[str]
    gave_up: Counter[str]
    tracebacks: Counter[str]


async def torture(how: Torture, folder: Path, postgres: Postgres, broker: Broker | None) -> Outcome:
    """Run it.

    Args:
        how: what it is like.
        folder: for journals, what the roles say, and the embedded log.
        postgres: that may be killed.
        broker: that may be killed; without one the log is embedded.

    Raises:
        NeverSettled: something was still not done at the end of the bound.
        CommandRefused: an engine refused what it must accept.

    All processes that were started here have ended when this returns or raises.
    """
    settings = Settings(
        log=f"sqlite:{folder}/log.db" if broker is None else f"kafka://{broker.address}",
        postgres=await create_database(postgres.dsn),
        prefix=f"torture-{uuid4().hex[:8]}",
        partitions=_PARTITIONS,
    )
    await initialise(settings)
    clients, handlers, observers = (Journal(folder / f"{of}.jsonl") for of in ("clients", *_TOLD))
    roles = _roles(how, settings, folder)
    targets: dict[str, Sequence[Target]] = {**roles, "postgres": [postgres]}
    if broker is not None:
        targets["broker"] = [Kafka(broker)]
    everybody = [role for of_kind in roles.values() for role in of_kind]
    async with AsyncExitStack() as stack:
        log = await stack.enter_async_context(await open_log(settings.log))
        await stack.enter_async_context(kept_running(everybody))
        producers = [
            Producer(
                await stack.enter_async_context(Client.open(log, settings.topics)),
                number,
                random.Random(f"{how.seed} {number}"),  # noqa: S311 - a load needs no cryptography
                clients,
                how.pause,
            )
            for number in range(how.clients)
        ]
        await _first_job(settings, clients)
        await _start_schedules(settings)
        kinds = WITHOUT_BROKER if broker is None else WITH_BROKER
        faults = plan(how.seed, kinds, how.seconds, how.gap)
        inflicted = await _under_load(producers, inflict(faults, targets), how)
        await _end_schedules(settings)
        evidence = await gather(
            log, settings.topics, settings.postgres, clients, handlers, observers, how.settle_seconds
        )
    return _outcome(audit(evidence), inflicted, everybody)


def _outcome(found: Audit, inflicted: Counter[str], roles: Sequence[Role]) -> Outcome:
    ends = [
        f"{role.name} was asked to end and ended with code {role.last_code}"
        for role in roles
        if role.last_code != 0
    ]
    return Outcome(
        replace(found, problems=[*found.problems, *ends]),
        inflicted,
        gave_up=Counter({role.name: len(role.gave_up) for role in roles if role.gave_up}),
        tracebacks=Counter({role.name: role.tracebacks for role in roles if role.tracebacks}),
    )


async def _first_job(settings: Settings, journal: Journal) -> None:
    """Let a job go all the way, so that no fault meets roles that have not begun."""
    async with App(settings).client() as client:
        job = NewJob(Kind.STEADY, {"seconds": 0}, queue=QUEUES[0], key=key_of(Kind.STEADY, "first"))
        journal.sent([job.job_id])
        journal.acknowledged([await client.enqueue(job, timeout=_FIRST_SECONDS)])
        await client.wait(job.job_id, timeout=_FIRST_SECONDS)


async def _start_schedules(settings: Settings) -> None:
    async with App(settings).client() as client:
        for schedule in SCHEDULES:
            await client.put_schedule(schedule, timeout=_FIRST_SECONDS)


async def _end_schedules(settings: Settings) -> None:
    """Let them fire no more, or nothing would ever be settled. Engines may still be on their way back."""
    async with App(settings).client() as client:
        for schedule in SCHEDULES:
            await client.remove_schedule(schedule.schedule_id, timeout=_FIRST_SECONDS)


async def _under_load(
    producers: Sequence[Producer], faults: Coroutine[None, None, Counter[str]], how: Torture
) -> Counter[str]:
    """Let clients enqueue while faults happen; return once all they sent is answered.

    Raises:
        NeverSettled: something was not, in time.
    """
    stop = asyncio.Event()
    enqueueing = [asyncio.create_task(producer.run(stop)) for producer in producers]
    try:
        inflicted = await faults
        stop.set()
        _, late = await asyncio.wait(enqueueing, timeout=how.settle_seconds)
        if late:
            raise NeverSettled(
                f"{len(late)} clients were not answered within {how.settle_seconds:g} s of the last fault"
            )
        await asyncio.gather(*enqueueing)
    finally:
        for task in enqueueing:
            task.cancel()
        await asyncio.gather(*enqueueing, return_exceptions=True)
    return inflicted


def _roles(how: Torture, settings: Settings, folder: Path) -> dict[str, list[Role]]:
    environment = {
        **os.environ,
        "TIDELOG_LOG": settings.log,
        "TIDELOG_POSTGRES": settings.postgres,
        "TIDELOG_PREFIX": settings.prefix,
        "TIDELOG_PARTITIONS": str(settings.partitions),
        **{variable: str(folder / f"{of}.jsonl") for of, variable in _TOLD.items()},
    }
    arguments = {
        "engine": ["engine"],
        "projector": ["projector"],
        "observer": ["observe", "tests.torture.jobs:app"],
        "worker": [
            *("worker", "tests.torture.jobs:app", "--weights", ",".join(f"{queue}=1" for queue in QUEUES)),
            *("--concurrency", str(_SLOTS), "--lease-seconds", str(LEASE_SECONDS), "--grace-seconds", "5"),
        ],
    }
    return {
        name: [
            Role(f"{name}-{number}", arguments[name], environment, folder) for number in range(how.each[name])
        ]
        for name in ROLES
    }
