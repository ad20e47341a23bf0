"""A patient on the embedded log, and one on Kafka."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

import pytest
from tests.doctor.patient import Patient

from tidelog.log.address import open_log
from tidelog.log.kafka.options import KafkaReplication
from tidelog.log.topics import Topics


@pytest.fixture(params=["sqlite", "kafka"])
def patient(request: pytest.FixtureRequest, tmp_path: Path, postgres_dsn: str) -> Patient:
    """An installation of which nothing exists yet."""
    topics = Topics(f"test-{uuid4().hex}")
    if request.param == "sqlite":
        return Patient(lambda: open_log(f"sqlite:{tmp_path}/log.db"), topics, postgres_dsn)
    # Asked for here, and not as an argument: only these tests need a broker to be started.
    address = request.getfixturevalue("kafka").address
    return Patient(lambda: open_log(f"kafka://{address}"), topics, postgres_dsn, KafkaReplication())
