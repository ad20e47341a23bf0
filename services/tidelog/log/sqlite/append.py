"""Appending: records to rows in few statements, the producer, and the writer behind its fence.

Python's sqlite3 gives up the interpreter lock at each statement and each row, and a thread that burns CPU
keeps it for 5 ms each time: 1,000 rows took 4.7 s that way. So the rows of a batch go in by the hundred.
"""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from functools import cache

from tidelog.log.checks import keyless, refuse_oversized
from tidelog.log.port import (
    Cleanup,
    Fenced,
    LogError,
    LogUnavailable,
    NewRecord,
    OutcomeUnknown,
    Producer,
    Writer,
)
from tidelog.log.sqlite.file import OFFSET_BITS, milliseconds
from tidelog.log.sqlite.session import Session
from tidelog.log.sqlite.topics import Topics

Batch = dict[int, list[bytes | None]]
"""By partition id: key, value and headers of each record, one after the other."""

_COLUMNS = 3
_ROWS_PER_STATEMENT = (256, 32, 4, 1)


def batch_of(records: Sequence[NewRecord], topics: Topics) -> Batch:
    """Check the records and sort them by partition, in order.

    Raises:
        RecordTooLarge, InvalidRecord, UnknownTopic: for one of them; nothing was appended.
    """
    refuse_oversized(records)
    by_name: dict[tuple[str, int], list[bytes | None]] = {}
    for record in records:
        target = (record.topic, record.partition)
        columns = by_name.get(target)
        if columns is None:
            columns = by_name[target] = []
        columns += (record.key, record.value, encode_headers(record.headers) if record.headers else None)
    batch: Batch = {}
    for (name, partition), columns in by_name.items():
        topic = topics[name]
        if topic.cleanup is Cleanup.COMPACT and None in columns[::_COLUMNS]:
            raise keyless(name)
        batch[topic.partition_id(partition)] = columns
    return batch


def insert(connection: sqlite3.Connection, batch: Batch, now: float) -> dict[int, int]:
    """Append a batch, within a transaction of the caller's; returns the first new offset by partition."""
    appended_at = milliseconds(now)
    first: dict[int, int] = {}
    for partition_id, columns in batch.items():
        count = len(columns) // _COLUMNS
        (end,) = connection.execute(
            "UPDATE partitions SET next_offset = next_offset + ? WHERE id = ? RETURNING next_offset",
            (count, partition_id),
        ).fetchone()
        first[partition_id] = end - count
        position = (partition_id << OFFSET_BITS) + end - count
        done = 0
        for rows in _ROWS_PER_STATEMENT:
            while count - done >= rows:
                chunk = columns[done * _COLUMNS : (done + rows) * _COLUMNS]
                connection.execute(_insert_rows(rows), [appended_at, position + done, *chunk])
                done += rows
    return first


@cache
def _insert_rows(rows: int) -> str:
    # ?1 is the time, ?2 the position of the first row; three parameters follow for each row.
    values = ", ".join(
        f"(?2 + {row}, ?1, ?{3 + 3 * row}, ?{4 + 3 * row}, ?{5 + 3 * row})" for row in range(rows)
    )
    return f"INSERT INTO records (position, appended_at, key, value, headers) VALUES {values}"  # noqa: S608 - numbers


def encode_headers(headers: tuple[tuple[str, bytes], ...]) -> bytes:
    """Headers as they are stored: JSON, so that people can read them; bytes as Latin-1, which holds any."""
    return json.dumps([[name, value.decode("latin-1")] for name, value in headers]).encode("ascii")


def decode_headers(stored: bytes) -> tuple[tuple[str, bytes], ...]:
    return tuple((name, value.encode("latin-1")) for name, value in json.loads(stored))


class SqliteProducer(Producer):
    """Appends records that stand alone. They go into one transaction all the same: all of them or none."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._closed = False

    async def append(self, records: Sequence[NewRecord], *, timeout: float) -> list[int]:
        if self._closed:
            raise LogUnavailable("This producer is closed; open another one.")
        batch = batch_of(records, self._session.topics)
        if not batch:
            return []
        next_offsets = await self._session.thread.run(
            lambda connection: insert(connection, batch, self._session.clock()),
            timeout=timeout,
            weight=len(records),
        )
        offsets: list[int] = []
        for record in records:
            partition_id = self._session.topics[record.topic].partition_id(record.partition)
            offset = next_offsets[partition_id]
            next_offsets[partition_id] = offset + 1
            offsets.append(offset)
        return offsets

    async def close(self) -> None:
        self._closed = True


class SqliteWriter(Writer):
    """Appends while its epoch is the newest of its transactional id: the appending transaction checks it."""

    def __init__(self, session: Session, transactional_id: str, epoch: int) -> None:
        self._session = session
        self._transactional_id = transactional_id
        self._epoch = epoch
        self._dead: LogError | None = None

    async def append(self, records: Sequence[NewRecord], *, timeout: float) -> None:
        if self._dead is not None:
            # A new one each time: an exception that is raised again drags its old tracebacks along.
            raise type(self._dead)(*self._dead.args)
        batch = batch_of(records, self._session.topics)
        if not batch:
            return

        def work(connection: sqlite3.Connection) -> None:
            self._check_fence(connection)
            insert(connection, batch, self._session.clock())

        try:
            await self._session.thread.run(work, timeout=timeout, weight=len(records))
        except (Fenced, OutcomeUnknown) as error:
            self._dead = error
            raise
        except asyncio.CancelledError:
            self._dead = OutcomeUnknown(
                f"An append of the writer {self._transactional_id!r} was cancelled; it may stand in the log"
                " or not. Open another writer and read what stands there."
            )
            raise

    async def close(self) -> None:
        self._dead = self._dead or LogUnavailable(
            f"This writer of {self._transactional_id!r} is closed; open another one."
        )

    def _check_fence(self, connection: sqlite3.Connection) -> None:
        (newest,) = connection.execute(
            "SELECT epoch FROM writers WHERE transactional_id = ?", (self._transactional_id,)
        ).fetchone()
        if newest != self._epoch:
            raise Fenced(
                f"A later writer was opened for {self._transactional_id!r}; nothing was appended."
                " This one is dead for good."
            )


def open_epoch(connection: sqlite3.Connection, transactional_id: str) -> int:
    """Fence every earlier writer of the id and return the epoch of the new one."""
    (epoch,) = connection.execute(
        "INSERT INTO writers (transactional_id, epoch) VALUES (?, 1)"
        " ON CONFLICT (transactional_id) DO UPDATE SET epoch = epoch + 1 RETURNING epoch",
        (transactional_id,),
    ).fetchone()
    return int(epoch)
