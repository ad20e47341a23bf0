"""Why a projector does not begin with a partition: the log and the rows in Postgres do not fit together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tidelog.words import listed
from tidelog_events.errors import TidelogError
from tidelog_projections.errors import WAYS_OUT

if TYPE_CHECKING:
    from tidelog.inspection.origin import Difference
    from tidelog.log.port import TopicPartition


class PositionNotInLog(TidelogError):
    """The log does not hold the record that must be read next: trimmed too early, or another log."""


class AnotherLog(TidelogError):
    """The log does not hold the record that was read last: the rows in Postgres come from another one."""


def out_of_log(source: TopicPartition, offset: int, start: int, end: int) -> PositionNotInLog:
    """The log begins after the position, or ends before it."""
    return PositionNotInLog(
        f"the projection is to go on at offset {offset} of {source.topic}[{source.partition}], and the log "
        f"holds {start} to {end}: it lost what was not read yet, or it is another log. {WAYS_OUT}"
    )


def another_log(source: TopicPartition, offset: int, difference: Difference) -> AnotherLog:
    """The log goes on where the position is, but the record before it is not the one that was read."""
    return AnotherLog(
        f"at offset {offset}, {source.topic}[{source.partition}] holds {difference.value}: the rows in "
        f"Postgres come from another log than this one. {WAYS_OUT}"
    )


def not_begun(sources: Sequence[TopicPartition]) -> AnotherLog:
    """Nothing was noted of these partitions, and nothing that was read of the others is in the log."""
    return AnotherLog(
        f"{listed([source.partition for source in sources])} of {sources[0].topic}: nothing was noted that "
        "tells whether they fit the rows, and those of the other partitions come from another log than this "
        f"one. {WAYS_OUT}"
    )
