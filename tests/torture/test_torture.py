"""Torture for a minute: real processes are killed and stopped under load, and the audit finds nothing.

The long version, with a seed of its own each time: `make torture`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rich.console import Console
from tests.providers.kafka_broker import Broker
from tests.torture.faults import FaultKind
from tests.torture.house import Postgres, running_postgres
from tests.torture.report import table
from tests.torture.run import WITH_BROKER, WITHOUT_BROKER, Outcome, Torture, torture

SEED = 1
SEED_WITH_BROKER = 3
"""By its plan a worker is killed twice while engines serve, and so in the middle of jobs."""
ENOUGH_JOBS = 100
"""A run in which hardly anything happened proves nothing. A slow machine does several times as many."""


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    with running_postgres() as postgres:
        yield postgres


def check(title: str, outcome: Outcome, kinds: Sequence[FaultKind]) -> None:
    Console().print(table(title, outcome))
    assert outcome.audit.problems == []
    assert outcome.faults.keys() == {kind.name for kind in kinds}
    assert outcome.gave_up == {}, "whatever is away, a role waits for it"
    assert outcome.audit.counts["jobs acknowledged"] >= ENOUGH_JOBS
    assert outcome.audit.counts["jobs ended"] == outcome.audit.counts["jobs in the log"]


@pytest.mark.timeout(300)
async def test_kafka_under_torture(tmp_path: Path, postgres: Postgres, own_kafka: Broker) -> None:
    how = Torture(SEED_WITH_BROKER, 45.0)
    outcome = await torture(how, tmp_path, postgres, own_kafka)
    check(f"Torture on Kafka, seed {how.seed}", outcome, WITH_BROKER)
    assert outcome.audit.counts["runs killed"] > 0


@pytest.mark.timeout(180)
async def test_the_embedded_log_under_torture(tmp_path: Path, postgres: Postgres) -> None:
    how = Torture(SEED, 15.0, gap=(1.0, 1.8), each={"engine": 2, "worker": 2, "projector": 1, "observer": 1})
    outcome = await torture(how, tmp_path, postgres, None)
    check(f"Torture on the embedded log, seed {SEED}", outcome, WITHOUT_BROKER)
