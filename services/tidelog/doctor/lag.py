"""How far behind the log its readers are: the engines, and consumer groups of other people."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tidelog.core.changelog import POSITION_KEY, restore
from tidelog.core.state import Retention
from tidelog.doctor.findings import Finding, Health
from tidelog.doctor.groups import check_groups
from tidelog.doctor.site import LOOK_SECONDS, Site
from tidelog.log.port import TopicPartition
from tidelog.log.tail import newest_records
from tidelog.together import together
from tidelog.words import listed, plural
from tidelog_events.identity import Partition
from tidelog_events.instants import Instant

NAME = "lag"
_PATIENCE_SECONDS = 3.0
"""An engine that works commits many times in this; one takes over a partition within it, as a rule."""
_PAUSE_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class EngineProgress:
    """How far the engines have come with a partition.

    Attributes:
        read_to: where they go on, for each of the inputs; the start of the log before the first transaction.
        now: the time as of which they last decided; None before.
    """

    read_to: Mapping[TopicPartition, int]
    now: Instant | None


async def engine_progress(site: Site, partitions: Collection[int]) -> dict[int, EngineProgress]:
    """Read it where the engines keep it: in the state topic, written in the transaction of each batch."""
    topics, count = site.topics, await site.log.partitions(site.topics.commands)
    states = [TopicPartition(topics.state, partition) for partition in partitions]
    key = POSITION_KEY.encode()
    newest = await newest_records(site.log, states, timeout=LOOK_SECONDS, key=key)
    found: dict[int, EngineProgress] = {}
    for state in states:
        partition = state.partition
        commands, links = (TopicPartition(topic, partition) for topic in (topics.commands, topics.links))
        record = newest.get(state)
        if record is not None and record.value is not None:
            entry = [(POSITION_KEY, record.value)]
            restored = restore(entry, Partition(partition), count, Retention())
            if restored.positions is not None:
                read_to = {commands: restored.positions.commands, links: restored.positions.links}
                found[partition] = EngineProgress(read_to, restored.state.now)
                continue
        starts = {tp: await site.log.start_offset(tp) for tp in (commands, links)}
        found[partition] = EngineProgress(starts, None)
    return found


async def check_lag(site: Site) -> list[Finding]:
    """The engines' lag, and that of other groups on the installation's topics."""
    engine, others = await together([_engine_lag(site), check_groups(site, NAME)])
    return [*engine, *others]


async def _engine_lag(site: Site) -> list[Finding]:
    inputs = [*await site.all_of(site.topics.commands), *await site.all_of(site.topics.links)]
    newest = await newest_records(site.log, inputs, timeout=LOOK_SECONDS)
    ends = {tp: record.offset + 1 for tp, record in newest.items()}
    before = await _behind(site, ends, {tp.partition for tp in inputs})
    left, stuck = before, set(before)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    # One look cannot tell an engine that has much to do from one that does nothing.
    while left and stuck and time.monotonic() < deadline:
        await asyncio.sleep(_PAUSE_SECONDS)
        left = await _behind(site, ends, {tp.partition for tp in left})
        stuck &= {tp for tp in left if left[tp] == before[tp]}
    return [judge_engine_lag(before, stuck)]


async def _behind(
    site: Site, ends: Mapping[TopicPartition, int], partitions: Collection[int]
) -> dict[TopicPartition, int]:
    """By how many offsets each input is behind, where there is something left."""
    behind: dict[TopicPartition, int] = {}
    for progress in (await engine_progress(site, sorted(partitions))).values():
        for tp, position in progress.read_to.items():
            if ends.get(tp, 0) > position:
                behind[tp] = ends[tp] - position
    return behind


def judge_engine_lag(behind: Mapping[TopicPartition, int], stuck: Collection[TopicPartition]) -> Finding:
    """What is not decided yet.

    Args:
        behind: by how many offsets, at the first look.
        stuck: the partitions with which nothing happened since then.
    """
    if not behind:
        return Finding(NAME, Health.OK, "engine: every command is decided")
    # Offsets may have gaps, so this is the most that it can be.
    amount = f"up to {plural(sum(behind.values()), 'command')}"
    if not stuck:
        return Finding(NAME, Health.OK, f"engine: {amount} under way")
    return Finding(
        NAME,
        Health.ERROR,
        f"engine: {amount} not decided, and nothing happens in {listed({tp.partition for tp in stuck})}",
        "Check that `tidelog engine` runs, who owns these partitions (owners), and what it logs of them.",
    )
