"""The inbox: what reaches one client, whatever else stands on the replies topic."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator

import pytest
from tests.client.core_engine import ProbedLog

from tidelog.client.inbox import Inbox, InboxNotStarted
from tidelog.log.memory import MemoryLog, MemoryStore
from tidelog.log.port import LogUnavailable, NewRecord, UnknownTopic
from tidelog.log.topics import Topics
from tidelog_events.codec import encode_answer
from tidelog_events.identity import ClientId, CommandId, Partition, Sequence, partition_of
from tidelog_events.replies import Answer, Hello, Reply, Result

TOPICS = Topics()
ME = ClientId("client-a")
PARTITIONS = 3


@pytest.fixture
async def log() -> AsyncIterator[MemoryLog]:
    async with MemoryLog() as log:
        await log.create_topics(TOPICS.specs(partitions=1, reply_partitions=PARTITIONS))
        yield log


def reply(command_id: str) -> Reply:
    return Reply(
        command_id=CommandId(command_id),
        type="cancel",
        result=Result.CANCELLED_IMMEDIATELY,
        partition=Partition(0),
        sequence=Sequence(4),
    )


async def write(log: MemoryLog, value: bytes | None, key: str | None = ME, *, of: str = ME) -> None:
    producer = await log.producer()
    record = NewRecord(
        TOPICS.replies,
        partition_of(of, PARTITIONS),
        None if key is None else key.encode(),
        value,
    )
    await producer.append([record], timeout=5)


async def started(log: MemoryLog) -> Inbox:
    inbox = Inbox(log, TOPICS, ME)
    await inbox.start()
    return inbox


async def read_all(inbox: Inbox, count: int) -> list[Answer]:
    answers: list[Answer] = []
    for _ in range(20):
        answers += await inbox.read(timeout=1)
        if len(answers) >= count:
            return answers
    raise TimeoutError(f"only {answers} came")


async def test_reads_from_the_end_as_of_the_start(log: MemoryLog) -> None:
    await write(log, encode_answer(reply("old")))
    inbox = await started(log)
    await write(log, encode_answer(reply("new")))

    assert await inbox.read(timeout=1) == [reply("new")]
    assert await inbox.read(timeout=0) == []


async def test_reads_its_own_answers_and_the_hello_of_an_engine(log: MemoryLog) -> None:
    inbox = await started(log)
    await write(log, encode_answer(reply("theirs")), key="somebody else")
    await write(log, encode_answer(Hello(partition=Partition(7))), key=None)
    await write(log, encode_answer(reply("mine")))

    assert await read_all(inbox, 2) == [Hello(partition=Partition(7)), reply("mine")]


@pytest.mark.parametrize("junk", [b"\xff", b"[]", b'{"type": "hello"}', None])
async def test_passes_over_what_is_no_answer_and_says_so(
    log: MemoryLog, junk: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = await started(log)
    await write(log, junk)
    await write(log, encode_answer(reply("after")))

    with caplog.at_level(logging.WARNING, logger="tidelog"):
        assert await read_all(inbox, 1) == [reply("after")]
    assert "Passed over record 0 of tidelog.replies" in caplog.text


async def test_passes_over_kinds_of_a_later_release(log: MemoryLog) -> None:
    inbox = await started(log)
    await write(log, b'{"type": "weather", "result": "Sunny"}')
    await write(log, encode_answer(reply("after")))

    assert await read_all(inbox, 1) == [reply("after")]


async def test_needs_a_start(log: MemoryLog) -> None:
    inbox = Inbox(log, TOPICS, ME)
    with pytest.raises(InboxNotStarted, match="start"):
        await inbox.read(timeout=0)
    await inbox.start()
    await inbox.close()
    await inbox.close()
    with pytest.raises(InboxNotStarted):
        await inbox.read(timeout=0)


async def test_start_names_the_topic_that_is_missing() -> None:
    async with MemoryLog() as log:
        with pytest.raises(UnknownTopic, match=r"tidelog\.replies"):
            await Inbox(log, TOPICS, ME).start()


async def test_an_outage_costs_no_answer_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    async with ProbedLog() as log:
        await log.create_topics(TOPICS.specs(partitions=1, reply_partitions=PARTITIONS))
        inbox = await started(log)
        await write(log, encode_answer(reply("meanwhile")))
        log.read_failures += [LogUnavailable("The broker is away.")] * 3

        with caplog.at_level(logging.INFO, logger="tidelog"):
            assert await read_all(inbox, 1) == [reply("meanwhile")]
        messages = [record.message for record in caplog.records]
        assert len(messages) == 2
        assert "cannot read the log and tries again: The broker is away." in messages[0]
        assert "reads the log again" in messages[1]


async def test_what_retention_took_is_skipped_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    now = 1_000_000.0
    store = MemoryStore(clock=lambda: now)
    async with MemoryLog(store) as log:
        await log.create_topics(TOPICS.specs(partitions=1, reply_partitions=PARTITIONS))
        inbox = await started(log)
        await write(log, encode_answer(reply("lost")))
        now += 3 * 3_600
        await write(log, encode_answer(reply("kept")))
        store.clean()

        with caplog.at_level(logging.WARNING, logger="tidelog"):
            assert await read_all(inbox, 1) == [reply("kept")]
        assert "may have missed answers" in caplog.text
