"""Topics: created once, found by everybody, and never silently different from what was asked for."""

from __future__ import annotations

import pytest
from tests.conformance.cluster import SECONDS, Cluster, append, record

from tidelog.log.port import (
    Cleanup,
    InvalidRecord,
    Log,
    LogError,
    TopicMismatch,
    TopicPartition,
    TopicSpec,
    UnknownTopic,
)


async def test_creating_a_topic_again_changes_nothing(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(3)
    await append(log, record(topic, "kept", partition=2))

    assert await log.create_topics([TopicSpec(topic, 3)]) == []
    assert await log.partitions(topic) == 3
    assert await log.end_offset(TopicPartition(topic, 2)) == 1


async def test_only_what_is_missing_is_created(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2)
    another = f"{topic}-another"

    assert await log.create_topics([TopicSpec(topic, 2), TopicSpec(another, 5)]) == [another]
    assert await (await cluster.connect()).partitions(another) == 5


@pytest.mark.parametrize("asked", [(4, Cleanup.DELETE), (2, Cleanup.COMPACT)], ids=["partitions", "cleanup"])
async def test_a_topic_that_differs_is_refused_and_nothing_is_created(
    cluster: Cluster, log: Log, asked: tuple[int, Cleanup]
) -> None:
    topic = await cluster.new_topic(2)
    new = f"{topic}-new"

    with pytest.raises(TopicMismatch, match=topic):
        await log.create_topics([TopicSpec(new, 1), TopicSpec(topic, *asked)])
    with pytest.raises(UnknownTopic):
        await log.partitions(new)


async def test_a_topic_needs_a_partition(log: Log) -> None:
    with pytest.raises(LogError, match="at least one partition"):
        await log.create_topics([TopicSpec("nothing", 0)])


async def test_an_unknown_topic_is_refused_everywhere(log: Log) -> None:
    missing = TopicPartition("no-such-topic", 0)
    with pytest.raises(UnknownTopic, match="no-such-topic"):
        await log.partitions(missing.topic)
    with pytest.raises(UnknownTopic):
        await log.end_offset(missing)
    with pytest.raises(UnknownTopic):
        await log.start_offset(missing)
    with pytest.raises(UnknownTopic):
        await log.reader({missing: 0})
    with pytest.raises(UnknownTopic):
        await log.join("group", missing.topic)
    with pytest.raises(UnknownTopic):
        await append(log, record(missing.topic, "lost"))


@pytest.mark.parametrize("partition", [-1, 2])
async def test_an_unknown_partition_is_refused(cluster: Cluster, log: Log, partition: int) -> None:
    topic = await cluster.new_topic(2)
    with pytest.raises(UnknownTopic, match=str(partition)):
        await append(log, record(topic, "first"), record(topic, "lost", partition=partition))
    with pytest.raises(UnknownTopic):
        await log.reader({TopicPartition(topic, partition): 0})
    assert await log.end_offset(TopicPartition(topic, 0)) == 0


async def test_a_topic_created_after_a_refusal_is_found(cluster: Cluster, log: Log) -> None:
    topic = f"{await cluster.new_topic()}-late"
    with pytest.raises(UnknownTopic):
        await log.partitions(topic)
    await (await cluster.connect()).create_topics([TopicSpec(topic, 1)])
    assert await log.partitions(topic) == 1


async def test_a_compacted_topic_takes_no_record_without_a_key(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(1, Cleanup.COMPACT)
    writer = await log.writer("writer")
    for refused in (
        append(log, record(topic, "v", key=None)),
        writer.append([record(topic, "v", key=None)], timeout=SECONDS),
    ):
        with pytest.raises(InvalidRecord, match=topic):
            await refused
    assert await log.end_offset(TopicPartition(topic, 0)) == 0
