"""Taking records in, whatever they hold: one that no column can hold is set aside, and the rest goes on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from tidelog.inspection.origin import mark_of
from tidelog.projector.decoding import set_aside
from tidelog_events.identity import Partition
from tidelog_projections.batch import Batch, LogEntry, Position, Unread
from tidelog_projections.errors import Unstorable

if TYPE_CHECKING:
    from tidelog.log.port import Record

Apply: TypeAlias = Callable[[Batch], Awaitable[Position]]


@dataclass(frozen=True, slots=True)
class TakenIn:
    """The position after some records, and those of them that were set aside."""

    position: Position
    rejected: tuple[Unread, ...]


async def take_in(
    apply: Apply, partition: Partition, records: list[Record], entries: list[LogEntry], next_offset: int
) -> TakenIn:
    """Apply the entries; if one among them fits no column, find it by halves and set it aside.

    Args:
        apply: takes a batch in, or none of it.
        records: those that the entries were read from, one for one.
        next_offset: where in the log to read on after them.
    """
    last = mark_of(records[-1]) if records else None
    try:
        position = await apply(Batch(partition, entries, next_offset, last))
    except Unstorable as error:
        if len(entries) > 1:
            middle = len(entries) // 2
            first = await take_in(
                apply, partition, records[:middle], entries[:middle], records[middle].offset
            )
            second = await take_in(apply, partition, records[middle:], entries[middle:], next_offset)
            return TakenIn(second.position, first.rejected + second.rejected)
        entries = [set_aside(records[0], str(error))]
        position = await apply(Batch(partition, entries, next_offset, last))
    rejected = tuple(entry for entry in entries if isinstance(entry, Unread) and entry.reason is not None)
    return TakenIn(position, rejected)
