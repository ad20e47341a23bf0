"""Appending and reading: order, round trips, waiting, and what a cancellation leaves behind."""

from __future__ import annotations

import asyncio

import pytest
from tests.conformance.cluster import SECONDS, Cluster, append, read_count, read_to_end, record, values

from tidelog.log.port import (
    MAX_RECORD_BYTES,
    Log,
    LogUnavailable,
    NewRecord,
    Record,
    RecordTooLarge,
    TopicPartition,
)


async def test_each_partition_keeps_the_order_of_appending(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2)
    await append(log, *(record(topic, str(number), partition=number % 2) for number in range(700)))
    await append(log, record(topic, "last", partition=1))

    assert values(await read_to_end(log, topic, 0)) == [str(number) for number in range(0, 700, 2)]
    assert values(await read_to_end(log, topic, 1)) == [*(str(number) for number in range(1, 700, 2)), "last"]


async def test_offsets_grow_and_are_returned_in_order(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2)
    first = await append(log, record(topic, "a"), record(topic, "b", partition=1), record(topic, "c"))
    second = await append(await cluster.connect(), record(topic, "d"))

    found = await read_to_end(log, topic)
    assert [item.offset for item in found] == [first[0], first[2], second[0]]
    assert first[0] < first[2] < second[0]
    assert [item.offset for item in await read_to_end(log, topic, 1)] == [first[1]]


