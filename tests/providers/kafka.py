"""A Kafka for the tests, from the first of: an address given, a container, Java with Maven (`kafka_jars`)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.providers.kafka_broker import Broker, has_docker, own_broker
from tests.providers.kafka_jars import jars, java

ADDRESS_VARIABLE = "TIDELOG_TEST_KAFKA"
"""`host:port` of a broker that tests may use; they use topics of their own, and leave them there."""


class GivenBroker:
    """Somebody else's broker: to be used, never to be killed."""

    def __init__(self, address: str) -> None:
        self.address = address


def prepare() -> None:
    """Install and fetch what a broker will need here; nothing when it is there. Raises `NoBroker`."""
    if not os.environ.get(ADDRESS_VARIABLE) and not has_docker():
        java()
        jars()


@contextmanager
def running_kafka(folder: Path) -> Iterator[Broker | GivenBroker]:
    """A broker that stands for the length of the block; `folder` is for the files of one that is started."""
    address = os.environ.get(ADDRESS_VARIABLE)
    if address:
        yield GivenBroker(address)
        return
    with running_own_kafka(folder) as broker:
        yield broker


@contextmanager
def running_own_kafka(folder: Path) -> Iterator[Broker]:
    """A broker that the tests may kill; `folder` is for its files."""
    broker = own_broker(folder)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
