"""How far the observers of an installation are: read from the log, whatever process runs them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidelog.inspection.unread import left_to_read
from tidelog.log.port import GroupDescription, Log, Record, TopicPartition
from tidelog.log.tail import newest_records
from tidelog.log.topics import Topics
from tidelog.observer.errors import ObserverRuns, UnknownObserver
from tidelog.observer.letters import all_open_letters
from tidelog.words import plural
from tidelog_events.instants import SECOND, Instant

_LOOK_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """Where an observer is in a partition.

    Attributes:
        next_offset: what it committed; None before it began there.
        events: how many are not resolved; with gaps in what can be read, the most that it can be.
        oldest: when the first of them happened; None when there is none, or it cannot be read.
        is_in_log: whether the log holds what must be delivered next. If not, the observer stands still.
        failing: what went wrong with the first of them so far; None when nothing did. Of a process that
            was killed it stays until the next one begins.
    """

    partition: int
    next_offset: int | None
    events: int
    oldest: Instant | None
    is_in_log: bool = True
    failing: str | None = None


@dataclass(frozen=True, slots=True)
class ObserverStatus:
    """An observer as the log knows it.

    Attributes:
        members: how many processes serve it now.
        positions: by partition.
        dead_letters: how many are not redriven; they are counted up to `letters.MOST_LETTERS`.
        last_error: of the newest of those.
    """

    observer_id: str
    members: int
    positions: tuple[PartitionPosition, ...]
    dead_letters: int
    last_error: str | None

    @property
    def events(self) -> int:
        """How many events are not resolved."""
        return sum(position.events for position in self.positions)

    @property
    def lost(self) -> tuple[int, ...]:
        """The partitions where it stands still, because the log does not hold what comes next."""
        return tuple(position.partition for position in self.positions if not position.is_in_log)

    @property
    def failing(self) -> tuple[PartitionPosition, ...]:
        """Where an event could not be told so far, and is not given up on."""
        return tuple(position for position in self.positions if position.failing is not None)

    def lag_seconds(self, now: Instant) -> float:
        """The age of the oldest event that is not resolved; 0 when there is none."""
        oldest = [position.oldest for position in self.positions if position.oldest is not None]
        return max(0.0, (now - min(oldest)) / SECOND) if oldest else 0.0


async def group_of(log: Log, topics: Topics, observer_id: str) -> GroupDescription:
    """The consumer group of an observer.

    Raises:
        UnknownObserver: none of that id has ever run here.
        LogUnavailable: the log does not answer.
    """
    name = topics.observer_group(observer_id)
    for group in await log.groups(name):
        if group.name == name:
            return group
    raise UnknownObserver(
        f"There is no observer {observer_id!r}: it never ran here, or is forgotten. `tidelog observers` "
        "lists those there are."
    )


async def stopped_group_of(log: Log, topics: Topics, observer_id: str) -> GroupDescription:
    """The consumer group of an observer that no process runs.

    Raises:
        UnknownObserver: none of that id has ever run here.
        ObserverRuns: a process runs it.
        LogUnavailable: the log does not answer.
    """
    group = await group_of(log, topics, observer_id)
    if group.members:
        raise ObserverRuns(
            f"The observer {observer_id!r} runs, in {plural(len(group.members), 'process', 'processes')}; "
            "stop it first (a process that was killed counts until its group has noticed, some seconds)."
        )
    return group


async def observer_statuses(log: Log, topics: Topics) -> list[ObserverStatus]:
    """All observers that have begun, by id.

    Raises:
        LogUnavailable: the log does not answer.
        UnknownTopic: there are no topics yet.
    """
    groups = {
        group.name.removeprefix(topics.observer_groups): group
        for group in await log.groups(topics.observer_groups)
    }
    if not groups:
        return []
    letters = await all_open_letters(log, topics, groups.keys(), await log.groups(topics.redrive_groups))
    count = await log.partitions(topics.transitions)
    tps = [TopicPartition(topics.transitions, partition) for partition in range(count)]
    newest = await newest_records(log, tps, timeout=_LOOK_SECONDS)
    return [
        ObserverStatus(
            observer_id,
            members=len(group.members),
            positions=tuple([await _position(log, group, tp, newest.get(tp)) for tp in tps]),
            dead_letters=len(letters[observer_id]),
            last_error=letters[observer_id][-1][1].error if letters[observer_id] else None,
        )
        for observer_id, group in sorted(groups.items())
    ]


async def _position(
    log: Log, group: GroupDescription, tp: TopicPartition, newest: Record | None
) -> PartitionPosition:
    committed = group.committed.get(tp)
    if committed is None:
        return PartitionPosition(tp.partition, None, 0, None)
    left = await left_to_read(log, tp, committed, newest, timeout=_LOOK_SECONDS)
    if left is None:
        return PartitionPosition(tp.partition, committed, 0, None, is_in_log=False)
    failing = group.notes.get(tp) if left.events else None
    return PartitionPosition(tp.partition, committed, left.events, left.oldest, failing=failing)
