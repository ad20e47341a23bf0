"""Topics: what exists, with how many partitions, and how each is kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Final, TypeVar

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import (
    InvalidReplicationFactorError,
    KafkaError,
    LeaderNotAvailableError,
    TopicAlreadyExistsError,
    for_code,
)

from tidelog.log.checks import keyless, mismatch, refuse_malformed, unknown_partition, unknown_topic
from tidelog.log.kafka.batches import MAX_MESSAGE_BYTES
from tidelog.log.kafka.connection import CONNECT_SECONDS, Connection
from tidelog.log.kafka.metadata import describe_topics
from tidelog.log.kafka.options import KafkaReplication
from tidelog.log.port import Cleanup, LogError, NewRecord, TopicPartition, TopicSpec

_RETRY_SECONDS = 0.05
_COMPACT_SEGMENT_BYTES = 64 * 1024 * 1024
_SHORTEST_SEGMENT_MS = 60_000
_FENCED = "currently fenced"
"""What the controller says of brokers that it has lost and that are on their way back: they cannot hold a
topic in this moment. It has no code of its own for that."""
_NO_ERROR, _UNKNOWN_TOPIC, _INVALID_TOPIC, _LEADER_NOT_AVAILABLE = 0, 3, 17, 5
_POLICY: Final = "cleanup.policy"

_T = TypeVar("_T")


class KafkaTopics:
    """The topics of a cluster, by an admin client. What is fixed at a topic's creation is asked for once."""

    def __init__(
        self, connection: Connection, admin: AIOKafkaAdminClient, replication: KafkaReplication
    ) -> None:
        self._connection = connection
        self._admin = admin
        self._replication = replication
        self._counts: dict[str, int] = {}
        self._policies: dict[str, str] = {}

    async def partitions(self, topic: str) -> int:
        """How many partitions the topic has now. Raises `UnknownTopic`."""
        found = await self._describe([topic])
        if topic not in found:
            self._counts.pop(topic, None)
            raise unknown_topic(topic)
        self._counts[topic] = found[topic]
        return found[topic]

    async def check_partitions(self, tps: Collection[TopicPartition]) -> None:
        """Raise `UnknownTopic` for a partition that does not exist."""
        for tp in tps:
            count = self._counts.get(tp.topic)
            if count is None:
                count = await self.partitions(tp.topic)
            if not 0 <= tp.partition < count:
                raise unknown_partition(tp.topic, tp.partition, count)

    async def check_records(self, records: Sequence[NewRecord]) -> None:
        """Raise `UnknownTopic` or `InvalidRecord` for a record that cannot stand where it is to go."""
        touched = {record[:2] for record in records}
        await self.check_partitions([TopicPartition(*tp) for tp in touched])
        for topic in {record.topic for record in records if record.key is None}:
            if topic not in self._policies:
                self._policies.update(await self._read_policies([topic]))
            if Cleanup.COMPACT.value in self._policies[topic]:
                raise keyless(topic)

    def forget(self, records: Sequence[NewRecord]) -> None:
        """Ask anew about the topics of records that could not be appended: they may have been deleted."""
        for topic in {record.topic for record in records}:
            self._counts.pop(topic, None)
            self._policies.pop(topic, None)

    async def create(self, specs: Sequence[TopicSpec]) -> list[str]:
        """Create the missing topics, and return their names. Raises `TopicMismatch`, `LogError`."""
        refuse_malformed(specs)
        by_name = {spec.name: spec for spec in specs}
        missing = await self._refuse_mismatch(by_name)
        if not missing:
            return []
        created = await self._create([by_name[name] for name in missing])
        # Another process may have been faster, with other ideas.
        await self._refuse_mismatch(by_name)
        return created

    async def _refuse_mismatch(self, by_name: Mapping[str, TopicSpec]) -> list[str]:
        """Raise for the first topic that differs; returns the names of those that do not exist."""
        counts = await self._describe(list(by_name))
        policies = await self._read_policies(list(counts)) if counts else {}
        for name, count in counts.items():
            spec = by_name[name]
            if (count, policies[name]) != (spec.partitions, spec.cleanup.value):
                raise mismatch(spec, count, policies[name])
        return [name for name in by_name if name not in counts]

    async def _create(self, specs: Sequence[TopicSpec]) -> list[str]:
        brokers = await self._ask("the brokers were counted", self._count_brokers)
        factor, min_insync = self._replication.for_brokers(brokers)
        new = [
            NewTopic(
                spec.name, spec.partitions, factor, topic_configs=_configuration(spec) | _safety(min_insync)
            )
            for spec in specs
        ]
        created: list[str] = []

        async def create() -> None:
            answer = await self._admin.create_topics(new)
            for name, code, message in answer.topic_errors:
                if code == _NO_ERROR:
                    created.append(name)
                elif code == InvalidReplicationFactorError.errno and _FENCED in (message or ""):
                    raise LeaderNotAvailableError(message)
                elif code != TopicAlreadyExistsError.errno:
                    raise LogError(
                        f"{self._connection.address} refused to create the topic {name!r}:"
                        f" {message or for_code(code).__name__}."
                    )

        await self._ask("topics were created", create)
        return created

    async def _count_brokers(self) -> int:
        brokers = (await self._admin.describe_cluster())["brokers"]
        if not brokers:  # the one that answers is not back in the cluster yet
            raise LeaderNotAvailableError("the cluster has no broker")
        return len(brokers)

    async def _describe(self, names: Sequence[str]) -> dict[str, int]:
        """The partition counts of those that exist, and whose partitions all have a leader."""

        async def describe() -> dict[str, int]:
            found: dict[str, int] = {}
            for topic in await describe_topics(self._admin, names):
                codes = {topic["error_code"], *(p["error_code"] for p in topic["partitions"])}
                if codes & {_UNKNOWN_TOPIC, _INVALID_TOPIC}:
                    continue
                for code in codes - {_NO_ERROR}:
                    raise for_code(code)(topic["topic"])
                found[topic["topic"]] = len(topic["partitions"])
            return found

        return await self._ask(f"the topics {', '.join(names)} were looked up", describe)

    async def _read_policies(self, names: Sequence[str]) -> dict[str, str]:
        """The cleanup policy of each topic, which must exist."""
        resources = [ConfigResource(ConfigResourceType.TOPIC, name, {_POLICY: None}) for name in names]

        async def describe() -> dict[str, str]:
            policies: dict[str, str] = {}
            for answer in await self._admin.describe_configs(resources):
                for code, message, _type, name, entries in answer.resources:
                    if code != _NO_ERROR:
                        raise for_code(code)(message)
                    policies[name] = next(entry[1] for entry in entries if entry[0] == _POLICY)
            return policies

        return await self._ask(f"the settings of {', '.join(names)} were read", describe)

    async def _ask(self, doing: str, request: Callable[[], Awaitable[_T]]) -> _T:
        """Ask one broker after the other, until there is an answer or the time is up (`LogUnavailable`)."""
        last: KafkaError | None = None
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                while True:
                    try:
                        return await request()
                    except KafkaError as error:
                        if not error.retriable:
                            raise self._connection.unavailable(doing, error) from error
                        last = error
                    await asyncio.sleep(_RETRY_SECONDS)
        except TimeoutError:
            raise self._connection.unavailable(doing, last) from last


def _configuration(spec: TopicSpec) -> dict[str, str]:
    """How a topic is kept."""
    configuration = {_POLICY: spec.cleanup.value, "max.message.bytes": str(MAX_MESSAGE_BYTES)}
    if spec.cleanup is Cleanup.COMPACT:
        # The segment that is being written is never compacted, and a takeover reads all of it: the brokers'
        # default of 1 GiB would be far too much.
        configuration["segment.bytes"] = str(_COMPACT_SEGMENT_BYTES)
        return configuration
    retention_ms = -1 if spec.retention_seconds is None else int(spec.retention_seconds * 1_000)
    configuration["retention.ms"] = str(retention_ms)
    if retention_ms > 0:
        # Retention takes whole segments, once their newest record is old enough.
        configuration["segment.ms"] = str(max(retention_ms // 4, _SHORTEST_SEGMENT_MS))
    return configuration


def _safety(min_insync: int) -> dict[str, str]:
    return {"min.insync.replicas": str(min_insync)}
