"""A member whose broker does not know the topic yet, as a broker that has just started for a moment."""

from __future__ import annotations

from uuid import uuid4

from tests.conformance.cluster import SECONDS, KafkaCluster, until

from tidelog.log.kafka.connection import Connection
from tidelog.log.kafka.member import KafkaMember
from tidelog.log.kafka.options import KafkaSecurity
from tidelog.log.port import TopicSpec


async def test_a_share_that_was_made_without_the_topic_is_made_again(
    cluster: KafkaCluster, kafka_address: str
) -> None:
    """Otherwise the whole group would stand still for five minutes, which is aiokafka's default."""
    log, topic = await cluster.connect(), f"topic-{uuid4().hex}"
    member = await KafkaMember.join(Connection(kafka_address, KafkaSecurity()), topic, topic)
    try:
        assert await member.changed(timeout=SECONDS)
        assert member.assignment == frozenset()
        await log.create_topics([TopicSpec(topic, 2)])
        await until(lambda: member.assignment == {0, 1}, member)
    finally:
        await member.close()
