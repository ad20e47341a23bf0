"""All checks, side by side and within bounds."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass

from tidelog.clock import Clock, wall_clock
from tidelog.doctor import clocks, lag, observers, owners, projection, queues, rejects, topics
from tidelog.doctor.findings import Finding, Health
from tidelog.doctor.services import LOG, POSTGRES, check_log, judge_postgres
from tidelog.doctor.site import Site
from tidelog.log.kafka.options import KafkaReplication
from tidelog.log.port import Log, LogUnavailable
from tidelog.log.topics import Topics
from tidelog.together import together
from tidelog_events.errors import TidelogError
from tidelog_projections.errors import ProjectionRefused, SchemaTooNew
from tidelog_projections.inspection import Inspection

_CHECKS: Mapping[str, Callable[[Site], Awaitable[list[Finding]]]] = {
    topics.NAME: topics.check_topics,
    owners.NAME: owners.check_owners,
    lag.NAME: lag.check_lag,
    projection.NAME: projection.check_projection,
    queues.NAME: queues.check_queues,
    observers.NAME: observers.check_observers,
    clocks.NAME: clocks.check_clocks,
    rejects.NAME: rejects.check_rejects,
}
NAMES = (LOG, POSTGRES, *_CHECKS)
"""All checks, in the order of the report."""
_NEED_POSTGRES = frozenset({POSTGRES, projection.NAME, queues.NAME, clocks.NAME, rejects.NAME})


@dataclass(frozen=True, slots=True)
class Installation:
    """How to get at what is to be examined.

    Attributes:
        open_log: opens the log; it makes none.
        inspect: looks at Postgres.
        topics, partitions, replication: as the settings have them.
        clock: this host's.
        service_seconds: the longest wait for log or Postgres to answer at all.
        check_seconds: the longest check: a few looks, each with a bound of its own.
    """

    open_log: Callable[[], AbstractAsyncContextManager[Log]]
    inspect: Callable[[], Awaitable[Inspection]]
    topics: Topics
    partitions: int
    replication: KafkaReplication | None
    clock: Clock = wall_clock
    service_seconds: float = 15.0
    check_seconds: float = 30.0


async def examine(installation: Installation, only: Collection[str]) -> list[Finding]:
    """Look at an installation. It never waits for long, whatever hangs.

    Args:
        installation: what to look at.
        only: the names of the checks to make. A service that one of them needs and that does not answer is
            reported too.
    """
    needs_postgres = not _NEED_POSTGRES.isdisjoint(only)
    async with AsyncExitStack() as stack:
        (log, of_log), (postgres, of_postgres) = await asyncio.gather(
            _open_log(stack, installation),
            _look_at_postgres(installation) if needs_postgres else _nothing(),
        )
        findings = [of_log] if LOG in only or of_log.unreachable else []
        if of_postgres is not None and (POSTGRES in only or of_postgres.health is not Health.OK):
            findings.append(of_postgres)
        if log is None:
            return findings
        site = Site(
            log=log,
            topics=installation.topics,
            partitions=installation.partitions,
            replication=installation.replication,
            postgres=postgres,
            clock=installation.clock,
        )
        names = [name for name in _CHECKS if name in only]
        for found in await together(_check(name, site, installation.check_seconds) for name in names):
            findings += found
        return findings


async def _open_log(stack: AsyncExitStack, installation: Installation) -> tuple[Log | None, Finding]:
    try:
        async with asyncio.timeout(installation.service_seconds):
            log = await stack.enter_async_context(installation.open_log())
            return log, await check_log(log)
    except (TidelogError, TimeoutError) as error:
        return None, _failed(LOG, error, "the log does not answer")


async def _look_at_postgres(installation: Installation) -> tuple[Inspection | None, Finding]:
    try:
        async with asyncio.timeout(installation.service_seconds):
            seen = await installation.inspect()
    except (TidelogError, TimeoutError) as error:
        return None, _failed(POSTGRES, error, "Postgres does not answer")
    # Without the schema there is nothing else to be looked at.
    return (seen if seen.schema_version else None), judge_postgres(seen)


async def _nothing() -> tuple[None, None]:
    return None, None


async def _check(name: str, site: Site, seconds: float) -> list[Finding]:
    try:
        async with asyncio.timeout(seconds):
            return await _CHECKS[name](site)
    except (TidelogError, TimeoutError) as error:
        return [_failed(name, error, "it could not be looked at in time")]


def _failed(name: str, error: TidelogError | TimeoutError, late: str) -> Finding:
    """What could not be looked at. The messages of our errors say what to do."""
    if isinstance(error, TimeoutError):
        return Finding(name, Health.ERROR, late, "Look whether its host is overloaded.", unreachable=True)
    is_there = isinstance(error, (ProjectionRefused, SchemaTooNew))
    is_away = isinstance(error, LogUnavailable) or (name in {LOG, POSTGRES} and not is_there)
    return Finding(name, Health.ERROR, str(error), unreachable=is_away)
