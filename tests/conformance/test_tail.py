"""The newest record of a partition is found, whatever offsets lie behind it."""

from __future__ import annotations

import pytest
from tests.conformance.cluster import SECONDS, Cluster, append, record, values

from tidelog.log.port import Cleanup, Log, TopicPartition, UnknownTopic
from tidelog.log.tail import newest_records


async def test_of_several_partitions_and_of_an_empty_one(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(3)
    tps = [TopicPartition(topic, partition) for partition in range(3)]
    await append(log, *(record(topic, str(number), partition=0) for number in range(100)))
    await append(log, record(topic, "only", partition=2))
    found = await newest_records(log, tps, timeout=SECONDS)
    assert values([found[tps[0]], found[tps[2]]]) == ["99", "only"]
    assert tps[1] not in found


async def test_before_the_markers_of_transactions(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(1, Cleanup.COMPACT)
    tp = TopicPartition(topic, 0)
    writer = await log.writer("tail")
    for number in range(3):
        await writer.append(
            [record(topic, f"p{number}", key="position"), record(topic, "v", key=f"k{number}")],
            timeout=SECONDS,
        )
    newest = await newest_records(log, [tp], timeout=SECONDS)
    of_key = await newest_records(log, [tp], timeout=SECONDS, key=b"k0")
    position = await newest_records(log, [tp], timeout=SECONDS, key=b"position")
    assert [newest[tp].key, of_key[tp].key, position[tp].value] == [b"k2", b"k0", b"p2"]
    assert await newest_records(log, [tp], timeout=SECONDS, key=b"none") == {}


async def test_after_retention_has_taken_all(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(1, retention_seconds=1)
    await append(log, record(topic, "gone"))
    await cluster.expire(topic)
    assert await newest_records(log, [TopicPartition(topic, 0)], timeout=SECONDS) == {}


async def test_an_unknown_topic_is_refused(log: Log) -> None:
    with pytest.raises(UnknownTopic):
        await newest_records(log, [TopicPartition("no-such-topic", 0)], timeout=SECONDS)
