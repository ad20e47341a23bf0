"""A broker that does not know all of its cluster yet, as one that has just started for a moment."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from aiokafka.admin import AIOKafkaAdminClient
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


async def test_a_cluster_that_knows_of_no_broker_yet_is_asked_again_before_topics_are_made(
    cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that comes back may say so for a moment; no replication factor would be right then."""
    asked = 0
    describe = AIOKafkaAdminClient.describe_cluster

    async def at_first_nobody(admin: AIOKafkaAdminClient) -> dict[str, Any]:
        nonlocal asked
        asked += 1
        described: dict[str, Any] = await describe(admin)
        return {**described, "brokers": []} if asked == 1 else described

    monkeypatch.setattr(AIOKafkaAdminClient, "describe_cluster", at_first_nobody)
    log, topic = await cluster.connect(), f"topic-{uuid4().hex}"
    assert await log.create_topics([TopicSpec(topic, 2)]) == [topic]
    assert asked == 2
