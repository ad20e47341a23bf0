"""The adapters that the conformance suite runs against."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.conformance.cluster import Cluster, KafkaCluster, MemoryCluster, SqliteCluster

from tidelog.log.port import Log


@pytest.fixture(params=["memory", "sqlite", "kafka"])
async def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Cluster]:
    cluster: Cluster
    match request.param:
        case "memory":
            cluster = MemoryCluster()
        case "sqlite":
            cluster = SqliteCluster(tmp_path)
        case _:
            # Asked for here, and not as an argument: only these tests need a broker to be started.
            cluster = KafkaCluster(request.getfixturevalue("kafka").address)
    yield cluster
    await cluster.close()


@pytest.fixture
async def log(cluster: Cluster) -> Log:
    return await cluster.connect()
