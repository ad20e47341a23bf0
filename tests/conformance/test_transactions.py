"""Transactions: all or nothing over topics and partitions, and one live writer for each transactional id."""

from __future__ import annotations

import asyncio

import pytest
from tests.conformance.cluster import SECONDS, Cluster, read_count, read_to_end, record, values

from tidelog.log.port import (
    MAX_RECORD_BYTES,
    Cleanup,
    Fenced,
    Isolation,
    Log,
    LogError,
    NewRecord,
    OutcomeUnknown,
    RecordTooLarge,
    TopicPartition,
    UnknownTopic,
)

Topics = tuple[str, str]


@pytest.fixture
async def topics(cluster: Cluster) -> Topics:
    """A topic of events with two partitions, and a compacted one of state."""
    return await cluster.new_topic(2), await cluster.new_topic(1, Cleanup.COMPACT)


def batch(topics: Topics, name: str) -> list[NewRecord]:
    """Four records over two topics and three partitions."""
    events, state = topics
    return [
        record(events, name),
        record(events, name, partition=1),
        record(events, name, partition=1),
        record(state, name, key=name),
    ]


async def contents(log: Log, topics: Topics) -> list[list[str]]:
    events, state = topics
    return [values(await read_to_end(log, *where)) for where in ((events, 0), (events, 1), (state, 0))]


async def test_a_transaction_is_seen_whole(cluster: Cluster, log: Log, topics: Topics) -> None:
    writer = await log.writer("writer")
    for name in ("a", "b"):
        await writer.append(batch(topics, name), timeout=SECONDS)
    assert await contents(await cluster.connect(), topics) == [["a", "b"], ["a", "a", "b", "b"], ["a", "b"]]


async def test_a_reader_never_sees_a_part_of_a_transaction(
    cluster: Cluster, log: Log, topics: Topics
) -> None:
    events, _ = topics
    first, second = TopicPartition(events, 0), TopicPartition(events, 1)
    writer = await log.writer("writer")

    async def write() -> None:
        for number in range(60):
            await writer.append(batch(topics, str(number)), timeout=SECONDS)

    writing = asyncio.create_task(write())
    other = await cluster.connect()
    reader = await other.reader({first: 0})
    for number in range(60):
        (found,) = await read_count(reader, 1)
        assert values([found]) == [str(number)]
        # What is seen of one partition stands in the others, too.
        assert values(await read_to_end(other, events, 1))[number * 2 : number * 2 + 2] == [str(number)] * 2
    await writing
    await read_to_end(other, events, 1)
    assert await other.end_offset(second) == await other.end_offset(second, Isolation.UNCOMMITTED)


async def test_a_later_writer_fences_the_earlier_for_good(cluster: Cluster, log: Log, topics: Topics) -> None:
    first = await log.writer("writer")
    await first.append(batch(topics, "first"), timeout=SECONDS)
    second = await (await cluster.connect()).writer("writer")

    with pytest.raises(Fenced, match="writer"):
        await first.append(batch(topics, "zombie"), timeout=SECONDS)
    await second.append(batch(topics, "second"), timeout=SECONDS)
    await second.close()
    for _ in range(2):
        with pytest.raises(Fenced):
            await first.append(batch(topics, "zombie"), timeout=SECONDS)
    assert await contents(log, topics) == [
        ["first", "second"],
        ["first", "first", "second", "second"],
        ["first", "second"],
    ]


async def test_a_writer_on_the_same_connection_fences_as_well(log: Log, topics: Topics) -> None:
    first = await log.writer("writer")
    second = await log.writer("writer")
    with pytest.raises(Fenced):
        await first.append(batch(topics, "zombie"), timeout=SECONDS)
    await second.append(batch(topics, "second"), timeout=SECONDS)
    assert (await contents(log, topics))[0] == ["second"]


async def test_a_writer_that_was_closed_unfenced_may_be_followed(log: Log, topics: Topics) -> None:
    first = await log.writer("writer")
    await first.append(batch(topics, "first"), timeout=SECONDS)
    await first.close()
    with pytest.raises(LogError):
        await first.append(batch(topics, "late"), timeout=SECONDS)
    await (await log.writer("writer")).append(batch(topics, "second"), timeout=SECONDS)
    assert (await contents(log, topics))[0] == ["first", "second"]


