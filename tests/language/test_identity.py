"""Names, ids and routing: contract section 1."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import pytest
from aiokafka.partitioner import DefaultPartitioner
from hypothesis import given
from hypothesis import strategies as st

from tidelog_events import identity
from tidelog_events.identity import InvalidName, JobId, QueueName
from tidelog_events.instants import Instant, parse_instant

NOW = parse_instant("2026-01-31T09:00:00.123456Z")


@pytest.mark.parametrize(
    ("text", "hashed"),
    [  # as Kafka's own UtilsTest publishes them
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        ("abc", 479470107),
    ],
)
def test_murmur2_agrees_with_kafka(text: str, hashed: int) -> None:
    assert identity.murmur2(text.encode()) == hashed & 0xFFFFFFFF


@given(name=st.text(), partitions=st.integers(1, 64))
def test_a_queue_lives_where_a_kafka_producer_sends_its_records(name: str, partitions: int) -> None:
    everywhere = list(range(partitions))

    kafka = DefaultPartitioner()(name.encode(), everywhere, everywhere)

    assert identity.partition_of(name, partitions) == kafka


def test_routing_stays_right_beyond_what_is_remembered() -> None:
    names = [f"queue-{number}" for number in range(10_050)]
    first = [identity.partition_of(name, 12) for name in names]

    assert [identity.partition_of(name, 12) for name in names] == first
    assert {identity.partition_of(name, 7) for name in names} == set(range(7))


@pytest.mark.parametrize("name", ["default", "a", "A-Z.0_9", "q" * 100])
def test_queue_names(name: str) -> None:
    assert identity.queue_name(name) == name


@pytest.mark.parametrize("name", ["", "q" * 101, "a b", "a/b", "a:b", "über", "a\n", "\0", "q\uff11"])
def test_no_queue_names(name: str) -> None:
    with pytest.raises(InvalidName, match="is no queue name"):
        identity.queue_name(name)


@pytest.mark.parametrize("key", ["1", "invoice-2026-17", "A.b_C:d@e+f=g-9", "k" * 100])
def test_job_ids_are_the_queue_and_the_key(key: str) -> None:
    made = identity.job_id(QueueName("billing"), key)

    assert made == f"billing/{key}"
    assert identity.queue_of(made) == "billing"


@pytest.mark.parametrize("key", ["", "k" * 101, "a b", "a/b", "ä", "a\n"])
def test_no_keys(key: str) -> None:
    with pytest.raises(InvalidName, match="is no job id"):
        identity.job_id(QueueName("billing"), key)


def test_a_job_id_needs_a_good_queue() -> None:
    with pytest.raises(InvalidName):
        identity.job_id(QueueName("a b"), "1")


@pytest.mark.parametrize(
    "key",
    [
        identity.mint_key(NOW, 3, 17),
        identity.random_key(NOW, b"\xff" * 10),
        identity.random_key(NOW, bytes(10)),
    ],
)
def test_minted_keys_are_uuid_version_7_with_the_time_in_front(key: str) -> None:
    minted = uuid.UUID(hex=key)

    assert key == minted.hex
    assert (minted.version, minted.variant) == (7, uuid.RFC_4122)
    assert datetime.fromtimestamp((minted.int >> 80) / 1_000, UTC) == datetime(
        2026, 1, 31, 9, 0, 0, 123_000, UTC
    )


def test_the_same_decision_mints_the_same_key() -> None:
    assert identity.mint_key(NOW, 3, 17) == identity.mint_key(NOW, 3, 17)


def test_other_decisions_mint_other_keys() -> None:
    seeds = [(3, 17), (31, 7), (317,), (3, 18), (17, 3)]

    assert len({identity.mint_key(NOW, *seed) for seed in seeds}) == len(seeds)
    assert identity.mint_key(NOW, 1) != identity.mint_key(Instant(NOW + 1_000), 1)


@given(entropy=st.binary(min_size=10, max_size=10), now=st.integers(0, 2**52))
def test_a_random_key_makes_a_job_id(entropy: bytes, now: int) -> None:
    key = identity.random_key(Instant(now), entropy)

    minted = uuid.UUID(hex=key)
    assert (minted.hex, minted.version, minted.variant) == (key, 7, uuid.RFC_4122)
    assert identity.queue_of(JobId(identity.job_id(QueueName("q"), key))) == "q"
