"""A place on the embedded log, and one on Kafka."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.doctor.patient import Patient
from tests.providers.kafka import GivenBroker
from tests.providers.kafka_broker import Broker
from tests.why.place import Place, place_of

from tidelog.log.address import open_log
from tidelog.log.topics import Topics


@pytest.fixture
def patient(tmp_path: Path, postgres_dsn: str) -> Patient:
    """An installation of which nothing exists yet."""
    return Patient(lambda: open_log(f"sqlite:{tmp_path}/log.db"), Topics("why"), postgres_dsn)


@pytest.fixture
async def place(patient: Patient) -> AsyncIterator[Place]:
    """An installation with an engine and a projector."""
    async with place_of(patient) as place:
        yield place


@pytest.fixture
async def place_on_kafka(kafka: Broker | GivenBroker, postgres_dsn: str) -> AsyncIterator[Place]:
    patient = Patient(
        lambda: open_log(f"kafka://{kafka.address}"), Topics(f"why-{uuid4().hex}"), postgres_dsn
    )
    async with place_of(patient) as place:
        yield place
