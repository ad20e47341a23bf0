"""Reading: the records of a partition in two statements, however many they are.

As with appending, each row that Python's sqlite3 steps to can cost 5 ms beside a thread that burns CPU (4.4 s
for 1,000 rows; so it is 13 ms). Therefore SQLite hands over all rows as one: their lengths in lists, and all
their bytes in one piece.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from itertools import accumulate

from tidelog.log.port import LogUnavailable, Record, TopicPartition
from tidelog.log.signalled import SignalledReader, out_of_range
from tidelog.log.sqlite.append import decode_headers
from tidelog.log.sqlite.file import OFFSET_BITS, milliseconds
from tidelog.log.sqlite.session import Session

MAX_READ_BYTES = 4 * 1024 * 1024
"""One read takes about so much at most (but one record in any case): it runs on the event loop."""

_BOUNDS = """
SELECT json_group_object(id, json_array(start_offset, next_offset))
FROM partitions WHERE id IN (SELECT value FROM json_each(?))
"""

_LENGTHS = """
SELECT json_group_array(position), json_group_array(length(key)),
       json_group_array(length(value)), json_group_array(length(headers))
FROM (SELECT position, key, value, headers FROM records
      WHERE position >= ? AND position < ? ORDER BY position LIMIT ?)
"""

# A cast between BLOB and TEXT changes no byte in a database that is UTF-8.
_BYTES = """
SELECT CAST(group_concat(coalesce(key, '') || coalesce(value, '') || coalesce(headers, ''), '') AS BLOB)
FROM (SELECT key, value, headers FROM records
      WHERE position >= ? AND position <= ? ORDER BY position)
"""

_NEXT = (
    "SELECT position, appended_at FROM records WHERE position >= ? AND position < ? ORDER BY position LIMIT 1"
)

Bounds = Mapping[int, tuple[int, int]]
"""By partition id: start and end offset."""


def bounds_of(connection: sqlite3.Connection, partition_ids: list[int]) -> Bounds:
    """The start and end offsets of the partitions."""
    (text,) = connection.execute(_BOUNDS, (json.dumps(partition_ids),)).fetchone()
    return {int(key): (start, end) for key, (start, end) in json.loads(text).items()}


def offset_at(connection: sqlite3.Connection, partition_id: int, at: float) -> int:
    """The offset of the first record that was appended then (seconds since 1970) or later, else the end.

    By halves, as appends are in the order of time but where a clock was set back: to look at each of a
    million records would block the loop.
    """
    low, high = bounds_of(connection, [partition_id])[partition_id]
    base, oldest = partition_id << OFFSET_BITS, milliseconds(at)
    while low < high:
        middle = (low + high) // 2
        found = connection.execute(_NEXT, (base + middle, base + high)).fetchone()
        if found is None or found[1] >= oldest:
            high = middle
        else:
            low = found[0] - base + 1
    return low


def records_of(
    connection: sqlite3.Connection,
    partition_id: int,
    tp: TopicPartition,
    span: tuple[int, int],
    max_records: int,
    max_bytes: int,
) -> tuple[list[Record], int, int]:
    """Read records with offsets in `span` (start, end), within a transaction of the caller's.

    Returns them with the next offset to read and the bytes that they hold. One is read, however large it is.
    """
    base = partition_id << OFFSET_BITS
    start, end = span
    columns = connection.execute(_LENGTHS, (base + start, base + end, max_records)).fetchone()
    positions, keys, values, headers = map(json.loads, columns)
    if not positions:
        return [], end, 0
    sizes = [(k or 0) + (v or 0) + (h or 0) for k, v, h in zip(keys, values, headers, strict=True)]
    taken = max(1, sum(total <= max_bytes for total in accumulate(sizes)))
    (blob,) = connection.execute(_BYTES, (positions[0], positions[taken - 1])).fetchone()
    data = blob or b""
    topic, partition = tp
    records: list[Record] = []
    at = 0
    for index in range(taken):
        key = value = stored = None
        if (length := keys[index]) is not None:
            key = data[at : (at := at + length)]
        if (length := values[index]) is not None:
            value = data[at : (at := at + length)]
        if (length := headers[index]) is not None:
            stored = data[at : (at := at + length)]
        records.append(
            Record(
                topic,
                partition,
                positions[index] - base,
                key,
                value,
                decode_headers(stored) if stored else (),
            )
        )
    exhausted = taken == len(positions) < max_records
    return records, end if exhausted else records[-1].offset + 1, at


class SqliteReader(SignalledReader):
    """Reads partitions on the event loop, from one snapshot of the file each time."""

    def __init__(self, session: Session, offsets: Mapping[TopicPartition, int]) -> None:
        super().__init__(offsets)
        self._session = session
        self._ids = {tp: session.topics[tp.topic].partition_id(tp.partition) for tp in offsets}
        self._closed = False
        session.watch.add(self._ids.values(), self._signal.set)

    def _take(self, max_records: int) -> list[Record]:
        if self._closed:
            raise LogUnavailable("This reader is closed; open another one.")
        return self._session.snapshot(lambda connection: self._take_from(connection, max_records))

    def _take_from(self, connection: sqlite3.Connection, max_records: int) -> list[Record]:
        bounds = bounds_of(connection, list(self._ids.values()))
        for tp, offset in self._positions.items():
            start, end = bounds[self._ids[tp]]
            if not start <= offset <= end:
                raise out_of_range(tp, offset, start, end)
        taken: list[Record] = []
        moved: dict[TopicPartition, int] = {}
        room = MAX_READ_BYTES
        for tp, offset in self._positions.items():
            _, end = bounds[self._ids[tp]]
            if offset < end and len(taken) < max_records and room > 0:
                records, moved[tp], size = records_of(
                    connection, self._ids[tp], tp, (offset, end), max_records - len(taken), room
                )
                taken += records
                room -= size
        # All at once, and after the last error: a record that was not handed out is not passed either.
        self._positions.update(moved)
        if taken:
            self._ask_last(TopicPartition(taken[-1].topic, taken[-1].partition))
        return taken

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._session.watch.remove(self._ids.values(), self._signal.set)
