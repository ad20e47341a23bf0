"""TLS, passwords and replication: what a user says about a cluster is used, or refused by name."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from tests.conformance.cluster import SECONDS, read_to_end, record, until, values
from tests.providers.kafka_broker import Broker, JavaBroker
from tests.providers.kafka_secured import SecuredListener

from tidelog.log.kafka.log import KafkaLog
from tidelog.log.kafka.options import KafkaOptions, KafkaReplication, KafkaSecurity, WrongKafkaOptions
from tidelog.log.port import Cleanup, LogUnavailable, TopicSpec


@pytest.fixture
def secured(own_kafka: Broker) -> SecuredListener:
    """A listener with TLS and a password."""
    listener = own_kafka.secured if isinstance(own_kafka, JavaBroker) else None
    if listener is None:
        pytest.skip("only a broker that Java runs here, with openssl at hand, has a secured listener")
    return listener


def security(listener: SecuredListener, *, password: str | None = None) -> KafkaSecurity:
    return KafkaSecurity(
        "SASL_SSL",
        ca_file=str(listener.ca_file),
        username=listener.username,
        password=password or listener.password,
    )


async def test_every_client_of_a_log_uses_tls_and_the_password(secured: SecuredListener) -> None:
    topic = f"topic-{uuid4().hex}"
    async with await KafkaLog.open(secured.address, KafkaOptions(security(secured))) as log:
        await log.create_topics([TopicSpec(topic, 1)])
        await (await log.producer()).append([record(topic, "produced")], timeout=SECONDS)
        await (await log.writer(topic)).append([record(topic, "written")], timeout=SECONDS)
        assert values(await read_to_end(log, topic)) == ["produced", "written"]
        member = await log.join(topic, topic)
        await until(lambda: member.assignment == {0}, member)


async def test_a_wrong_password_opens_nothing(secured: SecuredListener) -> None:
    wrong = KafkaOptions(security(secured, password="close sesame"))  # noqa: S106 - no secret
    with pytest.raises(LogUnavailable, match=rf"{secured.address}.*is let in"):
        await KafkaLog.open(secured.address, wrong)


async def test_a_broker_with_a_strange_certificate_is_not_spoken_to(secured: SecuredListener) -> None:
    trusting_nobody_here = KafkaSecurity("SASL_SSL", username=secured.username, password=secured.password)
    with pytest.raises(LogUnavailable, match=secured.address):
        await KafkaLog.open(secured.address, KafkaOptions(trusting_nobody_here))


async def test_tls_files_that_are_none_are_named(tmp_path: Path) -> None:
    nonsense = tmp_path / "ca.pem"
    nonsense.write_text("nonsense")
    for file in (str(nonsense), str(tmp_path / "missing.pem")):
        with pytest.raises(WrongKafkaOptions, match=file):
            await KafkaLog.open("127.0.0.1:1", KafkaOptions(KafkaSecurity("SSL", ca_file=file)))


def test_half_of_the_credentials_are_refused_and_a_password_is_never_shown() -> None:
    with pytest.raises(WrongKafkaOptions, match="SASL_SSL needs a user name and a password"):
        KafkaSecurity("SASL_SSL", username="ann")
    with pytest.raises(WrongKafkaOptions, match=r"'key\.pem' needs its certificate"):
        KafkaSecurity("SSL", key_file="key.pem")
    assert "sesame" not in repr(KafkaSecurity("SASL_SSL", username="ann", password="open sesame"))  # noqa: S106 - as above


@pytest.mark.parametrize(
    ("asked", "brokers", "used"),
    [
        (KafkaReplication(), 1, (1, 1)),
        (KafkaReplication(), 2, (2, 1)),
        (KafkaReplication(), 3, (3, 2)),
        (KafkaReplication(), 9, (3, 2)),
        (KafkaReplication(factor=5), 9, (5, 4)),
        (KafkaReplication(min_insync=1), 3, (3, 1)),
    ],
)
def test_copies_are_made_for_as_many_brokers_as_there_are(
    asked: KafkaReplication, brokers: int, used: tuple[int, int]
) -> None:
    assert asked.for_brokers(brokers) == used


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        (KafkaReplication(factor=4), "factor of 4 is asked for, and the cluster has 3"),
        (KafkaReplication(factor=0), "Ask for 1 to 3"),
        (KafkaReplication(min_insync=4), "4 in-sync replicas are asked for, of 3"),
    ],
)
def test_copies_that_cannot_be_are_refused(asked: KafkaReplication, match: str) -> None:
    with pytest.raises(WrongKafkaOptions, match=match):
        asked.for_brokers(3)


async def test_topics_are_created_as_they_are_to_be_kept(
    kafka_address: str, kafka_admin: AIOKafkaAdminClient
) -> None:
    state, replies, kept = (f"topic-{uuid4().hex}" for _ in range(3))
    async with await KafkaLog.open(kafka_address) as log:
        await log.create_topics(
            [
                TopicSpec(state, 1, Cleanup.COMPACT),
                TopicSpec(replies, 1, retention_seconds=3_600),
                TopicSpec(kept, 1),
            ]
        )
    found: dict[str, dict[str, str]] = {}
    for name in (state, replies, kept):
        (answer,) = await kafka_admin.describe_configs([ConfigResource(ConfigResourceType.TOPIC, name)])
        found[name] = {entry[0]: entry[1] for entry in answer.resources[0][4]}
    assert found[state]["cleanup.policy"] == "compact"
    assert found[replies]["cleanup.policy"] == found[kept]["cleanup.policy"] == "delete"
    assert found[replies]["retention.ms"] == "3600000"
    assert int(found[replies]["segment.ms"]) < 3_600_000
    assert found[kept]["retention.ms"] == "-1"
    assert {settings["max.message.bytes"] for settings in found.values()} == {"1048588"}
