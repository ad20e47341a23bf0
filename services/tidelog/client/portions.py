"""The commands of a call, and the portions in which they go to the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Iterator, Mapping
from typing import Final, Protocol

from tidelog.client.sender import MAX_BATCH_BYTES, MAX_BATCH_RECORDS
from tidelog.log.port import NewRecord
from tidelog_events.identity import CommandId

_FIRST_RECORDS: Final = 250
"""The first portion of a call is small, so that engines have something to decide meanwhile."""
_WRITTEN_AT_ONCE: Final = 50
"""Records, in a millisecond or so; then other tasks have their turn: sender, inbox, the caller's own."""


class Commands(Protocol):
    """The commands of one call. Each is written when it is sent: engines decide the first ones meanwhile."""

    @property
    def chosen(self) -> Collection[CommandId]:
        """The ids that another call may use as well, because a caller chose them."""

    def __iter__(self) -> Iterator[tuple[CommandId, NewRecord]]:
        """Write all of them, once, in the order in which they are to stand in the log."""

    def again(self, command_id: CommandId) -> NewRecord:
        """Write one of them a second time."""


class OneCommand:
    """A call of a single command."""

    def __init__(self, command_id: CommandId, record: NewRecord) -> None:
        self.chosen = (command_id,)
        self._record = record

    def __iter__(self) -> Iterator[tuple[CommandId, NewRecord]]:
        yield self.chosen[0], self._record

    def again(self, command_id: CommandId) -> NewRecord:
        """The record as it was."""
        if command_id not in self.chosen:
            raise KeyError(command_id)
        return self._record


async def portions(
    commands: Iterable[tuple[CommandId, NewRecord]],
) -> AsyncGenerator[Mapping[CommandId, NewRecord], None]:
    """Commands in portions that one append takes, each once it is written whole."""
    portion: dict[CommandId, NewRecord] = {}
    size, most = 0, _FIRST_RECORDS
    for command_id, record in commands:
        bytes_more = len(record.value or b"")
        if portion and (len(portion) >= most or size + bytes_more > MAX_BATCH_BYTES):
            yield portion
            portion, size, most = {}, 0, min(2 * most, MAX_BATCH_RECORDS)
        portion[command_id] = record
        size += bytes_more
        if len(portion) % _WRITTEN_AT_ONCE == 0:
            await asyncio.sleep(0)
    if portion:
        yield portion