async def test_a_fenced_append_does_not_disturb_its_neighbours(
    cluster: Cluster, log: Log, topics: Topics
) -> None:
    old = await log.writer("fenced")
    await (await cluster.connect()).writer("fenced")
    alive = [await log.writer(f"alive-{number}") for number in range(4)]
    appends = [
        writer.append(batch(topics, f"a{number}"), timeout=SECONDS) for number, writer in enumerate(alive)
    ]
    outcomes = await asyncio.gather(
        *appends[:2],
        old.append(batch(topics, "zombie"), timeout=SECONDS),
        *appends[2:],
        return_exceptions=True,
    )
    assert [type(outcome) for outcome in outcomes] == [type(None), type(None), Fenced, type(None), type(None)]
    assert sorted((await contents(log, topics))[0]) == ["a0", "a1", "a2", "a3"]


async def test_one_record_over_the_bound_aborts_the_whole(log: Log, topics: Topics) -> None:
    events, _ = topics
    writer = await log.writer("writer")
    too_large = NewRecord(events, 1, b"key", b"x" * MAX_RECORD_BYTES)
    with pytest.raises(RecordTooLarge, match=events):
        await writer.append([*batch(topics, "aborted"), too_large], timeout=SECONDS)
    assert await contents(log, topics) == [[], [], []]

    await writer.append(batch(topics, "after"), timeout=SECONDS)
    assert await contents(log, topics) == [["after"], ["after", "after"], ["after"]]


async def test_an_unknown_topic_aborts_the_whole(log: Log, topics: Topics) -> None:
    events, _ = topics
    writer = await log.writer("writer")
    for stray in (record("no-such-topic", "x"), record(events, "x", partition=9)):
        with pytest.raises(UnknownTopic):
            await writer.append([*batch(topics, "aborted"), stray], timeout=SECONDS)
    assert await contents(log, topics) == [[], [], []]

    await writer.append(batch(topics, "after"), timeout=SECONDS)
    assert (await contents(log, topics))[0] == ["after"]


async def test_a_cancelled_transaction_stands_whole_or_not_at_all(
    cluster: Cluster, log: Log, topics: Topics
) -> None:
    for number in range(30):
        writer = await log.writer("writer")
        appending = asyncio.create_task(writer.append(batch(topics, str(number)), timeout=SECONDS))
        for _ in range(number % 5):
            await asyncio.sleep(0)
        appending.cancel()
        await asyncio.gather(appending, return_exceptions=True)
    # The next writer fences what was still on its way: from now on, nothing more can come.
    await (await cluster.connect()).writer("writer")

    one, twice, state = await contents(log, topics)
    assert one == state
    assert twice == [name for name in one for _ in range(2)]
    assert one == [value for value in (str(number) for number in range(30)) if value in one]


async def test_writers_of_different_ids_interleave(cluster: Cluster, log: Log, topics: Topics) -> None:
    async def write(name: str) -> None:
        writer = await (await cluster.connect()).writer(name)
        for number in range(25):
            await writer.append(batch(topics, f"{name}-{number}"), timeout=SECONDS)

    await asyncio.gather(*(write(name) for name in ("x", "y", "z")))
    one, twice, state = await contents(log, topics)
    assert twice[::2] == twice[1::2]
    for partition in (one, twice[::2], state):  # each has its own order of the writers
        for name in ("x", "y", "z"):
            assert [value for value in partition if value.startswith(name)] == [
                f"{name}-{number}" for number in range(25)
            ]


async def test_takeover_reads_everything_that_was_acknowledged(
    cluster: Cluster, log: Log, topics: Topics
) -> None:
    """A writes as fast as it can; B takes over at any moment and reads all of A's batches, whole."""
    first = await log.writer("engine-0")
    acknowledged: list[str] = []
    enough = asyncio.Event()

    async def write_until_fenced() -> None:
        for number in range(100_000):
            await first.append(batch(topics, str(number)), timeout=SECONDS)
            acknowledged.append(str(number))
            if number == 20:
                enough.set()
            await asyncio.sleep(0)

    writing = asyncio.create_task(write_until_fenced())
    await asyncio.wait_for(enough.wait(), SECONDS)
    successor = await cluster.connect()
    second = await successor.writer("engine-0")

    one, twice, state = await contents(successor, topics)
    # The append that was under way may end without an answer; the next one meets the fence.
    with pytest.raises((Fenced, OutcomeUnknown)):
        await asyncio.wait_for(writing, SECONDS)
    assert one == acknowledged or one[:-1] == acknowledged  # one more may have come in without an answer
    assert state == one
    assert twice == [name for name in one for _ in range(2)]

    await second.append(batch(topics, "second"), timeout=SECONDS)
    assert (await contents(successor, topics))[0] == [*one, "second"]


async def test_a_writer_may_be_given_little_time(cluster: Cluster, log: Log, topics: Topics) -> None:
    writer = await log.writer("hasty", transaction_seconds=1.5)
    for name in ("a", "b"):
        await writer.append(batch(topics, name), timeout=SECONDS)
    assert (await contents(await cluster.connect(), topics))[0] == ["a", "b"]
