"""The connections to a `MemoryStore`: a log, and its producers, writers, readers and members."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TypeVar
from weakref import WeakSet

from tidelog.log.memory.store import Listener, MemoryStore
from tidelog.log.port import (
    NO_NOTES,
    TRANSACTION_SECONDS,
    GroupDescription,
    Isolation,
    Log,
    LogDescription,
    LogUnavailable,
    Member,
    NewRecord,
    Producer,
    Reader,
    Record,
    TopicDescription,
    TopicPartition,
    TopicSpec,
    Writer,
)
from tidelog.log.signalled import SignalledMember, SignalledReader

_Child = TypeVar("_Child", Producer, Writer, Reader, Member)


class _Connected:
    """Something that stops working when it is closed."""

    def __init__(self, store: MemoryStore) -> None:
        self._store = store
        self._closed = False

    def _open_store(self) -> MemoryStore:
        if self._closed:
            raise LogUnavailable("This connection to the log in memory is closed; open another one.")
        return self._store


class _MemoryProducer(_Connected, Producer):
    async def append(
        self,
        records: Sequence[NewRecord],
        *,
        timeout: float,  # noqa: ARG002 - memory never keeps anybody waiting
    ) -> list[int]:
        return self._open_store().append(records)

    async def close(self) -> None:
        self._closed = True


class _MemoryWriter(_Connected, Writer):
    def __init__(self, store: MemoryStore, transactional_id: str) -> None:
        super().__init__(store)
        self._fence = (transactional_id, store.open_writer(transactional_id))

    async def append(
        self,
        records: Sequence[NewRecord],
        *,
        timeout: float,  # noqa: ARG002 - memory never keeps anybody waiting
    ) -> None:
        store = self._open_store()
        if records:
            store.append(records, fence=self._fence)

    async def close(self) -> None:
        self._closed = True


class _MemoryReader(_Connected, SignalledReader):
    def __init__(self, store: MemoryStore, offsets: Mapping[TopicPartition, int]) -> None:
        _Connected.__init__(self, store)
        SignalledReader.__init__(self, offsets)
        self._tps = tuple(offsets)
        self._listener: Listener = (asyncio.get_running_loop(), self._signal.set)
        store.listen(self._tps, self._listener)

    def _take(self, max_records: int) -> list[Record]:
        records = self._open_store().take(self._positions, max_records)
        if records:
            self._ask_last(TopicPartition(records[-1].topic, records[-1].partition))
        return records

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._store.unlisten(self._tps, self._listener)


class _MemoryMember(_Connected, SignalledMember):
    def __init__(self, store: MemoryStore, group: str, topic: str) -> None:
        _Connected.__init__(self, store)
        SignalledMember.__init__(self)
        self._group = group
        self._topic = topic
        self._id = ""
        self._id = store.join(group, topic, (asyncio.get_running_loop(), self._on_change))
        self._on_change()

    def _on_change(self) -> None:
        # The store calls before it has returned the id, and may still call after the member has left.
        if self._id and not self._closed:
            self._refresh()
            self._signal.set()

    def _share(self) -> frozenset[int]:
        return self._open_store().assignment(self._group, self._topic, self._id)

    async def committed(self, partition: int) -> int | None:
        return self._open_store().committed(self._group, self._topic, partition)

    async def commit(
        self,
        offsets: Mapping[int, int],
        *,
        timeout: float,  # noqa: ARG002 - memory never keeps anybody waiting
        notes: Mapping[int, str] = NO_NOTES,
    ) -> None:
        self._open_store().commit(self._group, self._topic, self._id, offsets, notes)

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._store.leave(self._group, self._topic, self._id)


class MemoryLog(_Connected, Log):
    """A connection to a `MemoryStore`; without one, to a new store of its own."""

    def __init__(self, store: MemoryStore | None = None) -> None:
        super().__init__(store or MemoryStore())
        self._children: WeakSet[Producer | Writer | Reader | Member] = WeakSet()

    @property
    def address(self) -> str:
        return "memory:"

    @property
    def store(self) -> MemoryStore:
        """What this connection shares with others: hand it to another `MemoryLog`."""
        return self._store

    async def create_topics(self, topics: Sequence[TopicSpec]) -> list[str]:
        return self._open_store().create_topics(topics)

    async def partitions(self, topic: str) -> int:
        return self._open_store().partitions(topic)

    async def describe(self) -> LogDescription:
        self._open_store()
        return LogDescription("memory")

    async def describe_topics(self, names: Sequence[str]) -> dict[str, TopicDescription]:
        return self._open_store().describe_topics(names)

    async def groups(self, prefix: str) -> list[GroupDescription]:
        return self._open_store().groups(prefix)

    async def forget_group(self, name: str) -> None:
        self._open_store().forget_group(name)

    async def start_offset(self, tp: TopicPartition) -> int:
        return self._open_store().bounds(tp)[0]

    async def end_offset(
        self,
        tp: TopicPartition,
        isolation: Isolation = Isolation.COMMITTED,  # noqa: ARG002 - an append is seen whole or not at all
    ) -> int:
        return self._open_store().bounds(tp)[1]

    async def offset_at(self, tp: TopicPartition, at: float) -> int:
        return self._open_store().offset_at(tp, at)

    async def producer(self) -> Producer:
        return self._adopted(_MemoryProducer(self._open_store()))

    async def writer(
        self,
        transactional_id: str,
        *,
        transaction_seconds: float = TRANSACTION_SECONDS,  # noqa: ARG002 - an append is never half done
    ) -> Writer:
        return self._adopted(_MemoryWriter(self._open_store(), transactional_id))

    async def reader(
        self,
        offsets: Mapping[TopicPartition, int],
        isolation: Isolation = Isolation.COMMITTED,  # noqa: ARG002 - an append is seen whole or not at all
    ) -> Reader:
        return self._adopted(_MemoryReader(self._open_store(), offsets))

    async def join(self, group: str, topic: str) -> Member:
        return self._adopted(_MemoryMember(self._open_store(), group, topic))

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            for child in list(self._children):
                await child.close()

    def _adopted(self, child: _Child) -> _Child:
        self._children.add(child)
        return child
