"""Looking at a log: topics and groups as they are."""

from __future__ import annotations

from uuid import uuid4

import pytest
from tests.conformance.cluster import SECONDS, Cluster, append, record, until

from tidelog.log.port import MAX_NOTE_BYTES, Cleanup, GroupDescription, GroupInUse, Log, TopicPartition


async def test_says_what_it_runs_on(log: Log) -> None:
    found = await log.describe()
    assert log.address.startswith(f"{found.kind}:")
    assert (found.brokers > 0) == (found.kind == "kafka")
    assert found.is_supported
    assert found.version is not None or found.kind == "memory"


async def test_topics_are_described_as_they_were_made(cluster: Cluster, log: Log) -> None:
    kept = await cluster.new_topic(3, retention_seconds=3_600)
    for_ever = await cluster.new_topic(1)
    compacted = await cluster.new_topic(2, Cleanup.COMPACT)

    found = await log.describe_topics([kept, for_ever, compacted, "no-such-topic"])

    assert {name: (topic.partitions, topic.cleanup) for name, topic in found.items()} == {
        kept: (3, "delete"),
        for_ever: (1, "delete"),
        compacted: (2, "compact"),
    }
    assert (found[kept].retention_seconds, found[for_ever].retention_seconds) == (3_600, None)
    for topic in found.values():
        if topic.replicas is not None:
            assert topic.replicas.factor >= topic.replicas.min_insync >= 1
            assert topic.replicas.leaderless == topic.replicas.below_min_insync == ()


async def the_group(log: Log, name: str) -> GroupDescription | None:
    found = [group for group in await log.groups(name) if group.name == name]
    return found[0] if found else None


async def test_groups_are_described_with_members_shares_and_offsets(cluster: Cluster, log: Log) -> None:
    topic, prefix = await cluster.new_topic(4), uuid4().hex
    await append(log, *(record(topic, "v", partition=partition) for partition in range(4)))
    first, second = await log.join(f"{prefix}-a", topic), await log.join(f"{prefix}-a", topic)
    await until(lambda: len(first.assignment) == len(second.assignment) == 2, first, second)
    for member in (first, second):
        await member.commit(dict.fromkeys(member.assignment, 1), timeout=SECONDS)

    found = await the_group(await cluster.connect(), f"{prefix}-a")

    assert found is not None
    assert found.is_settled
    shares = {frozenset(tp.partition for tp in member.partitions) for member in found.members}
    assert shares == {first.assignment, second.assignment}
    assert found.committed == {TopicPartition(topic, partition): 1 for partition in range(4)}
    assert [group.name for group in await log.groups(prefix)] == [f"{prefix}-a"]

    await first.close()
    await second.close()
    left = await the_group(log, f"{prefix}-a")
    assert left is not None
    assert left.members == ()
    assert left.committed == found.committed


async def test_a_commit_may_say_why_the_group_stands_there_until_the_next_one(
    cluster: Cluster, log: Log
) -> None:
    topic, group = await cluster.new_topic(2), uuid4().hex
    member = await log.join(group, topic)
    await until(lambda: len(member.assignment) == 2, member)
    await member.commit({0: 0, 1: 0}, notes={1: "try 3 failed: nö"}, timeout=SECONDS)
    found = await the_group(log, group)
    assert found is not None
    assert found.notes == {TopicPartition(topic, 1): "try 3 failed: nö"}
    assert found.committed == {TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 0}

    await member.commit({0: 0, 1: 1}, notes={0: "ö" * MAX_NOTE_BYTES}, timeout=SECONDS)
    found = await the_group(log, group)
    assert found is not None
    [(tp, cut)] = found.notes.items()
    assert tp == TopicPartition(topic, 0)
    assert MAX_NOTE_BYTES - 10 < len(cut.encode()) <= MAX_NOTE_BYTES


async def test_a_group_is_forgotten_once_nobody_is_in_it(cluster: Cluster, log: Log) -> None:
    topic, name = await cluster.new_topic(2), uuid4().hex
    members = [await log.join(group, topic) for group in (name, f"{name}-b")]
    for member in members:
        await until(lambda member=member: len(member.assignment) == 2, member)  # type: ignore[misc]
        await member.commit({0: 3, 1: 4}, notes={0: "n"}, timeout=SECONDS)
    with pytest.raises(GroupInUse, match=name):
        await log.forget_group(name)
    assert await members[0].committed(0) == 3
    for member in members:
        await member.close()

    await log.forget_group(name)
    await log.forget_group(name)  # one that is not there is forgotten already

    [other] = await log.groups(name)
    assert (other.name, len(other.committed)) == (f"{name}-b", 2)
    back = await log.join(name, topic)
    await until(lambda: len(back.assignment) == 2, back)
    assert [await back.committed(partition) for partition in (0, 1)] == [None, None]
    await back.commit({0: 0}, timeout=SECONDS)
    found = await the_group(log, name)
    assert found is not None
    assert (found.committed, found.notes) == ({TopicPartition(topic, 0): 0}, {})


async def test_a_group_that_nobody_ever_joined_is_not_there(log: Log) -> None:
    assert await log.groups(uuid4().hex) == []
