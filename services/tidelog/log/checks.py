"""What every adapter refuses before anything is sent: so that it is refused alike, and in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.log.port import (
    MAX_RECORD_BYTES,
    GroupInUse,
    InvalidRecord,
    LogError,
    NewRecord,
    RecordTooLarge,
    TopicMismatch,
    TopicSpec,
    UnknownTopic,
)


def refuse_oversized(records: Sequence[NewRecord]) -> None:
    """Raise `RecordTooLarge` for the first record over the bound (key, value and headers together)."""
    for topic, partition, key, value, headers in records:
        size = (len(key) if key else 0) + (len(value) if value else 0)
        for name, text in headers:
            size += len(name) + len(text)
        if size > MAX_RECORD_BYTES:
            raise RecordTooLarge(
                f"A record for {topic}[{partition}] has {size} bytes; the log takes at most"
                f" {MAX_RECORD_BYTES}. Nothing was appended."
            )


def in_use(group: str) -> GroupInUse:
    """The refusal to forget a group that somebody is in."""
    return GroupInUse(f"The group {group!r} has members; stop them first. Nothing was forgotten.")


def keyless(topic: str) -> InvalidRecord:
    """The refusal of a record without a key for a compacted topic."""
    return InvalidRecord(
        f"A record for the compacted topic {topic!r} has no key. Nothing was appended; give"
        " every record a key."
    )


def unknown_topic(topic: str) -> UnknownTopic:
    """The refusal of a topic that does not exist."""
    return UnknownTopic(f"The log has no topic {topic!r}. Run `tidelog init` to create what is missing.")


def unknown_partition(topic: str, partition: int, partitions: int) -> UnknownTopic:
    """The refusal of a partition that does not exist."""
    return UnknownTopic(
        f"The topic {topic!r} has the partitions 0 to {partitions - 1}; there is no {partition}."
    )


def mismatch(asked: TopicSpec, partitions: int, cleanup: str) -> TopicMismatch:
    """The refusal to create a topic that exists, and differs."""
    return TopicMismatch(
        f"The topic {asked.name!r} exists with {partitions} partitions and cleanup {cleanup!r}, and was asked"
        f" for with {asked.partitions} and {asked.cleanup.value!r}. Both are fixed at creation: correct the"
        " setting, or use another prefix."
    )


def refuse_malformed(topics: Sequence[TopicSpec]) -> None:
    """Raise `LogError` for a topic that could hold nothing."""
    for topic in topics:
        if topic.partitions < 1:
            raise LogError(f"The topic {topic.name!r} needs at least one partition, not {topic.partitions}.")
