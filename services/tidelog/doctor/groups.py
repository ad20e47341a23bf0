"""How far the consumer groups of other people are behind on Tidelog's topics, whatever they are called."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from tidelog.doctor.findings import Finding, Health
from tidelog.doctor.owners import roles
from tidelog.doctor.site import LOOK_SECONDS, Site
from tidelog.inspection.unread import left_to_read
from tidelog.log.port import GroupDescription, Record, TopicPartition
from tidelog.log.tail import newest_records
from tidelog.words import listed, plural
from tidelog_events.instants import SECOND, Instant

_LATE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class GroupLag:
    """How far a group is behind on Tidelog's topics.

    Attributes:
        records: how many it has yet to read; with gaps in what can be read, the most that it can be.
        oldest: when the first of them happened; None when there is none, or it cannot be read.
        lost: partitions of which the log does not hold what the group is to read next.
    """

    records: int
    oldest: Instant | None
    lost: Collection[int]


async def check_groups(site: Site, name: str) -> list[Finding]:
    """One finding of the check `name` for each group that is no role's and no observer's."""
    groups = await _foreign_groups(site)
    tps = sorted({tp for _, committed in groups for tp in committed})
    newest = await newest_records(site.log, tps, timeout=LOOK_SECONDS)
    now = site.clock()
    return [judge_group(name, group, await _lag(site, committed, newest), now) for group, committed in groups]


async def _foreign_groups(site: Site) -> list[tuple[GroupDescription, Mapping[TopicPartition, int]]]:
    """Groups that have committed something on a topic of the installation, and what they have there."""
    ours = {role.group for role in roles(site)}
    # Observers have a check of their own.
    of_observers = (site.topics.observer_groups, site.topics.redrive_groups)
    topics = {spec.name for spec in site.topics.specs()}
    found: list[tuple[GroupDescription, Mapping[TopicPartition, int]]] = []
    for group in await site.log.groups(""):
        committed = {tp: offset for tp, offset in group.committed.items() if tp.topic in topics}
        if committed and group.name not in ours and not group.name.startswith(of_observers):
            found.append((group, committed))
    return found


async def _lag(
    site: Site, committed: Mapping[TopicPartition, int], newest: Mapping[TopicPartition, Record]
) -> GroupLag:
    records = 0
    oldest: list[Instant] = []
    lost: list[int] = []
    for tp, offset in committed.items():
        left = await left_to_read(site.log, tp, offset, newest.get(tp), timeout=LOOK_SECONDS)
        if left is None:
            lost.append(tp.partition)
        else:
            records += left.events
            oldest += [] if left.oldest is None else [left.oldest]
    return GroupLag(records, min(oldest, default=None), lost)


def judge_group(check: str, group: GroupDescription, lag: GroupLag, now: Instant) -> Finding:
    """Never worse than a warning: what depends on such a group is not known here."""
    seconds = 0.0 if lag.oldest is None else max(0.0, (now - lag.oldest) / SECOND)
    age = "" if lag.oldest is None else f"; the oldest is {seconds:.1f} s old"
    amount = f"has yet to read {plural(lag.records, 'record')}{age}" if lag.records else "has read all"
    message = f"group {group.name}: {amount}"
    if lag.lost:
        return Finding(
            check,
            Health.WARNING,
            f"{message}; of {listed(lag.lost)} the log does not hold what it is to read next",
            "It has missed records. Set its offsets by Kafka's own tools, or delete the group if nobody "
            "needs it.",
        )
    if lag.records and group.is_settled and not group.members:
        return Finding(
            check,
            Health.WARNING,
            f"{message}, and nobody is in it",
            "Start its consumers, or delete the group if nobody needs it.",
        )
    if seconds > _LATE_SECONDS:
        return Finding(
            check,
            Health.WARNING,
            message,
            "Look at what its consumers do; if they cannot keep up, start more of them.",
        )
    return Finding(check, Health.OK, message)
