"""One installation for all tests of this folder. Each uses jobs, client ids and groups of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.integration.outsider import Commander, Events, Inbox
from tests.integration.site import Site, running_site
from tests.providers.kafka import GivenBroker
from tests.providers.kafka_broker import Broker


@pytest.fixture(scope="session")
def site(
    kafka: Broker | GivenBroker, postgres_server: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """The installation: it runs for as long as the session."""
    with running_site(kafka.address, postgres_server, tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture
def commander(site: Site) -> Iterator[Commander]:
    """A producer that places commands as Kafka's own clients do."""
    with Commander(site.brokers, site.prefix, partitioner="murmur2_random") as commander:
        yield commander


@pytest.fixture
def inbox(site: Site) -> Iterator[Inbox]:
    """The replies to a client id of the test's own."""
    with Inbox(site.brokers, site.prefix) as inbox:
        yield inbox


@pytest.fixture
def events(site: Site) -> Iterator[Events]:
    """A consumer group of the test's own on the log."""
    with Events(site.brokers, site.prefix) as events:
        yield events
