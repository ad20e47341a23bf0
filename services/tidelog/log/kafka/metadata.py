"""What the brokers say of topics, asked in a way that makes none.

Every question of aiokafka about a topic allows brokers to make it, and by default they do
(`auto.create.topics.enable`): with one partition, whose records go after a week. So a role that waits for its
topics, or a look at them, would make them otherwise than they have to be.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextvars import ContextVar
from typing import TypedDict

import aiokafka.client
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.client import AIOKafkaClient
from aiokafka.cluster import ClusterMetadata
from aiokafka.protocol.metadata import MetadataRequest


class DescribedPartition(TypedDict):
    """A partition in a broker's answer; a negative leader is none."""

    error_code: int
    partition: int
    leader: int
    replicas: Sequence[int]
    isr: Sequence[int]


class DescribedTopic(TypedDict):
    """A topic in a broker's answer; the code says whether it exists."""

    error_code: int
    topic: str
    partitions: Sequence[DescribedPartition]


async def describe_topics(admin: AIOKafkaAdminClient, names: Sequence[str]) -> list[DescribedTopic]:
    """The topics of these names, those that do not exist with an error. Raises `KafkaError`."""
    question = MetadataRequest(list(names), allow_auto_topic_creation=False)
    answer = await admin._send_request(question)  # noqa: SLF001 - its own method has no such option
    topics: list[DescribedTopic] = answer.to_object()["topics"]
    return topics


_only_asking: ContextVar[bool] = ContextVar("_only_asking", default=False)


class _Question(MetadataRequest):  # type: ignore[misc] # aiokafka ships no types
    """In place of aiokafka's; the same for the clients of others in this process."""

    def __init__(
        self, topics: list[str] | None = None, allow_auto_topic_creation: bool | None = None
    ) -> None:
        super().__init__(topics, False if _only_asking.get() else allow_auto_topic_creation)


aiokafka.client.MetadataRequest = _Question


def ask_without_making(client: AIOKafkaClient) -> None:
    """Let a client, whatever it is for, make no topic by asking about it."""
    update = client._metadata_update  # noqa: SLF001 - all its questions lead through here

    async def update_only(metadata: ClusterMetadata, topics: Collection[str] | None) -> bool:
        token = _only_asking.set(True)
        try:
            updated: bool = await update(metadata, topics)
        finally:
            _only_asking.reset(token)
        return updated

    client._metadata_update = update_only  # noqa: SLF001
