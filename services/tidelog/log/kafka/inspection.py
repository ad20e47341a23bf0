"""Cluster, topics and groups as the brokers describe them, for people who look after an installation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeVar

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import for_code

from tidelog.log.kafka.batches import MAX_MESSAGE_BYTES
from tidelog.log.kafka.connection import Connection
from tidelog.log.kafka.metadata import DescribedPartition, describe_topics
from tidelog.log.kafka.release import releases
from tidelog.log.port import (
    GroupDescription,
    GroupMember,
    LogDescription,
    ReplicaState,
    TopicDescription,
    TopicPartition,
)
from tidelog.together import together

_NO_ERROR: Final = 0
_UNKNOWN_TOPIC: Final = frozenset({3, 17})
_CLEANUP, _RETENTION = "cleanup.policy", "retention.ms"
_MIN_INSYNC, _MAX_BYTES = "min.insync.replicas", "max.message.bytes"
_CONFIGS: Final = (_CLEANUP, _RETENTION, _MIN_INSYNC, _MAX_BYTES)
_CONSUMERS: Final = "consumer"
_SETTLED: Final = frozenset({"Stable", "Empty"})
"""Dead is none: of a group that is listed it means that its members use Kafka 4's own protocol of groups, of
which this client cannot tell anything but the committed offsets."""

_T = TypeVar("_T")


class KafkaInspection:
    """Looks at a cluster, each look within `CONNECT_SECONDS`. Its methods are those of `Log`."""

    def __init__(self, connection: Connection, admin: AIOKafkaAdminClient) -> None:
        self._connection = connection
        self._admin = admin

    async def describe(self) -> LogDescription:
        """How many brokers there are, and of which releases."""

        async def ask() -> LogDescription:
            cluster = await self._admin.describe_cluster()
            brokers = [broker["node_id"] for broker in cluster["brokers"]]
            found = await releases(self._admin._client, brokers)  # noqa: SLF001 - it has no question of its own
            return LogDescription(
                "kafka",
                version=", ".join(release.name for release in found) or None,
                brokers=len(brokers),
                is_supported=all(release.is_supported for release in found),
            )

        return await self._ask("the brokers were counted", ask)

    async def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        """Partitions and copies from the metadata, the rest from the topics' settings."""

        async def ask() -> dict[str, TopicDescription]:
            partitions: dict[str, Sequence[DescribedPartition]] = {}
            for topic in await describe_topics(self._admin, names):
                if topic["error_code"] not in _UNKNOWN_TOPIC:
                    # Any other error shows in the partitions: they have no leader.
                    partitions[topic["topic"]] = topic["partitions"]
            configs = await self._configs(list(partitions))
            return {name: _description(name, parts, configs[name]) for name, parts in partitions.items()}

        return await self._ask(f"the topics {', '.join(names)} were looked at", ask)

    async def groups(self, prefix: str) -> list[GroupDescription]:
        """The groups of consumers, with members, shares and committed offsets."""

        async def ask() -> list[GroupDescription]:
            listed = await self._admin.list_consumer_groups()
            names = sorted(
                name for name, kind, *_ in listed if name.startswith(prefix) and kind == _CONSUMERS
            )
            return await together(self._group(name) for name in names)

        return await self._ask(f"the groups {prefix}… were looked at", ask)

    async def _configs(self, names: Sequence[str]) -> dict[str, Mapping[str, str]]:
        if not names:
            return {}
        wanted = dict.fromkeys(_CONFIGS)
        resources = [ConfigResource(ConfigResourceType.TOPIC, name, wanted) for name in names]
        found: dict[str, Mapping[str, str]] = {}
        for answer in await self._admin.describe_configs(resources):
            for code, message, _type, name, entries in answer.resources:
                if code != _NO_ERROR:
                    raise for_code(code)(message)
                found[name] = {entry[0]: entry[1] for entry in entries}
        return found

    async def _group(self, name: str) -> GroupDescription:
        coordinator = await self._admin.find_coordinator(name)
        answers = await self._admin.describe_consumer_groups([name], coordinator)
        offsets = await self._admin.list_consumer_group_offsets(name, coordinator)
        ((code, _name, state, _kind, _protocol, members, *_),) = answers[0].groups
        if code != _NO_ERROR:
            raise for_code(code)(name)
        committed = {TopicPartition(*tp): found.offset for tp, found in offsets.items() if found.offset >= 0}
        notes = {
            TopicPartition(*tp): found.metadata
            for tp, found in offsets.items()
            if found.offset >= 0 and found.metadata
        }
        return GroupDescription(name, state in _SETTLED, tuple(map(_member, members)), committed, notes)

    async def _ask(self, doing: str, question: Callable[[], Awaitable[_T]]) -> _T:
        async with self._connection.asking(doing):
            return await question()


def _member(described: tuple[str, str, str, bytes, bytes]) -> GroupMember:
    member_id, _client_id, host, _metadata, assignment = described
    # Nothing yet while the group shares out anew.
    shares = ConsumerProtocolMemberAssignment.decode(assignment).partitions() if assignment else []
    return GroupMember(member_id, host.lstrip("/"), frozenset(TopicPartition(*tp) for tp in shares))


def _description(
    name: str, partitions: Sequence[DescribedPartition], configs: Mapping[str, str]
) -> TopicDescription:
    retention_ms = int(configs[_RETENTION])
    min_insync = int(configs[_MIN_INSYNC])

    def those(condition: Callable[[DescribedPartition], bool]) -> tuple[int, ...]:
        return tuple(sorted(part["partition"] for part in partitions if condition(part)))

    return TopicDescription(
        name,
        len(partitions),
        configs[_CLEANUP],
        None if retention_ms < 0 else retention_ms / 1_000,
        ReplicaState(
            factor=min((len(part["replicas"]) for part in partitions), default=0),
            min_insync=min_insync,
            leaderless=those(lambda part: part["leader"] < 0),
            below_min_insync=those(lambda part: len(part["isr"]) < min_insync),
            missing_copies=those(lambda part: len(part["isr"]) < len(part["replicas"])),
            takes_largest=int(configs[_MAX_BYTES]) >= MAX_MESSAGE_BYTES,
        ),
    )
