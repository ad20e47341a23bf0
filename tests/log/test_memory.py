"""The memory log between threads, each with an event loop of its own."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

from tests.conformance.cluster import SECONDS, append, read_count, record, values

from tidelog.log.memory import MemoryLog, MemoryStore
from tidelog.log.port import TopicPartition, TopicSpec

PING, PONG = TopicPartition("ping", 0), TopicPartition("pong", 0)


async def play(
    store: MemoryStore, listen: TopicPartition, speak: TopicPartition, *, serves: bool
) -> list[str]:
    async with MemoryLog(store) as log:
        reader = await log.reader({listen: 0})
        heard: list[str] = []
        for number in range(200):
            if serves:
                await append(log, record(speak.topic, str(number)))
            heard += values(await read_count(reader, 1))
            if not serves:
                await append(log, record(speak.topic, heard[-1]))
        return heard


async def test_readers_on_other_event_loops_are_woken() -> None:
    store = MemoryStore()
    store.create_topics([TopicSpec("ping", 1), TopicSpec("pong", 1)])
    with ThreadPoolExecutor() as threads:
        other = threads.submit(lambda: asyncio.run(play(store, PING, PONG, serves=False)))
        mine = await asyncio.wait_for(play(store, PONG, PING, serves=True), SECONDS)
        assert mine == await asyncio.wrap_future(other) == [str(number) for number in range(200)]


async def test_connections_without_a_store_share_nothing() -> None:
    one, two = MemoryLog(), MemoryLog()
    assert await one.create_topics([TopicSpec("events", 1)]) == ["events"]
    assert await two.create_topics([TopicSpec("events", 1)]) == ["events"]
    assert one.store is not two.store
    assert await MemoryLog(one.store).partitions("events") == 1
