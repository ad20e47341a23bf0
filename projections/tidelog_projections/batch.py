"""What the projector hands over: a stretch of one partition of the log, and how far it has come."""

from __future__ import annotations

from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass
from typing import Final

from tidelog_events.identity import NO_SEQUENCE, Partition, Sequence
from tidelog_events.transitions import Transition
from tidelog_projections.errors import WAYS_OUT, SequenceGap


@dataclass(frozen=True, slots=True)
class Happened:
    """An event, and where in the log it stands."""

    offset: int
    event: Transition


@dataclass(frozen=True, slots=True)
class Unread:
    """A record that changes no row.

    With a `reason` it is set aside in `projection_rejects`, with its bytes; without, it is an event of a type
    that this release does not know. `sequence` is the one it carries, if that could be read.
    """

    offset: int
    sequence: Sequence | None = None
    reason: str | None = None
    value: bytes | None = None


LogEntry = Happened | Unread


@dataclass(frozen=True, slots=True)
class Mark:
    """What tells a record of the log apart from one of another log: where it stands, and a digest of it."""

    offset: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one partition, in the order of the log.

    `next_offset` is where to read on after them (past gaps that are known of), `last` the last of them; None
    where there is none, or nobody will ask.
    """

    partition: Partition
    entries: SequenceOf[LogEntry]
    next_offset: int
    last: Mark | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """How far a partition has come.

    Attributes:
        sequence: of the last event taken in; -1 before the first.
        next_offset: where in the log to read on.
        unread: records without a readable sequence that followed that event. Each may have been an event, so
            that the next sequence may be as many higher.
        last: the newest record that was read, by which the log is known again. None before the first, and
            in what a release wrote that did not note it.
    """

    partition: Partition
    sequence: Sequence = NO_SEQUENCE
    next_offset: int = 0
    unread: int = 0
    last: Mark | None = None


@dataclass(frozen=True, slots=True)
class Advance:
    """What of a batch is new, and the position after it."""

    events: list[Transition]
    set_aside: list[Unread]
    position: Position


_ALARM: Final = f"Either the log lost events before they were read here, or this is another log. {WAYS_OUT}"


def advance(start: Position, batch: Batch) -> Advance:
    """Drop what the position has passed, and check that the rest follows on it without a hole.

    Raises:
        SequenceGap: an event is missing. Nothing is skipped silently.
    """
    sequence, unread = start.sequence, start.unread
    events: list[Transition] = []
    set_aside: list[Unread] = []
    for entry in batch.entries:
        if entry.offset < start.next_offset:
            continue
        if isinstance(entry, Unread):
            if entry.reason is not None:
                set_aside.append(entry)
            if entry.sequence == sequence + 1:
                sequence, unread = entry.sequence, 0
            else:
                unread += 1
            continue
        found = entry.event.sequence
        if found <= sequence:
            continue
        if found - sequence - 1 > unread:
            raise SequenceGap(
                f"partition {batch.partition} of the transitions: after sequence {sequence} comes {found} "
                f"(offset {entry.offset}). {_ALARM}"
            )
        sequence, unread = found, 0
        events.append(entry.event)
    next_offset = max(start.next_offset, batch.next_offset)
    is_new = batch.last is not None and batch.last.offset >= start.next_offset
    last = batch.last if is_new else start.last
    return Advance(events, set_aside, Position(batch.partition, sequence, next_offset, unread, last))
