"""Forgetting: retention and compaction, in slices short enough that appends hardly notice them.

The pages that become free are used again by later appends; the file itself does not shrink.
"""

from __future__ import annotations

import sqlite3

from tidelog.log.cleaning import COMPACT_AFTER, TOMBSTONE_SECONDS
from tidelog.log.sqlite.file import OFFSET_BITS, Clock, milliseconds

CLEAN_SECONDS = 5.0
"""How often each process looks whether there is something to forget."""

_SLICE = 1_000

_EXPIRED_PARTITION = f"""
SELECT p.id, p.start_offset, p.next_offset, :now - t.retention_ms
FROM partitions p JOIN topics t ON t.id = p.topic_id
WHERE t.cleanup = 'delete' AND t.retention_ms IS NOT NULL AND p.start_offset < p.next_offset
  AND (SELECT appended_at FROM records
       WHERE position >= (p.id << {OFFSET_BITS}) + p.start_offset ORDER BY position LIMIT 1)
      < :now - t.retention_ms
LIMIT 1
"""  # noqa: S608 - a number of our own

_DIRTY_PARTITION = """
SELECT p.id, p.compacted_to, p.next_offset
FROM partitions p JOIN topics t ON t.id = p.topic_id
WHERE t.cleanup = 'compact' AND p.next_offset - p.compacted_to >= ?
LIMIT 1
"""

_FIRST_TO_KEEP = """
SELECT min(position) FROM records
WHERE position >= :first AND position < :last AND appended_at >= :oldest
"""

_DELETE_RANGE = "DELETE FROM records WHERE position >= ? AND position < ?"

# The compaction of one slice: first what its keys had before it, then all but the newest of each key in it.
_DELETE_FORMER = """
DELETE FROM records WHERE position IN (
    SELECT n.position FROM records r CROSS JOIN newest n ON n.partition_id = :partition AND n.key = r.key
    WHERE r.position >= :first AND r.position < :last
)
"""
_DELETE_SUPERSEDED = """
DELETE FROM records WHERE position >= :first AND position < :last AND position NOT IN (
    SELECT max(position) FROM records WHERE position >= :first AND position < :last GROUP BY key
)
"""
_REMEMBER = """
INSERT INTO newest (position, partition_id, key, tombstone_at)
SELECT position, :partition, key, CASE WHEN value IS NULL THEN appended_at END
FROM records WHERE position >= :first AND position < :last
ON CONFLICT (partition_id, key)
DO UPDATE SET position = excluded.position, tombstone_at = excluded.tombstone_at
"""

_OLD_TOMBSTONES = f"""
SELECT position FROM newest WHERE tombstone_at < ? ORDER BY tombstone_at, position LIMIT {_SLICE}
"""  # noqa: S608 - a number of our own
_DELETE_TOMBSTONES = f"DELETE FROM records WHERE position IN ({_OLD_TOMBSTONES})"  # noqa: S608 - constants
_FORGET_TOMBSTONES = f"DELETE FROM newest WHERE position IN ({_OLD_TOMBSTONES})"  # noqa: S608 - constants


class Cleaner:
    """Does one slice at a time, each in a transaction of the caller's; any process may, at any time."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def clean_when_due(self, connection: sqlite3.Connection) -> bool:
        """Do one slice, if enough has gathered. Returns whether there may be more to do."""
        return self._clean(connection, COMPACT_AFTER)

    def clean(self, connection: sqlite3.Connection) -> bool:
        """Do one slice, however little there is to gain. Returns whether there may be more to do."""
        return self._clean(connection, 1)

    def _clean(self, connection: sqlite3.Connection, compact_after: int) -> bool:
        now = milliseconds(self._clock())
        expired = connection.execute(_EXPIRED_PARTITION, {"now": now}).fetchone()
        if expired is not None:
            self._trim(connection, *expired)
        dirty = connection.execute(_DIRTY_PARTITION, (compact_after,)).fetchone()
        if dirty is not None:
            self._compact(connection, *dirty)
        oldest = now - milliseconds(TOMBSTONE_SECONDS)
        tombstones = connection.execute(_DELETE_TOMBSTONES, (oldest,)).rowcount
        if tombstones:
            connection.execute(_FORGET_TOMBSTONES, (oldest,))
        return expired is not None or dirty is not None or tombstones > 0

    @staticmethod
    def _trim(connection: sqlite3.Connection, partition: int, start: int, end: int, oldest: int) -> None:
        base = partition << OFFSET_BITS
        first, last = base + start, base + min(start + _SLICE, end)
        (kept,) = connection.execute(
            _FIRST_TO_KEEP, {"first": first, "last": last, "oldest": oldest}
        ).fetchone()
        until = last if kept is None else kept
        connection.execute(_DELETE_RANGE, (first, until))
        connection.execute("UPDATE partitions SET start_offset = ? WHERE id = ?", (until - base, partition))

    @staticmethod
    def _compact(connection: sqlite3.Connection, partition: int, start: int, end: int) -> None:
        base = partition << OFFSET_BITS
        until = min(start + _SLICE, end)
        slice_ = {"partition": partition, "first": base + start, "last": base + until}
        connection.execute(_DELETE_FORMER, slice_)
        connection.execute(_DELETE_SUPERSEDED, slice_)
        connection.execute(_REMEMBER, slice_)
        connection.execute("UPDATE partitions SET compacted_to = ? WHERE id = ?", (until, partition))
