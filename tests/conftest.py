"""What several groups of tests need: a database of their own on a real PostgreSQL, and a real Kafka."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
from tests.providers.kafka import GivenBroker, prepare, running_kafka, running_own_kafka
from tests.providers.kafka_broker import Broker
from tests.providers.kafka_jars import NoBroker
from tests.providers.postgres import create_database, drop_database, running_postgres


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch what a Kafka broker needs once, before the first test and outside the time that a test has."""
    if session.config.option.collectonly or not any(map(_needs_kafka, session.items)):
        return
    try:
        prepare()
    except NoBroker as error:
        pytest.exit(str(error), returncode=1)


def _needs_kafka(item: pytest.Item) -> bool:
    if not isinstance(item, pytest.Function):
        return False
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return "kafka" in item.fixturenames or "kafka" in parameters


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The DSN of a server on which databases may be made."""
    with running_postgres() as dsn:
        yield dsn


@pytest.fixture
async def postgres_dsn(postgres_server: str) -> AsyncIterator[str]:
    """The DSN of an empty database, dropped after the test."""
    dsn = await create_database(postgres_server)
    yield dsn
    await drop_database(postgres_server, dsn)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker | GivenBroker]:
    """A broker for all tests of the session; each uses topics, groups and ids of its own."""
    with running_kafka(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture(scope="session")
def own_kafka(kafka: Broker | GivenBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that a test may pause, kill and start again; at the end of the test it must run."""
    if isinstance(kafka, Broker):
        yield kafka
        return
    with running_own_kafka(tmp_path_factory.mktemp("own-kafka")) as broker:
        yield broker
