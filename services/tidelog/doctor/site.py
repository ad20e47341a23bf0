"""What the checks look at."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.clock import Clock, wall_clock
from tidelog.log.kafka.options import KafkaReplication
from tidelog.log.port import Log, TopicPartition
from tidelog.log.topics import Topics
from tidelog_projections.inspection import Inspection

LOOK_SECONDS = 10.0
"""The longest look at one thing in the log."""


@dataclass(frozen=True, slots=True)
class Site:
    """An installation that can be reached.

    Attributes:
        log: open.
        topics: their names.
        partitions: how many the setting asks for.
        replication: what the settings say of it; None for a log that keeps one copy.
        postgres: what was seen there; None when it could not be reached or was not asked for.
        clock: this host's.
    """

    log: Log
    topics: Topics
    partitions: int
    replication: KafkaReplication | None = None
    postgres: Inspection | None = None
    clock: Clock = wall_clock

    async def all_of(self, topic: str) -> list[TopicPartition]:
        """Every partition of a topic. Raises `UnknownTopic`."""
        return [TopicPartition(topic, partition) for partition in range(await self.log.partitions(topic))]
