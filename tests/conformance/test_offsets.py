"""Positions, bounds, and offsets that the log does not hold."""

from __future__ import annotations

import asyncio
import time

import pytest
from tests.conformance.cluster import SECONDS, Cluster, append, read_count, read_to_end, record, values

from tidelog.log.port import Isolation, Log, LogError, OffsetOutOfRange, TopicPartition


async def test_the_position_follows_the_reading_and_meets_the_end(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    tp = TopicPartition(topic, 0)
    offsets = await append(log, *(record(topic, str(number)) for number in range(3)))
    reader = await log.reader({tp: 0})
    assert reader.position(tp) == 0
    await read_count(reader, 2)
    assert offsets[1] < reader.position(tp) <= offsets[2]
    await read_count(reader, 1)
    assert reader.position(tp) == await log.end_offset(tp) == await log.end_offset(tp, Isolation.UNCOMMITTED)


async def test_a_time_is_found_to_the_millisecond(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    tp = TopicPartition(topic, 0)
    assert await log.offset_at(tp, time.time()) == await log.end_offset(tp)
    old = await append(log, *(record(topic, str(number)) for number in range(9)))
    at = time.time() + 0.002
    while time.time() < at + 0.002:
        pass  # so that what comes now is later, on a clock of milliseconds
    new = await append(log, *(record(topic, str(number)) for number in range(9)))
    assert await log.offset_at(tp, 0.0) == old[0]
    assert await log.offset_at(tp, at) == new[0]
    assert await log.offset_at(tp, at + 3_600) == await log.end_offset(tp)


async def test_seek_goes_back_and_forth(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    tp = TopicPartition(topic, 0)
    offsets = await append(log, *(record(topic, str(number)) for number in range(4)))
    reader = await log.reader({tp: await log.end_offset(tp)})
    reader.seek(tp, offsets[1])
    assert reader.position(tp) == offsets[1]
    assert values(await read_count(reader, 1)) == ["1"]
    reader.seek(tp, offsets[3])
    assert values(await read_count(reader, 1)) == ["3"]


async def test_a_reader_knows_only_its_partitions(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2)
    reader = await log.reader({TopicPartition(topic, 0): 0})
    with pytest.raises(LogError, match="not opened"):
        reader.position(TopicPartition(topic, 1))
    with pytest.raises(LogError, match="not opened"):
        reader.seek(TopicPartition(topic, 1), 0)


async def test_a_paused_partition_stands_still_while_the_others_are_read(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2)
    slow, other = TopicPartition(topic, 0), TopicPartition(topic, 1)
    await append(log, *(record(topic, str(number), partition=number % 2) for number in range(6)))
    reader = await log.reader({slow: 0, other: 0})
    await read_count(reader, 1)
    reader.pause(slow)
    reader.pause(slow)
    stood = reader.position(slow)
    seen: list[str] = []
    async with asyncio.timeout(SECONDS):
        while reader.position(other) < await log.end_offset(other):
            seen += values(await reader.read(max_records=1, timeout=SECONDS))
    assert all(int(value) % 2 for value in seen)
    assert reader.position(slow) == stood
    reader.pause(other)
    assert await reader.read(max_records=9, timeout=0.01) == []

    reader.resume(slow)
    reader.resume(other)
    reader.seek(slow, 0)
    assert values(await read_count(reader, 3)) == ["0", "2", "4"]


async def test_an_empty_partition_starts_and_ends_at_zero(cluster: Cluster, log: Log) -> None:
    tp = TopicPartition(await cluster.new_topic(), 0)
    assert await log.start_offset(tp) == await log.end_offset(tp) == 0


async def test_retention_moves_the_start_and_never_an_offset(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2, retention_seconds=3600)
    tp = TopicPartition(topic, 0)
    await append(log, *(record(topic, "old", partition=number % 2) for number in range(3_000)))
    end = await log.end_offset(tp)
    await cluster.expire(topic)

    assert await log.start_offset(tp) == await log.end_offset(tp) == end
    (offset,) = await append(log, record(topic, "new"))
    assert offset >= end
    assert values(await read_to_end(log, topic, start=await log.start_offset(tp))) == ["new"]


async def test_a_topic_without_a_retention_keeps_everything(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    await append(log, record(topic, "kept"))
    await cluster.expire(await cluster.new_topic(retention_seconds=1))
    assert values(await read_to_end(log, topic)) == ["kept"]


async def test_an_offset_below_the_start_is_out_of_range(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(retention_seconds=3600)
    tp = TopicPartition(topic, 0)
    await append(log, record(topic, "old"))
    await cluster.expire(topic)
    await append(log, record(topic, "new"))
    reader = await log.reader({tp: 0})  # not before: one that reads ahead may have the old record by then

    with pytest.raises(OffsetOutOfRange, match=topic):
        await reader.read(max_records=1, timeout=SECONDS)
    reader.seek(tp, await log.start_offset(tp))
    assert values(await read_count(reader, 1)) == ["new"]


async def test_an_offset_above_the_end_is_out_of_range(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    tp = TopicPartition(topic, 0)
    await append(log, record(topic, "only"))
    reader = await log.reader({tp: await log.end_offset(tp) + 10})
    with pytest.raises(OffsetOutOfRange, match=topic):
        await reader.read(max_records=1, timeout=SECONDS)


async def test_a_refused_offset_loses_nothing_of_the_other_partitions(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2)
    good, bad = TopicPartition(topic, 0), TopicPartition(topic, 1)
    await append(log, record(topic, "good"))
    reader = await log.reader({good: 0, bad: 77})
    with pytest.raises(OffsetOutOfRange):
        await read_count(reader, 2)
    reader.seek(good, 0)
    reader.seek(bad, 0)
    assert values(await read_count(reader, 1)) == ["good"]
