"""Compacted topics: whatever has been forgotten, a reader from the start sees the whole state."""

from __future__ import annotations

import random

from tests.conformance.cluster import Cluster, append, fold, read_count, read_to_end, record

from tidelog.log.port import Cleanup, Log, TopicPartition


async def test_the_newest_value_of_each_key_remains(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(1, Cleanup.COMPACT)
    for value in ("first", "second", "third"):
        await append(log, record(topic, value, key="a"), record(topic, value, key="b"))
        await cluster.compact()
    await append(log, record(topic, "fourth", key="b"))

    assert fold(await read_to_end(log, topic)) == {b"a": b"third", b"b": b"fourth"}


async def test_a_tombstone_removes_its_key(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(1, Cleanup.COMPACT)
    await append(log, record(topic, "x", key="gone"), record(topic, "y", key="kept"))
    await append(log, record(topic, None, key="gone"))
    await cluster.compact()
    assert fold(await read_to_end(log, topic)) == {b"kept": b"y"}

    await append(log, record(topic, "again", key="gone"))
    await cluster.compact()
    assert fold(await read_to_end(log, topic)) == {b"kept": b"y", b"gone": b"again"}


async def test_a_reader_on_its_way_still_meets_a_tombstone(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(1, Cleanup.COMPACT)
    tp = TopicPartition(topic, 0)
    await append(log, record(topic, "x", key="gone"), record(topic, "y", key="kept"))
    reader = await log.reader({tp: 0})
    found = await read_count(reader, 1)
    await append(log, record(topic, None, key="gone"))
    await cluster.compact()

    end = await log.end_offset(tp)
    while reader.position(tp) < end:
        found += await read_count(reader, 1)
    assert fold(found) == {b"kept": b"y"}


async def test_compaction_keeps_offsets_bounds_and_the_way_from_the_start(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(1, Cleanup.COMPACT)
    tp = TopicPartition(topic, 0)
    offsets = await append(log, *(record(topic, str(number), key=str(number % 3)) for number in range(9)))
    end = await log.end_offset(tp)
    await cluster.compact()

    assert await log.end_offset(tp) == end
    assert await log.start_offset(tp) == 0
    found = await read_to_end(log, topic)
    assert [item.offset for item in found][-3:] == offsets[-3:]
    reader = await log.reader({tp: offsets[1]})
    assert (await read_count(reader, 1))[0].offset >= offsets[1]


async def test_any_history_folds_to_the_same_state_at_any_time(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2, Cleanup.COMPACT)
    choose = random.Random(7)  # noqa: S311 - the same history in every run
    written: list[dict[bytes | None, bytes]] = [{}, {}]
    for step in range(12):
        batch = []
        for number in range(400):
            partition, key = choose.randrange(2), f"key-{choose.randrange(50)}"
            value = None if choose.random() < 0.3 else f"{step}-{number}"
            batch.append(record(topic, value, partition=partition, key=key))
            if value is None:
                written[partition].pop(key.encode(), None)
            else:
                written[partition][key.encode()] = value.encode()
        await append(log, *batch)
        if step % 3 == 1:
            await cluster.compact()
        for partition in range(2):
            assert fold(await read_to_end(log, topic, partition)) == written[partition]
