"""What a broker refuses by its own settings, which no check of ours can foresee, is reported."""

from __future__ import annotations

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from tests.conformance.cluster import SECONDS, KafkaCluster, append, read_to_end, record, until, values

from tidelog.log.port import Isolation, Log, OutcomeUnknown, RecordTooLarge, TopicPartition, UnknownTopic

_TOO_LARGE = "x" * 5_000


@pytest.fixture
async def narrow_topic(cluster: KafkaCluster, kafka_admin: AIOKafkaAdminClient) -> str:
    """A topic whose broker takes 2,000 bytes, whatever ours says."""
    topic = await cluster.new_topic()
    narrow = ConfigResource(ConfigResourceType.TOPIC, topic, {"max.message.bytes": "2000"})
    await kafka_admin.alter_configs([narrow])
    return topic


async def test_a_refused_message_aborts_the_whole_transaction(
    cluster: KafkaCluster, log: Log, narrow_topic: str
) -> None:
    wide_topic = await cluster.new_topic(2)
    writer = await log.writer(narrow_topic)
    await writer.append([record(narrow_topic, "before"), record(wide_topic, "before")], timeout=SECONDS)
    with pytest.raises(RecordTooLarge, match=r"max\.message\.bytes"):
        await writer.append(
            [
                record(wide_topic, "aborted"),
                record(narrow_topic, _TOO_LARGE),
                record(wide_topic, "aborted", partition=1),
            ],
            timeout=SECONDS,
        )

    # It was aborted, and does not wait for its timeout: readers get past it at once.
    for topic, partition in ((wide_topic, 0), (wide_topic, 1), (narrow_topic, 0)):
        tp = TopicPartition(topic, partition)
        await read_to_end(log, topic, partition)
        assert await log.end_offset(tp) == await log.end_offset(tp, Isolation.UNCOMMITTED)
    assert values(await read_to_end(log, wide_topic)) == ["before"]

    # What a broker has refused once it refuses for good, for the gap in the numbers: the writer knows that.
    with pytest.raises(OutcomeUnknown, match="open another one"):
        await writer.append([record(wide_topic, "late")], timeout=SECONDS)
    follower = await log.writer(narrow_topic)
    await follower.append([record(narrow_topic, "after"), record(wide_topic, "after")], timeout=SECONDS)
    assert values(await read_to_end(log, narrow_topic)) == ["before", "after"]
    assert values(await read_to_end(log, wide_topic)) == ["before", "after"]


async def test_a_producer_goes_on_after_a_refused_message(log: Log, narrow_topic: str) -> None:
    producer = await log.producer()
    for number in range(3):
        await producer.append([record(narrow_topic, f"small {number}")], timeout=SECONDS)
        with pytest.raises(RecordTooLarge, match=r"max\.message\.bytes"):
            await producer.append([record(narrow_topic, _TOO_LARGE)], timeout=SECONDS)
    assert values(await read_to_end(log, narrow_topic)) == ["small 0", "small 1", "small 2"]


async def test_a_topic_that_is_deleted_is_unknown_again(
    cluster: KafkaCluster, log: Log, kafka_admin: AIOKafkaAdminClient
) -> None:
    topic = await cluster.new_topic()
    await append(log, record(topic, "gone"))
    await kafka_admin.delete_topics([topic])
    with pytest.raises(OutcomeUnknown, match="did not confirm"):
        await (await log.producer()).append([record(topic, "late")], timeout=1)
    with pytest.raises(UnknownTopic, match=topic):
        await append(log, record(topic, "later"))


async def test_an_offset_is_committed_without_a_note_that_is_too_long_for_the_brokers(
    cluster: KafkaCluster, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`offset.metadata.max.bytes` may be set lower than what is always cut off; here the note is longer."""
    monkeypatch.setattr("tidelog.log.kafka.member.MAX_NOTE_BYTES", 2 * len(_TOO_LARGE))
    topic = await cluster.new_topic()
    member = await log.join(topic, topic)
    await until(lambda: member.assignment == {0}, member)
    await member.commit({0: 3}, notes={0: _TOO_LARGE}, timeout=SECONDS)
    assert await member.committed(0) == 3
    [group] = await log.groups(topic)
    assert group.notes == {}
