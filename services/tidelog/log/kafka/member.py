"""Membership in a consumer group, for the share of the partitions and for committed offsets alone."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping

import aiokafka
from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import OffsetMetadataTooLargeError

from tidelog.log.kafka.connection import Connection, stop
from tidelog.log.port import MAX_NOTE_BYTES, NO_NOTES
from tidelog.log.process_name import process_name
from tidelog.log.signalled import SignalledMember
from tidelog_events.bounds import cut_text

_SESSION_TIMEOUT_MS = 6_000
"""After which the group goes on without a member that has died: the least that brokers allow by default."""
_HEARTBEAT_MS = 500
"""How often a member hears whether the group is sharing anew."""
_REBALANCE_TIMEOUT_MS = 10_000
_FOR_EVER_MS = 2**31 - 1
_METADATA_MS = 2_000
"""How old the leader's knowledge of the topic may be. A broker that has just started does not know its topics
for a moment; a leader that asks it then gives nobody anything, and looks again only after that time."""


class KafkaMember(SignalledMember):
    """A consumer that fetches nothing: it is told its share, and commits.

    While the group rebalances, the old share is kept: a share is a hint, and to stop work for the length of
    every rebalance would cost more than two members that believe in the same partition for a moment.
    """

    def __init__(self, connection: Connection, client: AIOKafkaConsumer, group: str, topic: str) -> None:
        super().__init__()
        self._connection = connection
        self._client = client
        self._group = group
        self._topic = topic
        self._assigned: frozenset[int] | None = None
        self.closed = False

    @classmethod
    async def join(cls, connection: Connection, group: str, topic: str) -> KafkaMember:
        """Connect; the share comes later. Raises `LogUnavailable`."""
        client = AIOKafkaConsumer(
            **connection.options(),
            group_id=group,
            client_id=f"tidelog-{process_name()}",  # member ids begin with it
            # Of aiokafka's assignors the one that gives the same share to the same members, whoever leads.
            partition_assignment_strategy=[RangePartitionAssignor],
            session_timeout_ms=_SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=_HEARTBEAT_MS,
            rebalance_timeout_ms=_REBALANCE_TIMEOUT_MS,
            metadata_max_age_ms=_METADATA_MS,
            max_poll_interval_ms=_FOR_EVER_MS,  # it never polls
            enable_auto_commit=False,
            auto_offset_reset="latest",
            max_partition_fetch_bytes=1,  # for the moment between an assignment and its pause
        )
        await connection.start(client, f"the group {group!r} was joined")
        member = cls(connection, client, group, topic)
        client.subscribe([topic], listener=_Listener(member))
        return member

    async def changed(self, *, timeout: float) -> bool:
        self._refuse_closed()
        self._raise_what_the_group_said()
        return await super().changed(timeout=timeout)

    async def committed(self, partition: int) -> int | None:
        self._refuse_closed()
        async with self._connection.asking(f"the offset of the group {self._group!r} was read"):
            offset: int | None = await self._client.committed(self._tp(partition))
        return offset

    async def commit(
        self, offsets: Mapping[int, int], *, timeout: float, notes: Mapping[int, str] = NO_NOTES
    ) -> None:
        self._refuse_closed()
        assigned = {partition.partition for partition in self._client.assignment()}
        mine = {
            self._tp(partition): (offset, cut_text(notes.get(partition, ""), MAX_NOTE_BYTES))
            for partition, offset in offsets.items()
            if partition in assigned
        }
        if not mine:
            return
        with self._connection.explaining(f"the group {self._group!r} committed offsets"):
            async with asyncio.timeout(timeout):
                try:
                    await self._client.commit(mine)
                except OffsetMetadataTooLargeError:  # brokers may be set to take less; the offset counts
                    await self._client.commit({tp: (offset, "") for tp, (offset, _) in mine.items()})

    async def close(self) -> None:
        if not self.closed:
            self.closed = True
            await stop(self._client)

    def take(self, assigned: Collection[aiokafka.TopicPartition]) -> None:
        """What the group gives to this member from now on. The listener calls it."""
        self._client.pause(*assigned)
        self._assigned = frozenset(tp.partition for tp in assigned)
        self._refresh()
        self._signal.set()

    def _share(self) -> frozenset[int]:
        return self._assigned or frozenset()

    def _refresh(self) -> None:
        if self._assigned is not None:  # before the first share there is nothing to tell
            super()._refresh()

    def _raise_what_the_group_said(self) -> None:
        """A refused or failed membership: aiokafka keeps it for a poll, and this consumer never polls."""
        with self._connection.explaining(f"the group {self._group!r} was joined"):
            self._client._coordinator.check_errors()  # noqa: SLF001 - only a poll would do the same

    def _refuse_closed(self) -> None:
        if self.closed:
            raise self._connection.closed()

    def _tp(self, partition: int) -> aiokafka.TopicPartition:
        return aiokafka.TopicPartition(self._topic, partition)


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc] # aiokafka ships no types
    """Tells the member, no more: aiokafka swallows what a listener raises, and waits while it runs."""

    def __init__(self, member: KafkaMember) -> None:
        self._member = member

    def on_partitions_revoked(self, revoked: Collection[aiokafka.TopicPartition]) -> None:
        """Nothing: see `KafkaMember`."""

    def on_partitions_assigned(self, assigned: Collection[aiokafka.TopicPartition]) -> None:
        self._member.take(assigned)
