"""An installation on Kafka of each test's own: topics under a new prefix, and connections that are closed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from tests.conformance.cluster import KafkaCluster
from tests.providers.kafka import GivenBroker
from tests.providers.kafka_broker import Broker

from tidelog.log.port import Log
from tidelog.log.topics import Topics


@pytest.fixture
async def cluster(kafka: Broker | GivenBroker) -> AsyncIterator[KafkaCluster]:
    """Connections to a broker that stays up."""
    cluster = KafkaCluster(kafka.address)
    yield cluster
    await cluster.close()


@pytest.fixture
async def shaky_cluster(own_kafka: Broker) -> AsyncIterator[KafkaCluster]:
    """Connections to a broker that the test may pause or kill."""
    cluster = KafkaCluster(own_kafka.address)
    yield cluster
    await cluster.close()


@pytest.fixture
async def log(cluster: KafkaCluster) -> Log:
    return await cluster.connect()


@pytest.fixture
def topics() -> Topics:
    """Names that nobody else has; not created yet."""
    return Topics(f"test-{uuid4().hex}")


@pytest.fixture
async def kafka_admin(kafka: Broker | GivenBroker) -> AsyncIterator[AIOKafkaAdminClient]:
    """The administrator of the cluster, for what Tidelog itself never does."""
    admin = AIOKafkaAdminClient(bootstrap_servers=kafka.address)
    await admin.start()
    yield admin
    await admin.close()


@pytest.fixture
def kafka_address(kafka: Broker | GivenBroker) -> str:
    """`host:port` of the broker that stays up."""
    return kafka.address
