"""A broker that does not answer: every wait ends by itself, and says what is known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

from tests.conformance.cluster import SECONDS, KafkaCluster, read_count, read_to_end, record, until, values
from tests.providers.kafka_broker import Broker

from tidelog.log.kafka.log import KafkaLog
from tidelog.log.port import LogUnavailable, OutcomeUnknown, TopicPartition

_GIVE_UP = 0.5
_BOUND = 15.0
"""Above the adapter's own bounds; without them aiokafka would wait for ever."""


@contextmanager
def silent(broker: Broker) -> Iterator[None]:
    """Connections stay, and nothing is answered: what a client sees of a host that is gone."""
    broker.pause()
    try:
        yield
    finally:
        broker.resume()


async def test_every_call_ends_while_the_broker_is_silent(
    shaky_cluster: KafkaCluster, own_kafka: Broker
) -> None:
    topic = await shaky_cluster.new_topic()
    tp = TopicPartition(topic, 0)
    log = await shaky_cluster.connect()
    writer, producer, reader = await log.writer(topic), await log.producer(), await log.reader({tp: 0})
    member = await log.join(topic, topic)
    await until(lambda: member.assignment == {0}, member)
    await writer.append([record(topic, "one")], timeout=SECONDS)
    await producer.append([record(topic, "two")], timeout=SECONDS)
    assert values(await read_count(reader, 2)) == ["one", "two"]

    with silent(own_kafka):
        async with asyncio.timeout(_BOUND):
            outcomes = await asyncio.gather(
                writer.append([record(topic, "unknown")], timeout=_GIVE_UP),
                producer.append([record(topic, "unknown")], timeout=_GIVE_UP),
                member.commit({0: 1}, timeout=_GIVE_UP),
                member.committed(0),
                log.partitions(topic),
                log.end_offset(tp),
                log.writer(f"{topic}-other"),
                log.reader({tp: 0}),
                KafkaLog.open(own_kafka.address),
                reader.read(max_records=1, timeout=_GIVE_UP),
                return_exceptions=True,
            )
        assert [type(outcome) for outcome in outcomes] == [
            OutcomeUnknown,
            OutcomeUnknown,
            *[LogUnavailable] * 7,
            list,
        ]
        for outcome in outcomes[:-1]:
            assert own_kafka.address in str(outcome)
        async with asyncio.timeout(_BOUND):
            await log.close()


async def test_a_log_that_was_silent_for_a_while_goes_on(
    shaky_cluster: KafkaCluster, own_kafka: Broker
) -> None:
    topic = await shaky_cluster.new_topic()
    log = await shaky_cluster.connect()
    producer, reader = await log.producer(), await log.reader({TopicPartition(topic, 0): 0})
    await producer.append([record(topic, "before")], timeout=SECONDS)
    with silent(own_kafka):
        lost = asyncio.create_task(producer.append([record(topic, "unknown")], timeout=_GIVE_UP))
        await asyncio.wait([lost])
        assert isinstance(lost.exception(), OutcomeUnknown)

    await producer.append([record(topic, "after")], timeout=SECONDS)
    found = values(await read_to_end(log, topic))
    assert found[0] == "before"
    assert found.count("after") == 1
    assert set(found) <= {"before", "unknown", "after"}
    assert values(await read_count(reader, len(found))) == found


async def test_a_writer_cut_off_in_a_transaction_leaves_nothing_half_done(
    shaky_cluster: KafkaCluster, own_kafka: Broker
) -> None:
    topic = await shaky_cluster.new_topic(2)
    log = await shaky_cluster.connect()
    name = uuid4().hex
    for number in range(3):
        writer = await log.writer(name)
        await writer.append(
            [record(topic, "x", partition=partition) for partition in range(2)], timeout=SECONDS
        )
        pair = [record(topic, str(number), partition=partition) for partition in range(2)]
        with silent(own_kafka):
            appending = asyncio.create_task(writer.append(pair, timeout=_GIVE_UP))
            await asyncio.wait([appending])
            assert isinstance(appending.exception(), OutcomeUnknown)
            async with asyncio.timeout(_BOUND):
                await writer.close()
    await (await log.writer(name)).append([record(topic, "end")], timeout=SECONDS)
    assert values(await read_to_end(log, topic, 0)) == [*values(await read_to_end(log, topic, 1)), "end"]