async def test_a_record_comes_back_as_it_was(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    every_byte = bytes(range(256))
    sent = [
        NewRecord(
            topic, 0, every_byte, every_byte * 3, (("reason", every_byte), ("reason", b""), ("Grüße", b"x"))
        ),
        NewRecord(topic, 0, None, b"no key"),
        NewRecord(topic, 0, b"no value", None, (("header", b"alone"),)),
        NewRecord(topic, 0, None, None),
        NewRecord(topic, 0, b"", b""),
        NewRecord(topic, 0, "schlüssel".encode(), b"\0text\0"),
    ]
    await append(log, *sent)

    found = await read_to_end(await cluster.connect(), topic)
    assert [NewRecord(r.topic, r.partition, r.key, r.value, r.headers) for r in found] == sent


async def test_appending_nothing_is_nothing(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    assert await append(log) == []
    await (await log.writer("writer")).append([], timeout=SECONDS)
    assert await log.end_offset(TopicPartition(topic, 0)) == 0


async def test_a_record_of_just_the_bound_is_taken_and_one_byte_more_refuses_all(
    cluster: Cluster, log: Log
) -> None:
    topic = await cluster.new_topic()
    headers = (("name", b"1234"),)
    most = NewRecord(topic, 0, b"12", b"x" * (MAX_RECORD_BYTES - 10), headers)
    await append(log, most)
    with pytest.raises(RecordTooLarge, match=str(MAX_RECORD_BYTES)):
        await append(log, record(topic, "small"), NewRecord(topic, 0, b"123", most.value, headers))

    assert [item.value for item in await read_to_end(log, topic)] == [most.value]


async def test_a_reader_starts_where_it_is_told(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    offsets = await append(log, *(record(topic, str(number)) for number in range(5)))
    reader = await log.reader({TopicPartition(topic, 0): offsets[3]})
    assert values(await read_count(reader, 2)) == ["3", "4"]


async def test_a_read_takes_no_more_than_it_is_told(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2)
    await append(log, *(record(topic, str(number), partition=number % 2) for number in range(10)))
    reader = await log.reader({TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 0})
    assert 1 <= len(await reader.read(max_records=3, timeout=SECONDS)) <= 3
    with pytest.raises(ValueError, match="max_records"):
        await reader.read(max_records=0, timeout=0)


async def test_a_reader_waits_until_there_is_a_record(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(2)
    reader = await log.reader({TopicPartition(topic, 0): 0, TopicPartition(topic, 1): 0})
    other = await cluster.connect()
    for number in range(50):
        reading = asyncio.create_task(reader.read(max_records=10, timeout=SECONDS))
        await asyncio.sleep(0)
        assert not reading.done()
        await append(other, record(topic, str(number), partition=number % 2))
        assert values(await asyncio.wait_for(reading, SECONDS)) == [str(number)]


async def test_a_read_without_a_record_ends_empty(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    reader = await log.reader({TopicPartition(topic, 0): 0})
    assert await reader.read(max_records=1, timeout=0) == []
    assert await reader.read(max_records=1, timeout=0.02) == []
    await append(log, record(topic, "later"))
    assert values(await read_count(reader, 1)) == ["later"]


async def test_a_cancelled_read_loses_nothing(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    reader = await log.reader({TopicPartition(topic, 0): 0})
    producer = await log.producer()
    seen: list[str] = []
    for number in range(60):
        reading = asyncio.create_task(reader.read(max_records=2, timeout=SECONDS))
        appending = asyncio.create_task(producer.append([record(topic, str(number))], timeout=SECONDS))
        for _ in range(number % 6):
            await asyncio.sleep(0)
        if number % 2:
            await appending
        reading.cancel()
        (outcome,) = await asyncio.gather(reading, return_exceptions=True)
        if isinstance(outcome, list):
            seen += values(outcome)
        await appending
    seen += values(await read_count(reader, 60 - len(seen)))
    assert seen == [str(number) for number in range(60)]


async def test_several_partitions_are_read_and_none_starves(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(3)
    await append(log, *(record(topic, f"much {number}") for number in range(500)))
    await append(log, record(topic, "little", partition=1), record(topic, "little", partition=2))
    reader = await log.reader({TopicPartition(topic, partition): 0 for partition in range(3)})

    found: list[Record] = []
    for _ in range(3):
        found += await reader.read(max_records=10, timeout=SECONDS)
    assert {item.partition for item in found} == {0, 1, 2}
    found += await read_count(reader, 502 - len(found))
    assert values([item for item in found if item.partition == 0]) == [
        f"much {number}" for number in range(500)
    ]


async def test_two_readers_do_not_disturb_each_other(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    tp = TopicPartition(topic, 0)
    await append(log, record(topic, "a"), record(topic, "b"))
    one, two = await log.reader({tp: 0}), await log.reader({tp: 0})
    assert values(await read_count(one, 2)) == ["a", "b"]
    await one.close()
    assert values(await read_count(two, 2)) == ["a", "b"]


async def test_many_appends_at_once_all_arrive_once(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    producers = [await (await cluster.connect()).producer() for _ in range(3)]
    offsets = await asyncio.gather(
        *(
            producers[number % 3].append([record(topic, str(number))], timeout=SECONDS)
            for number in range(150)
        )
    )
    found = await read_to_end(log, topic)
    assert sorted(values(found), key=int) == [str(number) for number in range(150)]
    assert {item.offset: item.value for item in found} == {
        offset: str(number).encode() for number, (offset,) in enumerate(offsets)
    }


async def test_large_records_come_in_pieces_that_make_a_whole(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic()
    large = "x" * 700_000
    for number in range(8):
        await append(log, record(topic, f"{number}{large}"))
    assert [value[0] for value in values(await read_to_end(log, topic))] == list("01234567")


async def test_what_is_closed_says_so(cluster: Cluster) -> None:
    topic = await cluster.new_topic()
    log = await cluster.connect()
    producer, writer = await log.producer(), await log.writer("writer")
    reader, member = await log.reader({TopicPartition(topic, 0): 0}), await log.join("group", topic)
    await log.close()
    await log.close()

    with pytest.raises(LogUnavailable, match="closed"):
        await producer.append([record(topic, "late")], timeout=SECONDS)
    with pytest.raises(LogUnavailable, match="closed"):
        await writer.append([record(topic, "late")], timeout=SECONDS)
    with pytest.raises(LogUnavailable, match="closed"):
        await reader.read(max_records=1, timeout=0)
    with pytest.raises(LogUnavailable):
        await member.commit({0: 1}, timeout=SECONDS)
    with pytest.raises(LogUnavailable, match="closed"):
        await log.partitions(topic)
