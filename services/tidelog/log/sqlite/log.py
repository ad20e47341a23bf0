"""`SqliteLog`: one process's connection to the embedded log, and the factory of all that works on it."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Mapping, Sequence
from typing import TypeVar
from weakref import WeakSet

from tidelog.log.checks import refuse_malformed
from tidelog.log.port import (
    TRANSACTION_SECONDS,
    GroupDescription,
    Isolation,
    Log,
    LogDescription,
    LogUnavailable,
    Member,
    Producer,
    Reader,
    TopicDescription,
    TopicPartition,
    TopicSpec,
    Writer,
)
from tidelog.log.sqlite import inspection
from tidelog.log.sqlite import topics as topic_rows
from tidelog.log.sqlite.append import SqliteProducer, SqliteWriter, open_epoch
from tidelog.log.sqlite.cleaning import CLEAN_SECONDS, Cleaner
from tidelog.log.sqlite.file import Clock, connect_reader, explain, prepare
from tidelog.log.sqlite.groups import SqliteMember, forget_group
from tidelog.log.sqlite.read import SqliteReader, bounds_of, offset_at
from tidelog.log.sqlite.session import Session

_WRITE_SECONDS = 10.0

_Child = TypeVar("_Child", Producer, Writer, Reader, Member)


class SqliteLog(Log):
    """A log in one SQLite file, shared by any number of processes of one host. Use `open`.

    Reads run on the event loop: they are short, and wait for nobody. All writing is done by one thread.
    """

    def __init__(self, session: Session, address: str) -> None:
        self._session = session
        self._address = address
        self._cleaner = Cleaner(session.clock)
        session.thread.every(CLEAN_SECONDS, "The clean-up", self._cleaner.clean_when_due)
        self._children: WeakSet[Producer | Writer | Reader | Member] = WeakSet()
        self._closed = False

    @classmethod
    async def open(cls, path: str | os.PathLike[str], *, clock: Clock = time.time) -> SqliteLog:
        """Open the log in this file, which is created with its folders when it does not exist.

        Args:
            path: the file; a relative one is meant from the current folder of now.
            clock: the wall clock, in seconds, that retention and membership go by.

        Raises:
            LogFileError: the file cannot serve as a log: not writable, no SQLite file, of a newer version.
            LogUnavailable: other processes hold it locked.
        """
        absolute = await asyncio.to_thread(prepare, path)
        try:
            session = Session(absolute, connect_reader(absolute), clock)
        except sqlite3.Error as error:
            raise explain(error, absolute) from error
        return cls(session, f"sqlite:{os.fspath(path)}")

    @property
    def address(self) -> str:
        return self._address

    async def create_topics(self, topics: Sequence[TopicSpec]) -> list[str]:
        refuse_malformed(topics)
        return await self._opened().thread.run(
            lambda connection: topic_rows.create(connection, topics), timeout=_WRITE_SECONDS
        )

    async def partitions(self, topic: str) -> int:
        return len(self._opened().topics[topic].partition_ids)

    async def describe(self) -> LogDescription:
        self._opened()
        return LogDescription("sqlite", sqlite3.sqlite_version)

    async def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        return self._opened().snapshot(lambda connection: inspection.describe_topics(connection, names))

    async def groups(self, prefix: str) -> list[GroupDescription]:
        session = self._opened()
        return session.snapshot(lambda connection: inspection.groups(connection, prefix, session.clock()))

    async def forget_group(self, name: str) -> None:
        session = self._opened()
        await session.thread.run(
            lambda connection: forget_group(connection, name, session.clock()), timeout=_WRITE_SECONDS
        )

    async def start_offset(self, tp: TopicPartition) -> int:
        return self._bounds(tp)[0]

    async def end_offset(
        self,
        tp: TopicPartition,
        isolation: Isolation = Isolation.COMMITTED,  # noqa: ARG002 - an append is seen whole or not at all
    ) -> int:
        return self._bounds(tp)[1]

    async def offset_at(self, tp: TopicPartition, at: float) -> int:
        session = self._opened()
        partition_id = session.topics[tp.topic].partition_id(tp.partition)
        return session.snapshot(lambda connection: offset_at(connection, partition_id, at))

    async def producer(self) -> Producer:
        return self._adopted(SqliteProducer(self._opened()))

    async def writer(
        self,
        transactional_id: str,
        *,
        transaction_seconds: float = TRANSACTION_SECONDS,  # noqa: ARG002 - a dead process leaves nothing open
    ) -> Writer:
        session = self._opened()
        epoch = await session.thread.run(
            lambda connection: open_epoch(connection, transactional_id), timeout=_WRITE_SECONDS
        )
        return self._adopted(SqliteWriter(session, transactional_id, epoch))

    async def reader(
        self,
        offsets: Mapping[TopicPartition, int],
        isolation: Isolation = Isolation.COMMITTED,  # noqa: ARG002 - an append is seen whole or not at all
    ) -> Reader:
        return self._adopted(SqliteReader(self._opened(), offsets))

    async def join(self, group: str, topic: str) -> Member:
        return self._adopted(await SqliteMember.join(self._opened(), group, topic))

    async def clean(self) -> None:
        """Apply retention and compaction now, completely. It happens by itself all the time, now and then."""
        session = self._opened()
        while await session.thread.run(self._cleaner.clean, timeout=_WRITE_SECONDS):
            pass

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        # Together, so that a log which does not answer costs the bound of one of them.
        await asyncio.gather(*(child.close() for child in list(self._children)))
        await self._session.close()

    def _bounds(self, tp: TopicPartition) -> tuple[int, int]:
        session = self._opened()
        partition_id = session.topics[tp.topic].partition_id(tp.partition)
        return session.snapshot(lambda connection: bounds_of(connection, [partition_id]))[partition_id]

    def _opened(self) -> Session:
        if self._closed:
            raise LogUnavailable(f"This connection to the log {self._address} is closed; open another one.")
        return self._session

    def _adopted(self, child: _Child) -> _Child:
        self._children.add(child)
        return child
