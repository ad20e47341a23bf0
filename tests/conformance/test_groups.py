"""Consumer groups: shares that cover the topic, move when members come and go, and offsets that stay."""

from __future__ import annotations

from tests.conformance.cluster import SECONDS, Cluster, until

from tidelog.log.port import Log, Member


def covers(partitions: int, *members: Member) -> bool:
    """Whether the members share all partitions, each one once, in balance."""
    shares = [member.assignment for member in members]
    sizes = [len(share) for share in shares]
    return (
        frozenset().union(*shares) == frozenset(range(partitions))
        and sum(sizes) == partitions
        and max(sizes) - min(sizes) <= 1
    )


async def test_a_member_alone_gets_everything(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(5)
    member = await log.join("group", topic)
    assert await member.changed(timeout=SECONDS)
    await until(lambda: covers(5, member), member)
    assert not await member.changed(timeout=0)


async def test_members_share_and_a_leaving_one_hands_over(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(5)
    first = await log.join("group", topic)
    await until(lambda: covers(5, first), first)
    second = await (await cluster.connect()).join("group", topic)
    third = await (await cluster.connect()).join("group", topic)
    await until(lambda: covers(5, first, second, third), first, second, third)

    await second.close()
    await until(lambda: covers(5, first, third), first, third)
    await first.close()
    await until(lambda: covers(5, third), third)


async def test_one_member_too_many_gets_nothing_and_is_told(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(1)
    first = await log.join("group", topic)
    await until(lambda: covers(1, first), first)
    second = await (await cluster.connect()).join("group", topic)
    assert await second.changed(timeout=SECONDS)
    await until(lambda: covers(1, first, second), first, second)


async def test_closing_the_connection_leaves_the_group(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(4)
    leaving = await cluster.connect()
    gone, stays = await leaving.join("group", topic), await log.join("group", topic)
    await until(lambda: covers(4, gone, stays), gone, stays)
    await leaving.close()
    await until(lambda: covers(4, stays), stays)


async def test_groups_and_topics_do_not_mix(cluster: Cluster, log: Log) -> None:
    one, two = await cluster.new_topic(2), await cluster.new_topic(3)
    members = [await log.join("a", one), await log.join("b", one), await log.join("a", two)]
    for member, partitions in zip(members, (2, 2, 3), strict=True):
        await until(lambda member=member, partitions=partitions: covers(partitions, member), member)  # type: ignore[misc]
        await member.commit({0: partitions}, timeout=SECONDS)
    assert [await member.committed(0) for member in members] == [2, 2, 3]


async def test_committed_offsets_outlive_their_members(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2)
    member = await log.join("group", topic)
    await until(lambda: covers(2, member), member)
    assert await member.committed(0) is None
    await member.commit({}, timeout=SECONDS)
    await member.commit({0: 5, 1: 7}, timeout=SECONDS)
    await member.commit({0: 6}, timeout=SECONDS)
    await log.close()

    follower = await (await cluster.connect()).join("group", topic)
    assert [await follower.committed(partition) for partition in (0, 1)] == [6, 7]


async def test_a_commit_for_somebody_elses_partition_is_dropped(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2)
    first, second = await log.join("group", topic), await (await cluster.connect()).join("group", topic)
    await until(lambda: covers(2, first, second), first, second)
    (mine,), (foreign,) = first.assignment, second.assignment

    await first.commit({mine: 3, foreign: 4}, timeout=SECONDS)
    assert await first.committed(mine) == 3
    assert await first.committed(foreign) is None
