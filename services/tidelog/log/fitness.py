"""Whether topics are as they should be: the one comparison that `tidelog init` and `tidelog doctor` share."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from tidelog.log.port import Cleanup, TopicDescription, TopicSpec


class Setting(Enum):
    """What may differ, in Kafka's words."""

    PARTITIONS = "partitions"
    CLEANUP = "cleanup.policy"
    RETENTION = "retention.ms"
    REPLICATION = "replication factor"
    MIN_INSYNC = "min.insync.replicas"


FIXED = frozenset({Setting.PARTITIONS, Setting.CLEANUP})
"""Without these being right Tidelog would lose or misplace records."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A setting of a topic that is not as it should be."""

    topic: str
    setting: Setting
    found: str
    wanted: str

    def __str__(self) -> str:
        return f"{self.topic}: {self.setting.value} is {self.found}, not {self.wanted}"


def differences(
    spec: TopicSpec, found: TopicDescription, replication: tuple[int, int] | None
) -> Iterator[Difference]:
    """What of a topic is not as it should be. To keep more, for longer or more safely, is never wrong.

    Args:
        spec: as it should be.
        found: as it is.
        replication: the fewest copies, and the fewest of them in sync, that are asked for; None: whatever.
    """

    def differs(setting: Setting, is_: object, wanted: object) -> Difference:
        return Difference(spec.name, setting, str(is_), str(wanted))

    if found.partitions != spec.partitions:
        yield differs(Setting.PARTITIONS, found.partitions, spec.partitions)
    if found.cleanup != spec.cleanup.value:
        yield differs(Setting.CLEANUP, found.cleanup, spec.cleanup.value)
    elif _keeps_less(found.retention_seconds, spec):
        yield differs(
            Setting.RETENTION, _milliseconds(found.retention_seconds), _milliseconds(spec.retention_seconds)
        )
    if found.replicas is not None and replication is not None:
        factor, min_insync = replication
        if found.replicas.factor < factor:
            yield differs(Setting.REPLICATION, found.replicas.factor, factor)
        if found.replicas.min_insync < min_insync:
            yield differs(Setting.MIN_INSYNC, found.replicas.min_insync, min_insync)


def _keeps_less(retention_seconds: float | None, spec: TopicSpec) -> bool:
    if spec.cleanup is not Cleanup.DELETE or retention_seconds is None:
        return False
    return spec.retention_seconds is None or retention_seconds < spec.retention_seconds


def _milliseconds(seconds: float | None) -> int:
    return -1 if seconds is None else round(seconds * 1_000)
