"""The topics of an installation: their names, and how each is kept (contract section 2)."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.log.port import Cleanup, TopicSpec

DEFAULT_PREFIX = "tidelog"
DEFAULT_PARTITIONS = 12
_HOUR = 3_600.0
_WEEK = 7 * 24 * _HOUR


@dataclass(frozen=True, slots=True)
class Topics:
    """Names under a prefix, such as `tidelog.commands`."""

    prefix: str = DEFAULT_PREFIX

    @property
    def commands(self) -> str:
        """Requests to change something; key = queue name."""
        return f"{self.prefix}.commands"

    @property
    def transitions(self) -> str:
        """The log: what happened; key = job id, or the queue's name."""
        return f"{self.prefix}.transitions"

    @property
    def state(self) -> str:
        """The engine's changelog: the newest state of each live or retained entity."""
        return f"{self.prefix}.state"

    @property
    def replies(self) -> str:
        """Answers and grants; key = client id."""
        return f"{self.prefix}.replies"

    @property
    def links(self) -> str:
        """Messages between partitions, the engines' own."""
        return f"{self.prefix}.links"

    @property
    def rejects(self) -> str:
        """What was no command, with its original bytes."""
        return f"{self.prefix}.rejects"

    @property
    def observer_dead_letters(self) -> str:
        """Transitions that an observer gave up on."""
        return f"{self.prefix}.observer-dead-letters"

    @property
    def engine_group(self) -> str:
        """The consumer group that shares the partitions among the engines."""
        return f"{self.prefix}-engine"

    @property
    def projector_group(self) -> str:
        """The consumer group that shares the partitions among the projectors."""
        return f"{self.prefix}-projector"

    @property
    def observer_groups(self) -> str:
        """What the names of all observers' groups begin with."""
        return f"{self.prefix}-observer-"

    @property
    def redrive_groups(self) -> str:
        """What the names of the groups that redrive dead letters begin with."""
        return f"{self.prefix}-redrive-"

    def observer_group(self, observer_id: str) -> str:
        """The consumer group that shares the partitions of the log among the processes of an observer."""
        return f"{self.observer_groups}{observer_id}"

    def redrive_group(self, observer_id: str) -> str:
        """The group whose offset says up to where an observer's dead letters have been redriven."""
        return f"{self.redrive_groups}{observer_id}"

    def transactional_id(self, partition: int) -> str:
        """Under which the one engine of a partition writes."""
        return f"{self.prefix}-engine-{partition}"

    def client_transactional_id(self, client_id: str) -> str:
        """Under which a client appends what is to stand whole or not at all."""
        return f"{self.prefix}-{client_id}"

    def specs(
        self, partitions: int = DEFAULT_PARTITIONS, reply_partitions: int = DEFAULT_PARTITIONS
    ) -> list[TopicSpec]:
        """All topics as they are to be created; the first four share one partition count."""
        return [
            TopicSpec(self.commands, partitions, retention_seconds=_WEEK),
            TopicSpec(self.links, partitions, retention_seconds=_WEEK),
            TopicSpec(self.transitions, partitions),
            TopicSpec(self.state, partitions, cleanup=Cleanup.COMPACT),
            TopicSpec(self.replies, reply_partitions, retention_seconds=_HOUR),
            TopicSpec(self.rejects, 1, retention_seconds=4 * _WEEK),
            TopicSpec(self.observer_dead_letters, 1),
        ]
