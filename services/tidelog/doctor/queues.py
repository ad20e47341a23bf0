"""The queues: due jobs that nobody asks for, and jobs that have ended badly."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Final

from tidelog.doctor.findings import Finding, Health
from tidelog.doctor.site import Site
from tidelog.inspection.presence import SIGN_SECONDS, Presence, look_for_workers
from tidelog.log.port import TopicPartition
from tidelog.together import together
from tidelog.words import first_few, plural, span
from tidelog_events.identity import Partition
from tidelog_events.instants import SECOND, Instant
from tidelog_projections.queue_loads import QueueLoad

NAME: Final = "queues"
_AT_ONCE: Final = 8
"""Partitions of the commands that are read side by side."""


async def check_queues(site: Site) -> list[Finding]:
    """Look who asks for the jobs of queues in which some are due for long; nothing without Postgres."""
    if site.postgres is None:
        return []
    loads, now = site.postgres.queues, site.clock()
    late = {load.partition for load in loads if _is_late(load, now)}
    gate = asyncio.Semaphore(_AT_ONCE)

    async def look(partition: Partition) -> Presence:
        async with gate:
            commands = TopicPartition(site.topics.commands, partition)
            return await look_for_workers(site.log, commands, clock=site.clock)

    partitions = sorted(late)
    presences = await together(map(look, partitions))
    return judge_queues(loads, dict(zip(partitions, presences, strict=True)), now)


def judge_queues(
    loads: Collection[QueueLoad], presences: Mapping[Partition, Presence], now: Instant
) -> list[Finding]:
    """What is due and not asked for, and how much has ended badly.

    Args:
        loads: the queues in which something is due, or has ended badly.
        presences: the workers that were heard of, for each partition in which something is due for long.
        now: the time.
    """
    findings = [
        _unserved(load, load.oldest_due, now)
        for load in loads
        if load.oldest_due is not None and _is_late(load, now) and _is_unserved(load, presences)
    ]
    paused = [f"{load.queue} ({load.due:,})" for load in loads if load.paused and load.due]
    if paused:
        findings.append(
            Finding(
                NAME,
                Health.WARNING,
                f"due jobs wait in paused queues: {first_few(paused)}",
                "`tidelog queues` tells who paused them, `tidelog resume QUEUE` lets them go on.",
            )
        )
    bad = [_bad(load) for load in loads if load.dead_lettered or load.quarantined]
    if bad:
        findings.append(Finding(NAME, Health.OK, f"ended badly and kept: {first_few(bad)}"))
    return findings or [Finding(NAME, Health.OK, "no due job waits for a worker, and none has ended badly")]


def _is_late(load: QueueLoad, now: Instant) -> bool:
    """Whether something is due for so long that a worker would have asked for it."""
    if load.paused or load.oldest_due is None:
        return False
    return now - load.oldest_due > SIGN_SECONDS * SECOND


def _is_unserved(load: QueueLoad, presences: Mapping[Partition, Presence]) -> bool:
    presence = presences.get(load.partition)
    return presence is not None and presence.is_whole and not presence.is_served(load.queue)


def _unserved(load: QueueLoad, oldest: Instant, now: Instant) -> Finding:
    return Finding(
        NAME,
        Health.ERROR,
        f"queue {load.queue}: {plural(load.due, 'due job')} and no worker serves it; the oldest has been "
        f"due for {span(oldest, now)}",
        f"Start a worker that does: `tidelog worker MODULE:APP --queues {load.queue}`. If the name is a "
        "mistake, cancel the jobs.",
    )


def _bad(load: QueueLoad) -> str:
    parts = [
        f"{count:,} {name}"
        for count, name in ((load.dead_lettered, "dead-lettered"), (load.quarantined, "quarantined"))
        if count
    ]
    return f"{load.queue} ({', '.join(parts)})"
