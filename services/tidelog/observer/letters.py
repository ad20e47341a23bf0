"""Looking at an observer's dead letters, and asking for their redrive: for people, from outside."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import aclosing
from typing import Final

from tidelog.log.port import GroupDescription, Log, TopicPartition
from tidelog.log.scan import scan
from tidelog.log.tail import newest_records
from tidelog.log.topics import Topics
from tidelog.observer.dead_letters import DeadLetter, RedriveRequest, home_of
from tidelog_events.instants import Instant

MOST_LETTERS: Final = 100_000
"""The most open letters that are looked at, the oldest first."""
_APPEND_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 10.0


async def open_letters(log: Log, topics: Topics, observer_id: str) -> list[DeadLetter]:
    """The dead letters of an observer that are not redriven, the oldest first; each event once.

    Raises:
        LogUnavailable: the log does not answer.
    """
    groups = await log.groups(topics.redrive_group(observer_id))
    found = await all_open_letters(log, topics, {observer_id}, groups)
    return [letter for _, letter in found[observer_id]]


async def all_open_letters(
    log: Log, topics: Topics, observer_ids: Collection[str], redrive_groups: Collection[GroupDescription]
) -> dict[str, list[tuple[int, DeadLetter]]]:
    """The open letters of several observers, each with its offset, in one pass over their topic.

    At most `MOST_LETTERS` of a partition of it.
    """
    topic = topics.observer_dead_letters
    count = await log.partitions(topic)
    homes = {observer_id: home_of(topic, observer_id, count) for observer_id in observer_ids}
    done = {group.name: group.committed for group in redrive_groups}
    first = {
        observer_id: done.get(topics.redrive_group(observer_id), {}).get(home, 0)
        for observer_id, home in homes.items()
    }
    letters: dict[str, dict[tuple[int, int], tuple[int, DeadLetter]]] = {one: {} for one in observer_ids}
    for home, newest in (await newest_records(log, set(homes.values()), timeout=_LOOK_SECONDS)).items():
        begin = min(first[one] for one in observer_ids if homes[one] == home)
        end = newest.offset + 1
        seen = 0
        async with aclosing(scan(log, home, end, begin=begin)) as parts:
            async for records, _ in parts:
                if seen >= MOST_LETTERS:
                    break
                for record in records:
                    letter = DeadLetter.read(record)
                    if letter is not None and record.offset >= first.get(letter.observer_id, end):
                        # A letter that stands twice is one: the later place, so that a request means both.
                        letters[letter.observer_id][letter.identity] = (record.offset, letter)
                        seen += 1
    return {one: sorted(found.values(), key=lambda item: item[0]) for one, found in letters.items()}


async def request_redrive(
    log: Log, topics: Topics, observer_id: str, *, actor: str, at: Instant, limit: int | None = None
) -> int:
    """Ask for the redrive of an observer's open letters, the oldest first; how many they are.

    The observer's own process carries it out, now or when it next runs. Asked for twice, it is done once.

    Raises:
        LogUnavailable, OutcomeUnknown: the request may not stand in the log. Ask again.
    """
    groups = await log.groups(topics.redrive_group(observer_id))
    found = (await all_open_letters(log, topics, {observer_id}, groups))[observer_id][:limit]
    if not found:
        return 0
    topic = topics.observer_dead_letters
    home: TopicPartition = home_of(topic, observer_id, await log.partitions(topic))
    through = max(offset for offset, _ in found)
    producer = await log.producer()
    try:
        request = RedriveRequest(observer_id, through, actor, at)
        await producer.append([request.record(home)], timeout=_APPEND_SECONDS)
    finally:
        await producer.close()
    return len(found)
