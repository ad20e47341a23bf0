"""A log is known again by a record that was read from it, whatever stands around that record."""

from __future__ import annotations

from tests.conformance.cluster import SECONDS, Cluster, append, read_to_end, record

from tidelog.inspection.origin import Difference, differences, mark_of
from tidelog.log.port import Log, TopicPartition
from tidelog_projections.batch import Mark


async def test_every_record_is_known_again_and_no_other(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(partitions=2)
    one, two = TopicPartition(topic, 0), TopicPartition(topic, 1)
    writer = await log.writer("origin")
    for number in range(3):
        pair = [record(topic, f"{number}a"), record(topic, f"{number}b", partition=1)]
        await writer.append(pair, timeout=SECONDS)
    marks = {tp: [mark_of(read) for read in await read_to_end(log, *tp)] for tp in (one, two)}
    for number in range(3):
        assert await differences(log, {tp: marks[tp][number] for tp in marks}, timeout=SECONDS) == {}
    other = Mark(marks[two][1].offset, marks[one][1].digest)
    found = await differences(log, {one: marks[one][2], two: other}, timeout=SECONDS)
    assert found == {two: Difference.OTHER_RECORD}
    end = await log.end_offset(one)
    assert await differences(log, {one: Mark(end, b"")}, timeout=SECONDS) == {one: Difference.NO_RECORD}


async def test_what_is_forgotten_is_passed_over(cluster: Cluster, log: Log) -> None:
    topic = await cluster.new_topic(retention_seconds=1)
    tp = TopicPartition(topic, 0)
    await append(log, *(record(topic, f"gone {number}") for number in range(3)))
    await cluster.expire(topic)
    assert await log.start_offset(tp) > 1
    assert await differences(log, {tp: Mark(1, b"another")}, timeout=SECONDS) == {}
