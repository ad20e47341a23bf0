"""A partition is read whole up to a known end, past markers, aborted transactions and forgotten records."""

from __future__ import annotations

from contextlib import aclosing

from tests.conformance.cluster import SECONDS, Cluster, append, record, values

from tidelog.log.port import Isolation, Log, TopicPartition
from tidelog.log.scan import scan


async def scanned(log: Log, tp: TopicPartition, end: int) -> list[str]:
    found: list[str] = []
    async with aclosing(scan(log, tp, end)) as parts:
        async for records, next_offset in parts:
            assert records[-1].offset < next_offset <= end
            found += values(records)
    return found


async def test_all_before_the_end_and_nothing_after_it(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(retention_seconds=1)
    tp = TopicPartition(topic, 0)
    assert await scanned(log, tp, await log.end_offset(tp)) == []
    await append(log, *(record(topic, f"gone {number}") for number in range(3)))
    await cluster.expire(topic)
    writer = await log.writer("scan")
    for number in range(3):
        await writer.append([record(topic, f"{number}a"), record(topic, f"{number}b")], timeout=SECONDS)
    end = await log.end_offset(tp, Isolation.UNCOMMITTED)  # a broker shows a transaction a moment later
    await writer.append([record(topic, "later")], timeout=SECONDS)
    assert await scanned(log, tp, end) == ["0a", "0b", "1a", "1b", "2a", "2b"]
